"""Market creation on a real chain, reverted after each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.rig import DATABASE_FILE, CreationRig, CreatorClient
from tests.rigs.sandbox import Sandbox


@pytest.fixture
async def rig(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[CreationRig]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = CreationRig(fresh_sandbox, tmp_path)
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
def creator(rig: CreationRig) -> CreatorClient:
    return rig.creator()
