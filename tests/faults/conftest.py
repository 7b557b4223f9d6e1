"""The process that makes the processes of all tests here."""

from collections.abc import AsyncIterator

import pytest
from tests.faults.processes import Processes, processes


@pytest.fixture(scope="session")
async def made() -> AsyncIterator[Processes]:
    async with processes() as made:
        yield made
