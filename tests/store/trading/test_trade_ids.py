"""The trades that an order names: the newest, read along an index however many it has."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from tests.rigs.values import NOW_MS, a_word
from tests.store.queries.recorded_queries import postgres_plans, recorded, sqlite_steps
from tests.store.trading.test_trades import NO, a_fill, a_row, record

from foretell.store.database import Database
from foretell.store.trading.trades import TradeRow, load_trade_ids

pytestmark = pytest.mark.anyio

MOST = 100
RESTING, SWEEPING, OTHER = a_word("resting"), a_word("sweeping"), a_word("other")
FEW, MANY = 150, 1_500


def made(number: int, order: str = "resting") -> TradeRow:
    """Return a trade of an order that rests, named so that names are not in the order of time."""
    row = a_row(number)
    trade = msgspec.structs.replace(
        row.trade, trade_id=f"made-{(number * 7) % 10:02}-{number}", fills=(a_fill("bob", order),)
    )
    return row._replace(trade=trade, fill_tokens=(NO,))


def taken(number: int, order: str = "sweeping", *, at: int = 0) -> TradeRow:
    """Return one of the trades that an order took when it was placed, all at one time."""
    row = a_row(number)
    trade = msgspec.structs.replace(
        row.trade,
        trade_id=f"taken-{number:05}",
        taker_order_id=a_word(order),
        matched_at_ms=NOW_MS + 1000 * at,
    )
    return row._replace(trade=trade, sequence=at)


async def found(database: Database, *order_ids: str) -> dict[str, list[str]]:
    async with database.reading() as tx:
        return {key: list(ids) for key, ids in (await load_trade_ids(tx, order_ids)).items()}


async def test_attack_h1_the_newest_trades_of_an_order_are_found_the_oldest_first(
    database: Database,
) -> None:
    makers, takers = (
        [made(number) for number in range(1, FEW)],
        [taken(number) for number in range(FEW)],
    )
    await record(database, *makers[::-1], *takers, made(FEW + 1, "other"))
    assert await found(database, RESTING, SWEEPING, OTHER, a_word("nothing")) == {
        RESTING: [row.trade.trade_id for row in makers[-MOST:]],
        SWEEPING: [row.trade.trade_id for row in takers[-MOST:]],
        OTHER: [made(FEW + 1, "other").trade.trade_id],
    }


async def test_attack_h1_what_an_order_made_comes_after_what_it_took(database: Database) -> None:
    both = [taken(number, "resting") for number in range(90)]
    both += [made(number) for number in range(1, 61)]
    await record(database, *both)
    assert await found(database, RESTING, RESTING) == {
        RESTING: [row.trade.trade_id for row in both[-MOST:]]
    }


async def test_attack_h1_a_read_of_an_order_visits_no_more_rows_when_it_has_more_trades(
    database: Database, each_database_url: str
) -> None:
    """On SQLite the steps of the read are compared, on PostgreSQL the rows that its plan reads.

    Most orders have one trade: PostgreSQL expects as few of each.
    """
    await record(database, *[a_row(number) for number in range(MANY, 2 * MANY)])
    costs = []
    for first, end in ((1, FEW), (FEW, MANY)):
        rows = [made(number) for number in range(first, end)]
        await record(database, *rows, *[taken(number) for number in range(first, end)])
        async with database.writing() as tx:
            await tx.execute(sa.text("ANALYZE"))
        with recorded() as queries:
            ids = await found(database, RESTING, SWEEPING)
        assert [len(each) for each in ids.values()] == [MOST] * 2
        costs.append(await visited(database, each_database_url, queries))
    assert 0 < costs[1] <= costs[0] * 1.1, costs
    if not database.is_sqlite:
        assert costs[1] <= 2 * MOST


async def visited(database: Database, url: str, queries: list[tuple[str, Any]]) -> int:
    """Return how many steps SQLite takes, or how many rows of trades and fills PostgreSQL reads."""
    if database.is_sqlite:
        path = sa.make_url(url).database
        assert path is not None
        return sqlite_steps(Path(path), queries)
    plans = await postgres_plans(database, queries, may_scan=True, is_run=True)
    scans = [
        line for line in plans if "Scan" in line and (" on fills" in line or " on trades" in line)
    ]
    assert [line for line in scans if "Index" not in line and "Bitmap Heap" not in line] == []
    return sum(rows_of(line) for line in scans)


def rows_of(line: str) -> int:
    """Return the rows that a step of a plan gave in all its loops."""
    counts = line.split("(actual rows=")[1].rstrip(")").split(" loops=")
    return round(float(counts[0]) * int(counts[1].split(")")[0]))
