"""A price history of 200 points over millions of trades, each in a minute of its own: what it costs at most."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from shutil import copyfile
from typing import Final

import pytest
import sqlalchemy as sa
from tests.rigs.postgres import PostgresServer
from tests.store.queries.recorded_queries import postgres_plans, recorded, sqlite_steps

from foretell.domain.portfolio.price_history import MINUTE_S, Buckets
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.scratch import analyze
from foretell.store.trading.quote_points import HistoryPoint, load_history

pytestmark = pytest.mark.anyio

CONDITION: Final = Bytes32("0x" + "7" * 64)
TRADES: Final = 3_000_000
POSTGRES_TRADES: Final = 300_000
FEW_TRADES: Final = 3_000
FIRST_MINUTE: Final = 25_000_000
POINTS: Final = 200
STEPS_GROWTH_MAX: Final = 1.01

FILL: Final = """
    INSERT INTO quote_points (
        condition_id, minute, ticks_per_one, best_bid_ticks, best_ask_ticks, last_price_ticks, volume_units
    )
    WITH RECURSIVE minutes(number) AS (
        SELECT 0 UNION ALL SELECT number + 1 FROM minutes WHERE number + 1 < {trades}
    )
    SELECT '{condition}', {first} + number, 1000, 1 + number % 500, 501 + number % 499, 501, number
    FROM minutes
"""


def filling(trades: int) -> str:
    return FILL.format(trades=trades, condition=CONDITION, first=FIRST_MINUTE)


def all_of(trades: int) -> Buckets:
    """Return 200 buckets over all minutes."""
    step_s = trades // POINTS * MINUTE_S
    first_s = FIRST_MINUTE * MINUTE_S + step_s
    return Buckets(first_s, first_s + (POINTS - 1) * step_s, step_s)


async def read(database: Database, trades: int) -> list[HistoryPoint]:
    async with database.reading() as tx:
        return list(await load_history(tx, CONDITION, all_of(trades)))


def check(points: list[HistoryPoint], trades: int) -> None:
    """Each point is the last minute's before the end of its bucket."""
    assert len(points) == POINTS
    for point in points:
        number = point.end_s // MINUTE_S - FIRST_MINUTE - 1
        assert number < trades
        assert point.top.best_bid_ticks == 1 + number % 500


async def test_200_points_over_3_000_000_trades_take_the_steps_of_as_many_seeks(
    empty_database: Path, tmp_path: Path
) -> None:
    steps: list[int] = []
    for trades in (FEW_TRADES, TRADES):
        path = tmp_path / f"{trades}.db"
        copyfile(empty_database, path)
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(filling(trades))
            connection.commit()
        async with Database(f"sqlite+aiosqlite:///{path}") as database:
            with recorded() as queries:
                check(await read(database, trades), trades)
        steps.append(sqlite_steps(path, queries))
        path.unlink()
    assert steps[1] <= STEPS_GROWTH_MAX * steps[0], steps


async def test_200_points_over_300_000_trades_are_200_seeks_on_postgres(
    postgres: PostgresServer,
) -> None:
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        async with database.writing() as tx:
            await tx.execute(sa.text(filling(POSTGRES_TRADES)))
        await analyze(database)
        with recorded() as queries:
            check(await read(database, POSTGRES_TRADES), POSTGRES_TRADES)
        plans = await postgres_plans(database, queries, may_scan=True, is_run=True)
    await asyncio.to_thread(postgres.empty_database)
    [seek] = [line for line in plans if "quote_points" in line]
    assert "Index Scan Backward using pk_quote_points" in seek
    assert f"rows=1.00 loops={POINTS}" in seek or f"rows=1 loops={POINTS}" in seek, seek
