"""A studio on a real chain, everything undone when the test ends."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.studio import DATABASE_FILE, CreatorClient, Studio
from tests.sandbox import Sandbox

from foretell.store.database import Database
from foretell.store.migrations import upgrade


@pytest.fixture(scope="session")
async def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with today's schema and nothing in it, to be copied."""
    file = tmp_path_factory.mktemp("database") / DATABASE_FILE
    async with Database(f"sqlite+aiosqlite:///{file}") as database:
        await upgrade(database)
    return file


@pytest.fixture
async def studio(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[Studio]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    studio = Studio(fresh_sandbox, tmp_path)
    await studio.start()
    yield studio
    await studio.stop()


@pytest.fixture
def creator(studio: Studio) -> CreatorClient:
    return studio.creator()
