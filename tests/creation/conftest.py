"""Market creation on a real chain, reverted after each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.rig import DATABASE_FILE, CreationRig, CreatorClient
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import NOW_S


@pytest.fixture
async def rig(
    fresh_sandbox: Sandbox, tmp_path: Path, empty_database: Path
) -> AsyncIterator[CreationRig]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = CreationRig(fresh_sandbox, tmp_path)
    # A question states its end in seconds of the chain, and its plan is made by the rig's clock.
    await fresh_sandbox.rpc.send("evm_setNextBlockTimestamp", NOW_S)
    await fresh_sandbox.mine()
    await rig.start()
    yield rig
    await rig.stop()


@pytest.fixture
def creator(rig: CreationRig) -> CreatorClient:
    return rig.creator()
