"""Databases of two sizes, between which the steps of a read are compared."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.store.live_sums import rebuild
from tests.store.queries.recorded_queries import sqlite_steps

from foretell.bench.rigs.reads.history import NOW_S, History, HistoryPlan
from foretell.bench.rigs.reads.matches import SIZE_UNITS
from foretell.data.routes import build_app
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind, ActivityRow, record_activities
from foretell.store.migrations import upgrade
from foretell.store.scratch import analyze

FILLS: Final = (1_000, 10_000)
GROWTH_MAX: Final = 1.5
LARGE: Final = 50
RARE: Final = LARGE * SIZE_UNITS


class Grown:
    """A database with a history of a number of fills, and some large trades before all of it."""

    def __init__(self, path: Path, fills: int) -> None:
        self.path = path
        self.database = Database(f"sqlite+aiosqlite:///{path}")
        self.history = History(HistoryPlan(fills, wallets=100, markets=20))
        self.reader = Reader(
            an_app(build_app, a_data_context(self.database, BLOBS, lambda: NOW_S * 1000))
        )

    async def fill(self) -> None:
        await upgrade(self.database)
        await self.history.write(self.database)
        names = self.history.names
        large = [
            ActivityRow(
                0,
                index,
                0,
                Address(names.whale),
                ActivityKind.TRADE,
                Bytes32(names.condition_id),
                AssetId(names.token_id),
                Side.BUY,
                2 * RARE,
                RARE + index,
                is_taker=True,
                timestamp_s=1,
                tx_hash=Bytes32(names.condition_id),
            )
            for index in range(12)
        ]
        async with self.database.writing() as tx:
            await record_activities(tx, large)
        await rebuild(self.database, NOW_S * 1000)
        await analyze(self.database)

    def steps(self, queries: list[tuple[str, Any]]) -> int:
        """Return how many steps of its machine SQLite takes for these queries."""
        return sqlite_steps(self.path, queries)

    def plan(self, queries: list[tuple[str, Any]]) -> list[str]:
        """Return the lines of the plans of these queries."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [
                row[3]
                for sql, values in queries
                for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
            ]

    def scanned(self, queries: list[tuple[str, Any]]) -> list[str]:
        """Return the parts of the plans that read a whole table."""
        lines = self.plan(queries)
        assert lines
        tables = (
            *("activities", "balances", "standings", "quote_points", "positions", "wins"),
            *("exchange_fills", "trades", "fills"),
        )
        return [
            line
            for line in lines
            if line.startswith("SCAN") and line.split()[1] in tables and "INDEX" not in line
        ]
