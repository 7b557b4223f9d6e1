"""A relayer on a real chain, reverted after each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.relayer.rig import DATABASE_FILE, OwnerClient, RelayerRig
from tests.rigs.fault_proxy import FaultProxy, proxying
from tests.rigs.sandbox import Sandbox, SandboxMarket


@pytest.fixture
def folder(empty_database: Path, tmp_path: Path) -> Path:
    """The folder with a relayer's database."""
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    return tmp_path


@pytest.fixture
async def rig(fresh_sandbox: Sandbox, folder: Path) -> AsyncIterator[RelayerRig]:
    rig = RelayerRig(fresh_sandbox, folder)
    await rig.start()
    yield rig
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own
    await rig.stop()


@pytest.fixture
async def twin(rig: RelayerRig) -> AsyncIterator[RelayerRig]:
    """Another process on the same database."""
    twin = RelayerRig(rig.sandbox, rig.folder, clock=rig.clock, numbers=rig.numbers)
    await twin.start()
    yield twin
    await twin.stop()


@pytest.fixture
async def newcomer(rig: RelayerRig) -> OwnerClient:
    """An owner without a wallet."""
    return await rig.owner("a newcomer")


@pytest.fixture
async def owner(rig: RelayerRig) -> OwnerClient:
    """An owner whose wallet the relayer has deployed."""
    owner = await rig.owner("an owner")
    await owner.deploy()
    return owner


@pytest.fixture
async def market(rig: RelayerRig) -> SandboxMarket:
    return await rig.sandbox.ask()


@pytest.fixture
async def holder(owner: OwnerClient, market: SandboxMarket) -> OwnerClient:
    """An owner whose wallet holds 100 complete sets of the market."""
    await owner.hold(market, 100 * 10**6)
    return owner


@pytest.fixture
async def proxy(fresh_sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    async with proxying(fresh_sandbox.rpc_url) as proxy:
        yield proxy


@pytest.fixture
async def shaky_rig(
    fresh_sandbox: Sandbox, proxy: FaultProxy, folder: Path
) -> AsyncIterator[RelayerRig]:
    """A relayer whose node is behind a proxy that injects faults."""
    rig = RelayerRig(fresh_sandbox, folder, rpc_url=proxy.url)
    await rig.start()
    yield rig
    await fresh_sandbox.rpc.send("evm_setAutomine", True)  # noqa: FBT003 - the protocol's own
    await rig.stop()
