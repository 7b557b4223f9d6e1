"""The migration that adds sums fills them with what the indexer and the projection would have written."""

import importlib.util
from types import ModuleType
from typing import Any

import alembic.migration
import alembic.operations
import pytest
import sqlalchemy as sa
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN

from foretell.domain.exchange.trade import TradeStatus
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind
from foretell.store.migrations import FOLDER
from foretell.store.tables import (
    quote_points,
    quotes,
    traded_markets,
    trading_total_changes,
    trading_totals,
)

pytestmark = pytest.mark.anyio

TABLES = (traded_markets, trading_totals, trading_total_changes, quote_points)


def the_migration() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sums", FOLDER / "versions" / "v0010_sums.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fill(connection: sa.Connection) -> None:
    context = alembic.migration.MigrationContext.configure(connection)
    with alembic.operations.Operations.context(context):
        the_migration().fill()


async def dump(database: Database) -> dict[str, list[Any]]:
    async with database.reading() as tx:
        return {
            table.name: sorted(tuple(row) for row in await tx.all(sa.select(table)))
            for table in TABLES
        }


async def test_the_migration_fills_the_sums_of_older_rows(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        for who, name in (("ann", "rain"), ("bob", "rain"), ("ann", "snow"), ("ann", "rain")):
            await rows.buy(who, name, 4 * TOKEN, TOKEN)
        await rows.act("carol", "rain", ActivityKind.SPLIT, TOKEN)
        for units, minutes in ((3, 9), (4, 9), (5, 2)):
            await rows.match("rain", units, NOW_MS - minutes * 60_000)
        await rows.match("snow", 7, NOW_MS - 60_000, TradeStatus.FAILED)
        await rows.match("snow", 8, NOW_MS)
    expected = await dump(database)
    assert all(expected.values())
    async with database.writing() as tx:
        for table in TABLES[:3]:
            await tx.execute(table.delete())
        await tx.execute(quote_points.update().values(volume_units=0))
    await database.run_sync(fill)
    assert await dump(database) == expected
    async with database.reading() as tx:
        failed = await tx.all(sa.select(quotes.c.failed_units).order_by(quotes.c.failed_units))
    assert [row.failed_units for row in failed] == [0, 7]
