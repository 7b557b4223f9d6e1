"""Connections on the event loop that the product serves them with: its transports differ from those of asyncio's own.

In a worker whose earlier tests keep asyncio's loop open for the whole run, these run on that one.
"""

import pytest


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}
