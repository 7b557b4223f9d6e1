"""A1, A4, A6: reads of trading that must not visit more rows when the history grows."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import pytest
from tests.rigs.values import an_address
from tests.store.queries.grown import GROWTH_MAX, Grown
from tests.store.queries.recorded_queries import postgres_plans, recorded

from foretell.bench.rigs.reads.history import NOW_S, History, HistoryPlan, Names
from foretell.domain.portfolio.price_history import Buckets
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database, Transaction
from foretell.store.trading.quote_points import load_first_minute, load_history
from foretell.store.trading.volumes import load_volumes_since
from foretell.store.trading.wallet_trades import (
    TradeFilter,
    load_trades_before,
    load_wallet_trades,
)

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

DAY_S: Final = 86_400
POINTS: Final = 200
WALKED: Final = ("trades", "fills", "quote_points")
NOBODY: Final = an_address("nobody")
Read = Callable[[Transaction, Names], Awaitable[Any]]


async def trades_of_nobody(tx: Transaction, _: Names) -> object:
    return await load_wallet_trades(tx, [NOBODY], TradeFilter(), 0, 10)


async def trades_of_a_maker_of_many(tx: Transaction, names: Names) -> object:
    wallets = [Address(names.whale), NOBODY]
    rows = await load_wallet_trades(tx, wallets, TradeFilter(), 0, 10)
    assert len(rows) == 10
    return rows


async def one_trade(tx: Transaction, names: Names) -> object:
    wanted = TradeFilter(trade_id="trade-7")
    rows = await load_wallet_trades(tx, [Address(names.whale)], wanted, 0, 10)
    assert [row.trade.trade_id for row in rows] == ["trade-7"]
    return rows


async def trades_of_some_days(tx: Transaction, names: Names) -> object:
    wanted = TradeFilter(after_s=NOW_S - 300 * DAY_S, before_s=NOW_S - 100 * DAY_S)
    return await load_wallet_trades(tx, [Address(names.whale)], wanted, 0, 3)


async def trades_before_one(tx: Transaction, names: Names) -> object:
    """What a wallet did before a trade whose transaction was mined in vain (H-1)."""
    whale = Address(names.whale)
    newest = await load_wallet_trades(tx, [whale], TradeFilter(), 0, 3)
    rows = await load_trades_before(tx, whale, newest[0], 2)
    assert rows == newest[1:]
    assert await load_trades_before(tx, NOBODY, newest[0], 2) == []
    return rows


async def volume_of_a_day(tx: Transaction, names: Names) -> object:
    since_ms = (NOW_S - DAY_S) * 1000
    return await load_volumes_since(tx, [names.condition_id], since_ms)


async def price_history(tx: Transaction, names: Names) -> object:
    wanted = Buckets(NOW_S - POINTS * DAY_S, NOW_S - DAY_S, DAY_S)
    assert await load_first_minute(tx, Bytes32(names.condition_id)) is not None
    points = await load_history(tx, Bytes32(names.condition_id), wanted)
    assert len(points) == POINTS
    return points


READS: Final = (
    trades_of_nobody,
    trades_of_a_maker_of_many,
    one_trade,
    trades_of_some_days,
    trades_before_one,
    volume_of_a_day,
    price_history,
)


@pytest.mark.parametrize("read", READS)
async def test_a_read_of_trading_takes_no_more_steps_when_the_history_is_ten_times_as_long(
    grown: tuple[Grown, Grown], read: Read
) -> None:
    steps: list[int] = []
    for each in grown:
        with recorded() as queries:
            async with each.database.reading() as tx:
                await read(tx, each.history.names)
        assert each.scanned(queries) == []
        steps.append(each.steps(queries))
    assert 0 < steps[1] <= GROWTH_MAX * steps[0], steps


@pytest.mark.parametrize("read", READS)
async def test_postgres_has_an_index_for_each_read_of_trading(
    on_postgres: Database, read: Read
) -> None:
    names = History(HistoryPlan(2, wallets=100, markets=20)).names
    with recorded() as queries:
        async with on_postgres.reading() as tx:
            await read(tx, names)
    plans = await postgres_plans(on_postgres, queries)
    assert [line for line in plans if any(f"Seq Scan on {table}" in line for table in WALKED)] == []


async def test_a6_postgres_seeks_the_index_once_for_each_point(on_postgres: Database) -> None:
    """Without a hint: the rows that PostgreSQL reads of the index are as many as the points."""
    names = History(HistoryPlan(2, wallets=100, markets=20)).names
    with recorded() as queries:
        async with on_postgres.reading() as tx:
            await price_history(tx, names)
    plans = await postgres_plans(on_postgres, queries[-1:], may_scan=True, is_run=True)
    [seek] = [line for line in plans if "quote_points" in line]
    assert "Index Scan Backward using pk_quote_points" in seek
    assert f"rows=1.00 loops={POINTS}" in seek or f"rows=1 loops={POINTS}" in seek, seek
