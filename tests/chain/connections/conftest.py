import pytest


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The loop of a process that serves is another one than that of most tests."""
    return "asyncio", {"use_uvloop": request.param}
