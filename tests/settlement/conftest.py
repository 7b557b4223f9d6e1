"""A rig on a real chain with one market; the chain is reset when the test ends."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.rigs.fault_proxy import FaultProxy, proxying
from tests.rigs.sandbox import Sandbox, SandboxMarket
from tests.settlement.earlier_exchange import place_earlier_exchanges
from tests.settlement.rig import DATABASE_FILE, HELD, SettlementRig, Trader


@pytest.fixture
async def proxy(fresh_sandbox: Sandbox) -> AsyncIterator[FaultProxy]:
    """A node that fails settlement's calls on request; the indexer uses the real one."""
    async with proxying(fresh_sandbox.rpc_url) as proxy:
        yield proxy


@pytest.fixture
async def rig(
    fresh_sandbox: Sandbox, proxy: FaultProxy, empty_database: Path, tmp_path: Path
) -> AsyncIterator[SettlementRig]:
    shutil.copy(empty_database, tmp_path / DATABASE_FILE)
    rig = SettlementRig(fresh_sandbox, tmp_path, rpc_url=proxy.url, proxy=proxy)
    await rig.start()
    yield rig
    await rig.automine(is_on=True)
    await rig.stop()


@pytest.fixture
async def market(rig: SettlementRig) -> SandboxMarket:
    return await rig.open()


@pytest.fixture
async def traders(rig: SettlementRig, market: SandboxMarket) -> list[Trader]:
    """Three accounts with collateral and complete sets, known to the engine."""
    traders = [await rig.trader(number) for number in range(3)]
    for trader in traders:
        await rig.sandbox.split(trader.account, market, HELD)
    await rig.see()
    return traders


@pytest.fixture
async def earlier_exchange(rig: SettlementRig) -> None:
    """Exchanges of an earlier version: a receiver that refuses its tokens reverts its match there."""
    await place_earlier_exchanges(rig.sandbox)
