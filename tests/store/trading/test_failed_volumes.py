"""A11: a failed trade was taken off every minute since its match, in one transaction of the tables' writer."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, a_word

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.failed_volumes import DAY_MINUTES
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Database, Transaction
from foretell.store.tables import failed_volumes, quote_points
from foretell.store.trading.failed_volumes import FailedTrade, add_failed
from foretell.store.trading.quote_points import (
    MINUTE_MS,
    QuoteKey,
    QuotePoint,
    record_quote_points,
)
from foretell.store.trading.volumes import load_volumes_since

pytestmark = pytest.mark.anyio

MARKET = a_word("rain")
FAILED = 200
LONG_MINUTES = 14_400
"""Ten days."""
PERIODS = 2
NOW = NOW_MS // MINUTE_MS
OTHER_MINUTES = (0, 1, 59, 1_439, 1_440, 1_441, 2_880, 2_881, 4_000, 9_000)


async def test_the_rows_that_200_failed_trades_write_do_not_grow_with_the_minutes_since_their_match(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Sequence[tuple[Any, ...]]] = []
    execute_rows = Transaction.execute_rows

    async def count(
        tx: Transaction, statement: sa.Executable, rows: Sequence[tuple[Any, ...]]
    ) -> None:
        written.append(rows)
        await execute_rows(tx, statement, rows)

    top = BookTop(100)
    points = {
        QuoteKey(MARKET, NOW - minute): QuotePoint(top, 1_000_000 - minute)
        for minute in range(LONG_MINUTES)
    }
    first = NOW - LONG_MINUTES + 1
    async with database.writing() as tx:
        await record_quote_points(tx, points)
        before = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
        monkeypatch.setattr(Transaction, "execute_rows", count)
        failed = [FailedTrade(MARKET, (first + each) * MINUTE_MS, 1) for each in range(FAILED)]
        await add_failed(tx, failed)
        after = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
        kept = await tx.all(sa.select(failed_volumes))
    assert [len(rows) <= PERIODS * FAILED for rows in written] == [True]
    assert len(kept) == len(written[0])
    assert after == before


async def test_what_failed_is_in_no_volume_since_any_minute(database: Database) -> None:
    random_ = random.Random(11)
    matched = []
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for number in range(60):
            minute = NOW - random_.choice(OTHER_MINUTES) - random_.randint(0, 3)
            status = random_.choice([TradeStatus.FAILED, TradeStatus.CONFIRMED])
            await rows.match("rain", number + 1, minute * MINUTE_MS, status)
            matched.append((minute, (number + 1) * (status is TradeStatus.CONFIRMED)))
    async with database.reading() as tx:
        for ago in (*OTHER_MINUTES, *range(30), 365 * DAY_MINUTES):
            since = NOW - ago
            found = await load_volumes_since(tx, [MARKET], since * MINUTE_MS)
            expected = sum(units for minute, units in matched if minute >= since)
            assert found == {MARKET: expected}


async def test_sums_end_at_what_a_column_holds_and_no_volume_is_negative(
    database: Database,
) -> None:
    large = AMOUNT_UNITS_MAX // 2
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.match("rain", large, NOW_MS)
        for days in (0, 0, 1, 1, 0):
            at_ms = NOW_MS - days * DAY_MINUTES * MINUTE_MS
            await add_failed(tx, [FailedTrade(MARKET, at_ms, large)] * 3)
        units = [row.units for row in await tx.all(sa.select(failed_volumes))]
    assert units == [AMOUNT_UNITS_MAX] * 4
    async with database.reading() as tx:
        found = await load_volumes_since(tx, [MARKET], NOW_MS - 30 * DAY_MINUTES * MINUTE_MS)
    assert found == {MARKET: 0}


async def test_a_market_without_a_failed_trade_loses_nothing_of_its_volume(
    database: Database,
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.match(name, 5, NOW_MS)
        await rows.match("snow", 3, NOW_MS, TradeStatus.FAILED)
        await add_failed(tx, [])
    async with database.reading() as tx:
        found = await load_volumes_since(tx, [MARKET, a_word("snow")], NOW_MS)
    assert found == {MARKET: 5, a_word("snow"): 5}
