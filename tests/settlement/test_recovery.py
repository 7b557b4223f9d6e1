"""Restarts and kills of settlement: every trade settles exactly once."""

import random
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.rigs.fault_proxy import FaultProxy
from tests.rigs.killing import Killer
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.settle import run_once

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED


async def test_a_restart_at_any_step_loses_no_trade(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 40, 30 * UNIT)
    trade_ids: list[str] = []
    for trader in (bob, carol, bob):
        trade_ids += (await trader.buy(market, 40, 10 * UNIT)).trade_ids
        await rig.restart()
        await rig.projection.catch_up()
        await run_once(rig.context)
        await rig.restart()
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 3
    assert await rig.fill_count() == 6
    await rig.check_ledger()


async def attempt(rig: SettlementRig) -> None:
    """Settle as far as possible; the next process continues after a node that does not answer."""
    try:
        await rig.settle()
    except (ForetellError, AssertionError):
        return


@pytest.mark.case("D-02")
@settings(
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(seed=st.integers(0, 2**64))
async def test_every_trade_settles_exactly_once_when_the_process_is_killed_at_any_time(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader], proxy: FaultProxy, seed: int
) -> None:
    rng = random.Random(seed)
    alice, bob, carol = traders
    fills_before, sent_before = await rig.fill_count(), len(await rig.sent())
    trade_ids: list[str] = []
    await alice.sell(market, 40, 2 * UNIT)
    for trader in (bob, carol):
        trade_ids += (await trader.buy(market, 40, UNIT)).trade_ids
        for _ in range(rng.randint(0, 2)):
            killer = Killer(proxy, rng.randint(1, 25), is_received=rng.random() < 0.5)
            await killer.kill(rig, attempt(rig))
    await rig.settle()
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
    assert await rig.fill_count() == fills_before + 4
    assert len(await rig.sent()) == sent_before + 2
    await rig.check_ledger()
