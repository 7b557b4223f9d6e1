"""A studio on a real chain, everything undone when the test ends."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.rig import DATABASE_FILE, CreatorClient, Studio
from tests.rigs.sandbox import Sandbox


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
