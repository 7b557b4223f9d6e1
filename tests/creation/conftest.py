"""Market creation on a real chain, reverted after each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.creation.rig import DATABASE_FILE, CreationRig, CreatorClient
from tests.rigs.fault_proxy import FaultProxy, proxying
from tests.rigs.sandbox import Sandbox
from tests.rigs.values import NOW_S

from foretell.chain.reader import Reader
from foretell.chain.rpc import Rpc


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


@pytest.fixture
async def proxy(rig: CreationRig) -> AsyncIterator[FaultProxy]:
    """A proxy between market creation and the node that it reads from."""
    async with proxying(rig.sandbox.rpc_url) as proxy, Rpc(proxy.url, timeout_s=60) as rpc:
        rig.change(reader=Reader(rpc, rig.sandbox.deployment))
        yield proxy
