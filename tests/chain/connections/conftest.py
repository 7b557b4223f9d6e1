from typing import Final

import pytest

from foretell.chain.connections import node_connections

PATIENCE_S: Final = 600.0


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The loop of a process that serves is another one than that of most tests."""
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture(autouse=True)
def _busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections stay open however long a busy machine takes between two requests: tests count them."""
    monkeypatch.setattr(node_connections, "IDLE_S_MAX", PATIENCE_S)
