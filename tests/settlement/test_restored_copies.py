"""Copies of an older time that are restored: what was settled since is found on the chain (A-09)."""

import shutil
from typing import Final

import pytest
from tests.rigs.sandbox import SandboxMarket, catch_up
from tests.settlement.rig import UNIT, SettlementRig, Trader

from foretell.domain.exchange.settlement import Settlement, named_settlement
from foretell.domain.exchange.trade import TradeStatus
from foretell.settlement.settle import run_once
from foretell.store.outbox.settlements import name_batches
from foretell.store.trading.trades import load_trade_ids

pytestmark = pytest.mark.anyio

CONFIRMED: Final = TradeStatus.CONFIRMED


async def copy(rig: SettlementRig) -> None:
    """Copy the journal and the database as they are now."""
    await rig.projection.catch_up()
    await rig.stop()
    shutil.copytree(rig.folder, rig.folder.with_name(f"{rig.folder.name}-copy"))
    await rig.start()


async def restore(rig: SettlementRig) -> None:
    """Start again from the copy."""
    await rig.stop()
    shutil.rmtree(rig.folder)
    shutil.copytree(rig.folder.with_name(f"{rig.folder.name}-copy"), rig.folder)
    await rig.start()


@pytest.mark.case("A-09")
async def test_a_trade_that_was_settled_since_is_found_and_not_sent_again(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    """Both orders have more to fill, so the exchange would settle the trade a second time."""
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    first = await bob.buy(market, 40, 10 * UNIT)
    second = await bob.buy(market, 40, 20 * UNIT, salt="900")
    await copy(rig)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    assert await rig.statuses([*first.trade_ids, *second.trade_ids]) == [CONFIRMED] * 2
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])
    await rig.check_ledger()


@pytest.mark.case("A-09")
async def test_nothing_is_sent_before_the_index_has_the_blocks_from_before_the_start(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    await bob.buy(market, 40, 10 * UNIT)
    await copy(rig)
    await rig.settle()
    await restore(rig)
    for _ in range(3):
        assert await run_once(rig.context)
        rig.clock.move(1_000)
    assert await rig.sent() == []
    await catch_up(rig.indexer)
    await rig.settle()
    assert await rig.sent() == []


@pytest.mark.case("A-09")
async def test_a_trade_that_was_named_and_is_settled_since_is_not_sent_under_its_name(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, _ = traders
    await alice.sell(market, 40, 50 * UNIT)
    (trade_id,) = (await bob.buy(market, 40, 10 * UNIT)).trade_ids
    await rig.projection.catch_up()
    async with rig.database.writing() as tx:
        assert await name_batches(tx, [named_settlement(Settlement(trade_id))])
    await copy(rig)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    assert await rig.statuses([trade_id]) == [CONFIRMED]
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])


@pytest.mark.case("A-09")
async def test_a_trade_of_which_a_part_was_settled_since_is_split_and_that_part_found(
    rig: SettlementRig, market: SandboxMarket, traders: list[Trader]
) -> None:
    alice, bob, carol = traders
    await alice.sell(market, 40, 10 * UNIT)
    bad = await carol.sell(market, 40, 20 * UNIT)
    taker = await bob.buy(market, 40, 25 * UNIT)
    await copy(rig)
    await carol.cancel_on_chain((await rig.order_row(bad.order_id)).signed)
    await rig.settle()
    fills = await rig.fill_count()
    await restore(rig)
    await rig.settle()
    async with rig.database.reading() as tx:
        trade_ids = (await load_trade_ids(tx, [taker.order_id]))[taker.order_id]
    assert sorted(await rig.statuses(trade_ids)) == [CONFIRMED, TradeStatus.FAILED]
    assert (await rig.fill_count(), await rig.sent()) == (fills, [])
    await rig.check_ledger()
