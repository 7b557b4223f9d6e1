"""A floor on a real chain with one market, everything undone when the test ends."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.rigs.fault_proxy import FaultProxy, proxying
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.settlement.rig import DATABASE_FILE, HELD, Floor, Trader


@pytest.fixture
async def proxy(fresh_sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    """A node of settlement that faults can be asked of; the indexer has the true one."""
    async with proxying(fresh_sandbox.rpc_url) as proxy:
        yield proxy


@pytest.fixture
async def floor(
    fresh_sandbox: Sandbox, proxy: FaultProxy, empty_database: Path, tmp_path: Path
) -> AsyncIterator[Floor]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    floor = Floor(fresh_sandbox, tmp_path, rpc_url=proxy.url)
    await floor.start()
    yield floor
    await floor.automine(is_on=True)
    await floor.stop()


@pytest.fixture
async def market(floor: Floor) -> SandboxMarket:
    return await floor.open()


@pytest.fixture
async def traders(floor: Floor, market: SandboxMarket) -> list[Trader]:
    """Three accounts with collateral and complete sets, known to the engine."""
    traders = [await floor.trader(number) for number in range(3)]
    for trader in traders:
        await floor.sandbox.split(trader.account, market, HELD)
    await floor.see()
    return traders
