"""Migrations from older schemas to today's."""

import asyncio
import itertools
import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alembic.autogenerate
import alembic.command
import alembic.migration
import alembic.script
import asyncpg
import pytest
import sqlalchemy as sa

from foretell.domain.errors.storage import SchemaNewer, StoreUnavailable
from foretell.store.database import Database
from foretell.store.index.listing_totals import UNSETTLED
from foretell.store.migrations import FOLDER, configuration, head, upgrade, write_migration
from foretell.store.tables import api_keys, market_totals, metadata, quote_points

NUMBERS = itertools.count()


async def execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without any table."""
    if request.param == "sqlite":
        yield f"sqlite+aiosqlite:///{tmp_path / 'empty.db'}"
        return
    server: str = request.getfixturevalue("postgres_url")
    name = f"foretell_empty_{os.getpid()}_{next(NUMBERS)}"
    asyncio.run(execute(server, f"CREATE DATABASE {name}"))
    url = sa.make_url(server).set(drivername="postgresql+asyncpg", database=name)
    yield url.render_as_string(hide_password=False)
    asyncio.run(execute(server, f"DROP DATABASE {name} WITH (FORCE)"))


def differences(connection: sa.Connection) -> list[Any]:
    """Return the differences between the database and the tables."""
    context = alembic.migration.MigrationContext.configure(connection)
    return list(alembic.autogenerate.compare_metadata(context, metadata))


def revision(connection: sa.Connection) -> str | None:
    return alembic.migration.MigrationContext.configure(connection).get_current_revision()


async def ask(database: Database, question: Any) -> Any:
    answers: list[Any] = []
    await database.run_sync(lambda connection: answers.append(question(connection)))
    return answers[0]


@pytest.mark.anyio
async def test_the_migrations_create_exactly_the_tables(empty_url: str) -> None:
    async with Database(empty_url) as database:
        assert await ask(database, differences) != []
        await upgrade(database)
        assert await ask(database, differences) == []


@pytest.mark.anyio
async def test_an_upgrade_of_todays_schema_changes_nothing(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await upgrade(database)
        before = await ask(database, revision)
        async with database.writing() as tx:
            await tx.execute(sa.text("INSERT INTO projections (name, sequence) VALUES ('a', 7)"))
        await upgrade(database)
        assert await ask(database, revision) == before
        async with database.reading() as tx:
            assert await tx.scalar(sa.text("SELECT sequence FROM projections")) == 7


UPGRADE = """
import asyncio, sys
from foretell.store.database import Database
from foretell.store.index.listing_totals import UNSETTLED
from foretell.store.migrations import upgrade

async def run(url):
    async with Database(url) as database:
        await upgrade(database)

asyncio.run(run(sys.argv[1]))
"""


@pytest.mark.anyio
async def test_processes_that_start_at_once_upgrade_once(empty_url: str) -> None:
    processes = [
        await asyncio.create_subprocess_exec(sys.executable, "-c", UPGRADE, empty_url)
        for _ in range(3)
    ]
    assert [await process.wait() for process in processes] == [0, 0, 0]
    async with Database(empty_url) as database:
        assert await ask(database, differences) == []


@pytest.mark.anyio
async def test_a_database_of_a_later_release_is_refused_with_the_cure(empty_url: str) -> None:
    async with Database(empty_url) as database:
        await upgrade(database)
        async with database.writing() as tx:
            await tx.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
        with pytest.raises(SchemaNewer, match=r"9999.*start that release, or restore a copy"):
            await upgrade(database)
        assert await ask(database, revision) == "9999"


@pytest.mark.anyio
async def test_an_upgrade_that_fails_midway_leaves_nothing_and_can_run_again(
    empty_url: str,
) -> None:
    """A table exists already, so the migration that creates it fails."""
    async with Database(empty_url) as database:
        async with database.writing() as tx:
            await tx.execute(sa.schema.CreateTable(api_keys))
        with pytest.raises((sa.exc.DBAPIError, StoreUnavailable)):
            await upgrade(database)
        assert await ask(database, revision) is None
        tables = await ask(database, lambda connection: sa.inspect(connection).get_table_names())
        assert set(tables) <= {"api_keys", "alembic_version"}
        async with database.writing() as tx:
            await tx.execute(sa.schema.DropTable(api_keys))
        await upgrade(database)
        assert await ask(database, differences) == []


@pytest.mark.anyio
async def test_migrations_form_one_sequence(tmp_path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'a.db'}") as database:
        config = await ask(database, configuration)
    scripts = alembic.script.ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [head()]
    assert len(scripts.get_bases()) == 1


def test_a_new_migration_contains_the_difference(tmp_path: Path) -> None:
    """Tables that the migrations create already are no difference."""
    folder = Path(shutil.copytree(FOLDER, tmp_path / "migrations"))
    before = set(folder.glob("versions/*.py"))
    write_migration("another", f"sqlite+aiosqlite:///{tmp_path / 'a.db'}", folder)
    [written] = set(folder.glob("versions/*.py")) - before
    text = written.read_text()
    assert "create_table" not in text
    assert "down_revision = " in text
    assert "another" in text


@pytest.mark.anyio
async def test_points_of_quotes_stay_when_they_are_ordered_by_market(empty_url: str) -> None:
    points = [
        ("b", 1, 100, None, 4, 5, 6),
        ("a", 2, 100, 1, None, None, 7),
        ("a", 1, 10, 1, 2, 3, 0),
    ]

    def write_older(connection: sa.Connection) -> None:
        alembic.command.upgrade(configuration(connection), "0022")
        names = [column.name for column in quote_points.columns]
        rows = [dict(zip(names, point, strict=True)) for point in points]
        connection.execute(quote_points.insert(), rows)

    async with Database(empty_url) as database:
        await database.run_sync(write_older)
        await upgrade(database)
        async with database.writing() as tx:
            await tx.upsert_rows(quote_points, [("a", 2, 100, 1, 9, None, 8)])
        async with database.reading() as tx:
            kept = await tx.all(sa.select(quote_points))
        assert await ask(database, differences) == []
    expected = [points[2], ("a", 2, 100, 1, 9, None, 8), points[0]]
    assert sorted(map(tuple, kept)) == expected


@pytest.mark.anyio
async def test_markets_with_failed_trades_or_liquidity_are_computed_again(empty_url: str) -> None:
    amounts = [column.name for column in market_totals.columns if not column.nullable]

    def write_older(connection: sa.Connection) -> None:
        alembic.command.upgrade(configuration(connection), "0023")
        rows = [
            dict.fromkeys(amounts, 0)
            | {"market_id": market_id, "slug": "", "title": "", "seen_ms": 7}
            | {"failed_units": failed, "liquidity_units": liquidity}
            for market_id, (failed, liquidity) in enumerate(((0, 0), (1, 0), (0, 1)))
        ]
        connection.execute(market_totals.insert(), rows)

    async with Database(empty_url) as database:
        await database.run_sync(write_older)
        await upgrade(database)
        async with database.reading() as tx:
            rows = await tx.all(sa.select(market_totals).order_by(market_totals.c.market_id))
    assert [row.seen_ms for row in rows] == [7, UNSETTLED, UNSETTLED]
