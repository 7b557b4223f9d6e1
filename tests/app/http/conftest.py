"""Connections on the event loop that the product serves them with: its transports differ from those of asyncio's own."""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}
