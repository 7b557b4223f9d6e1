"""A database with API keys, and a key ring that reads them; the clock stands still."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.edge.rig import MASTER_KEY, RacingDatabase, fill
from tests.rigs.databases import PATIENT
from tests.rigs.values import CHAIN_ID, NOW_MS

from foretell.edge.auth import KeyRing


@pytest.fixture(scope="module")
def filled(empty_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database in which alice has a key and a revoked one, and bob has a key."""
    path = Path(shutil.copy(empty_database, tmp_path_factory.mktemp("keys")))
    asyncio.run(fill(path))
    return path


@pytest.fixture
async def database(filled: Path, tmp_path: Path) -> AsyncIterator[RacingDatabase]:
    path = shutil.copy(filled, tmp_path)
    async with RacingDatabase(f"sqlite+aiosqlite:///{path}", PATIENT) as database:
        yield database


@pytest.fixture
def ring(database: RacingDatabase) -> KeyRing:
    return KeyRing(database, MASTER_KEY, [137, CHAIN_ID], lambda: NOW_MS)
