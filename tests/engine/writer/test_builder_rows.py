"""The volumes of builders as the projection keeps them: always the sums of the trades that have not failed."""

import random

import pytest
import sqlalchemy as sa
from tests.rigs.builders.decided_trading import HOUR_MS, Trading, some_commands
from tests.rigs.builders.sums import BUILDER_TABLES, a_code, kept_sums, slow_sums
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    an_address,
    an_order_id,
)

from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.portfolio.builder_volumes import day_of
from foretell.store.tables import trades

pytestmark = pytest.mark.anyio

MAKER, OTHER = a_code(7), a_code(8)
TODAY = day_of(NOW_MS)


@pytest.mark.parametrize("seed", range(4))
async def test_volumes_are_the_sums_of_trades_whatever_fails_and_however_batches_are_cut(
    trading: Trading, seed: int
) -> None:
    rng = random.Random(seed)
    for command in some_commands(trading.state, rng, 60):
        trading.decide(command)
        if rng.random() < 0.15:
            await trading.projection.catch_up()
            assert await kept_sums(trading.database) == await slow_sums(trading.database)
    await trading.projection.catch_up()
    kept = await kept_sums(trading.database)
    assert kept == await slow_sums(trading.database)
    assert all(kept.values())
    async with trading.database.reading() as tx:
        found = await tx.all(sa.select(trades.c.taker_order_id, trades.c.status))
    assert {row.status for row in found} >= {"MATCHED", "MINED", "FAILED"}
    assert len(found) > len({row.taker_order_id for row in found}), "trades were split"


async def test_each_order_of_a_builder_counts_with_its_own_collateral(trading: Trading) -> None:
    bid = a_buy("bob", 30, 10 * TOKEN, is_yes=False)
    ask = a_buy("alice", 70, 10 * TOKEN)
    await trading.write(a_placing(bid, builder=MAKER), a_placing(ask, builder=OTHER))
    kept = await kept_sums(trading.database)
    assert kept["builder_days"] == [
        (MAKER, TODAY, 0, 3 * TOKEN, 1, 1, 1),
        (OTHER, TODAY, 0, 7 * TOKEN, 1, 1, 1),
    ]
    assert kept["builder_users"] == [
        (MAKER, an_address("bob"), TODAY, 1),
        (OTHER, an_address("alice"), TODAY, 1),
    ]


async def test_a_trade_of_two_orders_of_one_builder_counts_for_both(trading: Trading) -> None:
    maker, taker = a_sell("bob", 40, 10 * TOKEN), a_buy("alice", 40, 10 * TOKEN)
    await trading.write(a_placing(maker, builder=MAKER), a_placing(taker, builder=MAKER))
    kept = await kept_sums(trading.database)
    assert kept["builder_totals"] == [(MAKER, 0, 8 * TOKEN, 2, 2)]


@pytest.mark.parametrize("is_one_batch", [True, False])
async def test_a_trade_that_fails_leaves_no_row_of_its_builder(
    trading: Trading,
    is_one_batch: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    maker, taker = a_sell("bob", 40, 10 * TOKEN), a_buy("alice", 40, 10 * TOKEN)
    matching = a_placing(maker, builder=MAKER), a_placing(taker)
    failing = a_settlement(trade_id_of(an_order_id(taker), 0), TradeStatus.FAILED, "")
    if is_one_batch:
        await trading.write(*matching, failing)
    else:
        await trading.write(*matching)
        assert (await kept_sums(trading.database))["builder_totals"] != []
        await trading.write(failing)
    assert set(map(len, (await kept_sums(trading.database)).values())) == {0}


async def test_a_wallet_whose_last_day_fails_was_last_active_the_day_before(
    trading: Trading,
) -> None:
    day_ms = 24 * HOUR_MS
    orders = [
        (a_sell("bob", 40, 5 * TOKEN, salt=f"{day}"), a_buy("alice", 40, 5 * TOKEN, salt=f"{day}"))
        for day in range(2)
    ]
    for day, (maker, taker) in enumerate(orders):
        at_ms = NOW_MS + day * day_ms
        await trading.write(
            a_placing(maker, at_ms=at_ms), a_placing(taker, at_ms=at_ms, builder=MAKER)
        )
    days = (await kept_sums(trading.database))["builder_days"]
    assert [row[-2:] for row in days] == [(1, 0), (1, 1)]
    last = trade_id_of(an_order_id(orders[1][1]), 0)
    await trading.write(a_settlement(last, TradeStatus.FAILED, ""))
    kept = await kept_sums(trading.database)
    assert kept["builder_days"] == [(MAKER, TODAY, 0, 2 * TOKEN, 1, 1, 1)]
    assert kept["builder_totals"] == [(MAKER, 0, 2 * TOKEN, 1, 1)]


async def test_orders_without_a_builder_write_no_row(trading: Trading) -> None:
    await trading.write(a_placing(a_sell("bob", 40)), a_placing(a_buy("alice", 40)))
    assert set(map(len, (await kept_sums(trading.database)).values())) == {0}
    assert {table.name for table in BUILDER_TABLES} == (await kept_sums(trading.database)).keys()
