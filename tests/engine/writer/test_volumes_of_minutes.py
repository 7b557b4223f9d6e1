"""The volumes of quotes and of the minutes of their history, as those added up from the trades one by one."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from tests.engine.writer.test_projection import play
from tests.rigs.values import (
    NOW_MS,
    TOKEN,
    a_buy,
    a_placing,
    a_sell,
    a_settlement,
    an_open_market,
    an_order_id,
    some_funds,
)

from foretell.domain.exchange.commands import Command
from foretell.domain.exchange.trade import TradeStatus, trade_id_of
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation.counted_quotes import CountedQuotes, compared_quotes
from foretell.store.database import Database
from foretell.store.spill import SpillFile
from foretell.store.tables import failed_volumes, fills, quote_points, trades

pytestmark = pytest.mark.anyio


async def check_volumes(database: Database) -> list[int]:
    """Compare quotes, points and what has failed with the trades; return the volumes of the points without that."""
    with SpillFile() as spill:
        counted = CountedQuotes(spill)
        async with database.reading() as tx:
            filled = await tx.all(sa.select(fills))
            for trade in await tx.all(sa.select(trades)):
                counted.add(trade, [fill for fill in filled if fill.trade_id == trade.trade_id])
            await counted.finish(tx)
            for compared in compared_quotes(counted):
                rows = await tx.all(sa.select(compared.table))
                kept = {compared.key(row): compared.of_table(row) for row in rows}
                assert kept == dict(compared.figures.items())
            points = await tx.all(sa.select(quote_points).order_by(quote_points.c.minute))
            failed = await tx.all(
                sa.select(failed_volumes).where(failed_volumes.c.length_minutes == 1)
            )
    return [
        point.volume_units - sum(row.units for row in failed if row.first_minute <= point.minute)
        for point in points
    ]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_trade_that_is_late_over_the_end_of_a_minute_and_fails_leaves_no_point_too_low(
    tmp_path: Path, database: Database, *, is_restarted: bool
) -> None:
    makers = [a_sell(name, price_ticks=40, size_units=6 * TOKEN) for name in ("bob", "carol")]
    early, late = (a_buy("alice", 40, 5 * TOKEN, salt=str(salt)) for salt in (1, 2))
    until_late: list[Command] = [
        an_open_market(),
        some_funds("alice", "bob", "carol"),
        *(a_placing(maker, at_ms=NOW_MS + 1_000) for maker in makers),
        a_placing(early, at_ms=NOW_MS + 2_000),
        a_placing(a_buy("bob", price_ticks=10), at_ms=NOW_MS + 61_000),
    ]
    then: list[Command] = [a_placing(late, at_ms=NOW_MS + 59_000)]
    failing: list[Command] = [
        a_settlement(trade_id_of(an_order_id(late), 0), TradeStatus.FAILED, "")
    ]
    runs = [until_late, then] if is_restarted else [[*until_late, *then]]
    await play(tmp_path / "journal", database, *runs)
    assert await check_volumes(database) == [2 * TOKEN, 4 * TOKEN]
    await play(tmp_path / "journal", database, failing)
    assert await check_volumes(database) == [2 * TOKEN, 2 * TOKEN]


async def test_a_volume_ends_at_what_its_column_holds_and_the_projection_goes_on(
    tmp_path: Path, database: Database
) -> None:
    size_units, cost_units = 4 * 10**18, 392 * 10**16
    opening: list[Command] = [an_open_market(), some_funds(*"abcdef", units=2**62)]
    matching: list[Command] = []
    takers = [a_buy(name, 98, size_units) for name in "def"]
    for maker, taker, seconds in zip("abc", takers, (1, 61, 62), strict=True):
        at_ms = NOW_MS + seconds * 1_000
        matching += [
            a_placing(a_sell(maker, 98, size_units), at_ms=at_ms),
            a_placing(taker, at_ms=at_ms),
        ]
    await play(tmp_path / "journal", database, [*opening, *matching])
    assert await check_volumes(database) == [cost_units, AMOUNT_UNITS_MAX]
    first, second, third = (trade_id_of(an_order_id(taker), 0) for taker in takers)
    for failed, expected in (
        ([third, second], [cost_units, AMOUNT_UNITS_MAX - 2 * cost_units]),
        ([first], [0, AMOUNT_UNITS_MAX - 3 * cost_units]),
    ):
        failing: list[Command] = [a_settlement(each, TradeStatus.FAILED, "") for each in failed]
        await play(tmp_path / "journal", database, failing)
        assert await check_volumes(database) == expected
