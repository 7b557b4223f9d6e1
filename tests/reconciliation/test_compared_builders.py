"""The volumes of builders are compared with all trades and orders, fill by fill, on both databases."""

import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.builders.decided_trading import Trading, some_commands
from tests.rigs.builders.sums import BUILDER_TABLES, a_code
from tests.rigs.values import COLLATERAL_CONTRACT, EXCHANGE, an_address

from foretell.reconciliation.chain_figures import ChainFigures, ReadContracts
from foretell.reconciliation.comparison import compare_all
from foretell.reconciliation.data_report import DataReport
from foretell.store.database import Database
from foretell.store.spill import SpillFile
from foretell.store.tables import builder_days, builder_totals, builder_users, trades

pytestmark = pytest.mark.anyio

CONTRACTS = ReadContracts(
    COLLATERAL_CONTRACT, an_address("conditional tokens"), frozenset({EXCHANGE}), "", "", ""
)
NAMES = {table.name for table in BUILDER_TABLES}


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    """Random trading with builders, failures and splits."""
    async with Database(each_database_url) as database:
        trading = Trading(database)
        await trading.begin()
        await trading.write(*some_commands(trading.state, random.Random(5), 60))
        yield database


async def report_on(database: Database, rows_held_max: int = 1_000) -> DataReport:
    report = DataReport(0, "")
    with SpillFile(rows_held_max) as spill:
        figures = ChainFigures(CONTRACTS, spill)
        async with database.reading() as tx:
            await compare_all(figures, tx, report)
    return report


async def differing(database: Database, change: sa.Executable) -> set[tuple[str, Any]]:
    async with database.writing() as tx:
        assert await tx.execute(change) > 0
    differences = (await report_on(database)).differences
    return {(each.table, each.key) for each in differences if each.table in NAMES}


async def keys(database: Database, table: sa.Table) -> Sequence[Any]:
    async with database.reading() as tx:
        rows = await tx.all(sa.select(*table.primary_key.columns))
    return [tuple(row) if len(row) > 1 else row[0] for row in rows]


@pytest.mark.parametrize("rows_held_max", [5, 1_000])
async def test_the_volumes_of_builders_equal_a_count_with_any_memory(
    database: Database, rows_held_max: int
) -> None:
    report = await report_on(database, rows_held_max)
    assert not report.differing & NAMES
    assert all(report.rows[name] > 1 for name in NAMES)
    assert report.rows_held <= rows_held_max


@pytest.mark.parametrize(
    "column",
    [
        column
        for table in BUILDER_TABLES
        for column in table.c
        if not column.primary_key and column.name != "volume_high"
    ],
    ids=str,
)
async def test_a_figure_of_a_builder_that_is_changed_is_named(
    database: Database, column: sa.Column[Any]
) -> None:
    table = column.table
    assert isinstance(table, sa.Table)
    one = table.c.builder_code == a_code(1)
    change = table.update().where(one).values({column.name: column + 1})
    expected = {
        (table.name, key) for key in await keys(database, table) if a_code(1) in {key, key[0]}
    }
    assert await differing(database, change) == expected


@pytest.mark.parametrize("table", BUILDER_TABLES, ids=str)
async def test_rows_of_builders_that_are_missing_are_named(
    database: Database, table: sa.Table
) -> None:
    expected = {(table.name, key) for key in await keys(database, table)}
    assert await differing(database, table.delete()) == expected


async def test_a_trade_that_was_not_taken_off_is_named(database: Database) -> None:
    """Its status alone says failed: no table of builders does."""
    missing = trades.update().where(trades.c.status != "FAILED").values(status="FAILED")
    found = await differing(database, missing)
    assert {table for table, _ in found} == {
        each.name for each in (builder_days, builder_users, builder_totals)
    }
