"""Settlement in a child process: what is passed on, and what a kill leaves."""

import asyncio
import random

import pytest
from tests.app.settlement_process.rig import (
    LOOK_S,
    QUICK,
    SOON_S,
    follow,
    is_settling,
    kill,
    settling,
    until,
)
from tests.rigs.sandbox import SandboxMarket
from tests.settlement.rig import UNIT, SettlementRig, Trader
from tests.settlement.test_batches import matched
from tests.settlement.test_two_faced import a_two_faced_trader

from foretell.domain.errors.exchange import WalletBarred
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.metrics import GAS
from foretell.settlement.wallet_bars import WALLET
from foretell.store.outbox.transactions import SETTLEMENT

pytestmark = pytest.mark.anyio

CONFIRMED = TradeStatus.CONFIRMED
TRACED_WITHIN_S = 5.0


async def test_trades_that_are_matched_while_it_runs_settle_and_wake_this_process(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    woken = await rig.database.watch(SETTLEMENT.topic)
    async with settling(rig) as process:
        trade_ids = await matched(market, traders, 2)
        await rig.projection.catch_up()
        assert await woken.wait(SOON_S)
        await follow(rig)
        assert await rig.statuses(trade_ids) == [CONFIRMED] * 2
        trade_ids += await matched(market, traders, 4)
        await follow(rig)
        pid = process.process_id
        assert pid is not None
    assert await rig.statuses(trade_ids) == [CONFIRMED] * 6
    assert await rig.fill_count() == 2 * 6
    assert not is_settling(pid)
    await rig.check_ledger()


@pytest.mark.usefixtures("earlier_exchange")
async def test_a_bar_reaches_the_engine_and_its_gas_is_counted_in_this_process(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    before = GAS.labels(WALLET)._value.get()
    liar = await a_two_faced_trader(rig, market)
    async with settling(rig):
        await traders[0].sell(market, 40, 10 * UNIT)
        await liar.buy(market, 40, 10 * UNIT)
        await follow(rig, TRACED_WITHIN_S)
        await until(lambda: GAS.labels(WALLET)._value.get() > before)
    await rig.see()
    with pytest.raises(WalletBarred, match="reverts only when it is mined"):
        await liar.buy(market, 11, 10 * UNIT)


@pytest.mark.case("D-02")
async def test_a_settlement_process_that_is_killed_at_any_time_settles_every_trade_once(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    rng = random.Random(1)
    trade_ids: list[str] = []
    async with settling(rig) as process:
        for _ in range(4):
            trade_ids += await matched(market, traders, rng.randint(1, 5))
            await rig.projection.catch_up()
            for _ in range(2):
                was = process.process_id
                await asyncio.sleep(rng.uniform(0, 2))
                kill(process)
                await until(lambda was=was: process.process_id not in {None, was})  # type: ignore[misc]
                await rig.see()
        await follow(rig)
    assert await rig.statuses(trade_ids) == [CONFIRMED] * len(trade_ids)
    assert await rig.fill_count() == 2 * len(trade_ids)
    await rig.check_ledger()


async def test_a_process_that_gives_no_sign_of_life_is_killed_and_started_again(
    rig: SettlementRig,
) -> None:
    async with settling(rig, QUICK._replace(begins_within_s=0.05)) as process:
        await until(lambda: process.process_id is not None)
        first = process.process_id
        await until(lambda: process.process_id not in {None, first})
        await asyncio.sleep(LOOK_S)
    assert process.process_id is None
