"""What makes processes; and what of the rigs is collected: a cluster only where it was asked for."""

import os
from collections.abc import AsyncIterator

import pytest
from tests.faults.processes import Processes, processes

collect_ignore = [] if os.environ.get("FORETELL_TEST_PATRONI") else ["test_patroni.py"]


@pytest.fixture(scope="session")
async def made() -> AsyncIterator[Processes]:
    async with processes() as made:
        yield made
