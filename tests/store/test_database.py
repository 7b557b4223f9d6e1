"""The database connection, on SQLite and on PostgreSQL."""

import asyncio
import contextlib
import shutil
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.postgres import PostgresServer

from foretell.domain.errors.storage import StoreUnavailable
from foretell.store.database import (
    READER_CACHE_KIB,
    READERS_MAX,
    ROWS_PER_STATEMENT_MAX,
    SMALL_CACHES,
    WRITER_CACHE_KIB,
    Database,
)
from foretell.store.sqlite import transactions as sqlite_transactions
from foretell.store.tables import projections

pytestmark = pytest.mark.anyio

SOON_S = 60.0
PARTS = 80
HELD_S = 0.2


def a_row(name: str, sequence: int = 1) -> dict[str, Any]:
    return {"name": name, "sequence": sequence}


async def write(database: Database, *rows: dict[str, Any]) -> None:
    async with database.writing() as tx:
        await tx.execute(projections.insert(), rows)


async def names(database: Database) -> list[str]:
    async with database.reading() as tx:
        return [row.name for row in await tx.all(sa.select(projections).order_by("name"))]


async def test_written_rows_are_read(database: Database) -> None:
    await write(database, a_row("a"), a_row("b"))
    assert await names(database) == ["a", "b"]


async def test_a_transaction_that_raises_is_rolled_back(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        await fail_after_writing(database)
    assert await names(database) == []


async def fail_after_writing(database: Database) -> None:
    async with database.writing() as tx:
        await tx.execute(projections.insert().values(a_row("a")))
        await tx.announce("fills")
        raise ZeroDivisionError


async def test_a_cancelled_writer_releases_its_lock(empty_database: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(empty_database, tmp_path / "foretell.db"))
    rows = [(f"row {number}", 1) for number in range(50)]

    async def write_and_undo(database: Database) -> None:
        async with database.writing() as tx:
            await tx.upsert_rows(projections, rows)
            await tx.execute(projections.delete())

    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        loop = asyncio.get_running_loop()
        await write_and_undo(database)
        started = loop.time()
        await write_and_undo(database)
        whole_s = loop.time() - started
        for part in range(PARTS):
            writer = asyncio.create_task(write_and_undo(database))
            await asyncio.sleep(whole_s * part / PARTS)
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            take_lock(path)


def take_lock(path: Path) -> None:
    """Write from another program, which raises when it does not get the lock soon."""
    with contextlib.closing(sqlite3.connect(path, timeout=SOON_S, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")


async def test_a_writer_begins_once_another_program_has_ended(
    empty_database: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(empty_database, tmp_path / "foretell.db"))
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            writer = asyncio.create_task(write(database, a_row("a")))
            assert (await asyncio.wait([writer], timeout=HELD_S))[0] == set()
            other.execute("COMMIT")
            async with asyncio.timeout(SOON_S):
                await writer
        assert await names(database) == ["a"]


async def test_a_writer_gives_up_while_another_program_keeps_writing(
    empty_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_transactions, "BUSY_TIMEOUT_MS", 50)
    path = Path(shutil.copy(empty_database, tmp_path / "foretell.db"))
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreUnavailable, match="another program holds a lock"):
                await write(database, a_row("a"))
        await write(database, a_row("b"))
        assert await names(database) == ["b"]


async def test_rows_are_written_unconverted(database: Database) -> None:
    async with database.writing() as tx:
        await tx.insert_rows(projections, [("a", 1), ("b", 2)])
        await tx.upsert_rows(projections, [("b", 3), ("c", 4)])
        await tx.upsert_rows(projections, [])
    async with database.reading() as tx:
        rows = await tx.all(sa.select(projections).order_by("name"))
    assert [tuple(row) for row in rows] == [("a", 1), ("b", 3), ("c", 4)]


async def test_a_statement_returns_how_many_rows_it_changed(database: Database) -> None:
    await write(database, a_row("a"), a_row("b"), a_row("c", 2))
    async with database.writing() as tx:
        changed = projections.update().where(projections.c.sequence == 1).values(sequence=9)
        assert await tx.execute(changed) == 2
        assert await tx.execute(changed) == 0


@pytest.mark.parametrize("count", [0, 1, ROWS_PER_STATEMENT_MAX, 2 * ROWS_PER_STATEMENT_MAX + 1])
async def test_any_number_of_rows_is_written(database: Database, count: int) -> None:
    await write(database, *[a_row(f"{number:05}") for number in range(count)])
    assert len(await names(database)) == count


async def test_a_query_returns_its_rows_its_first_row_or_its_first_value(
    database: Database,
) -> None:
    await write(database, a_row("a", 7), a_row("b", 8))
    query = sa.select(projections.c.sequence, projections.c.name).order_by("name")
    nothing = query.where(projections.c.name == "unknown")
    async with database.reading() as tx:
        assert [tuple(row) for row in await tx.all(query)] == [(7, "a"), (8, "b")]
        first = await tx.first(query)
        assert first is not None
        assert tuple(first) == (7, "a")
        assert await tx.scalar(query) == 7
        assert (await tx.all(nothing), await tx.first(nothing)) == ([], None)
        assert await tx.scalar(nothing) is None


async def test_a_reader_sees_one_instant(database: Database) -> None:
    await write(database, a_row("a"))
    count = sa.select(sa.func.count()).select_from(projections)
    async with database.reading() as tx:
        assert await tx.scalar(count) == 1
        await write(database, a_row("b"))
        assert await tx.scalar(count) == 1
    assert len(await names(database)) == 2


async def test_a_reader_does_not_see_what_is_not_committed(database: Database) -> None:
    async with database.writing() as tx:
        await tx.execute(projections.insert().values(a_row("a")))
        assert await names(database) == []
    assert await names(database) == ["a"]


async def test_concurrent_writers_that_read_first_lose_no_update(database: Database) -> None:
    await write(database, a_row("a", 0))
    await asyncio.gather(*[add_one(database) for _ in range(20)])
    async with database.reading() as tx:
        assert await tx.scalar(sa.select(projections.c.sequence)) == 20


async def add_one(database: Database) -> None:
    async with database.writing() as tx:
        sequence = await tx.scalar(sa.select(projections.c.sequence).with_for_update())
        await asyncio.sleep(0)
        await tx.execute(projections.update().values(sequence=sequence + 1))


async def test_many_readers_read_at_once(database: Database) -> None:
    await write(database, a_row("a"))
    assert await asyncio.gather(*[names(database) for _ in range(30)]) == [["a"]] * 30


async def test_a_duplicate_key_is_refused(database: Database) -> None:
    await write(database, a_row("a"))
    with pytest.raises(sa.exc.IntegrityError):
        await write(database, a_row("a"))
    assert await names(database) == ["a"]


async def test_an_announcement_wakes_after_the_commit(database: Database) -> None:
    watch = await database.watch("fills")
    async with database.writing() as tx:
        await tx.announce("fills")
        assert not await watch.wait(0.05)
    assert await watch.wait(SOON_S)


async def test_a_topic_announced_twice_wakes_once(database: Database) -> None:
    watch = await database.watch("fills")
    async with database.writing() as tx:
        await tx.announce("fills")
        await tx.announce("fills")
    assert await watch.wait(SOON_S)
    assert not await watch.wait(0.05)


async def test_a_transaction_that_raises_wakes_no_watch(database: Database) -> None:
    watch = await database.watch("fills")
    with pytest.raises(ZeroDivisionError):
        await fail_after_writing(database)
    assert not await watch.wait(0.05)


async def test_a_watch_wakes_for_all_its_topics_and_no_other(database: Database) -> None:
    keys, both = await database.watch("keys"), await database.watch("fills", "keys")
    async with database.writing() as tx:
        await tx.announce("fills")
    assert await both.wait(SOON_S)
    assert not await keys.wait(0.05)


async def test_synchronous_work_is_run_and_committed(database: Database) -> None:
    def work(connection: sa.Connection) -> None:
        connection.execute(projections.insert().values(a_row("a")))

    await database.run_sync(work)
    assert await names(database) == ["a"]


async def test_a_database_reports_whether_it_is_sqlite(
    database: Database, each_database_url: str
) -> None:
    is_sqlite = each_database_url.startswith("sqlite")
    assert database.is_sqlite is is_sqlite
    async with database.reading() as tx:
        assert tx.dialect == ("sqlite" if is_sqlite else "postgresql")


async def test_sqlite_syncs_every_commit_and_checks_foreign_keys(tmp_path: Path) -> None:
    url, pragmas = (
        f"sqlite+aiosqlite:///{tmp_path / 'a.db'}",
        "journal_mode synchronous foreign_keys",
    )
    async with Database(url) as database, database.writing() as tx:
        seen = [await tx.scalar(sa.text(f"PRAGMA {name}")) for name in pragmas.split()]
    assert seen == ["wal", 2, 1]


async def test_the_writer_of_sqlite_has_a_larger_cache_than_readers(tmp_path: Path) -> None:
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database:
        async with database.writing() as tx:
            kept = await tx.scalar(sa.text("PRAGMA cache_size"))
        async with database.reading() as tx:
            kept_by_reader = await tx.scalar(sa.text("PRAGMA cache_size"))
    assert (kept, kept_by_reader) == (-WRITER_CACHE_KIB, -READER_CACHE_KIB)
    assert kept < kept_by_reader


async def test_a_process_that_reads_few_rows_has_small_caches(tmp_path: Path) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}"
    async with Database(url, caches=SMALL_CACHES) as database:
        for begin in (database.writing, database.reading, database.public_reading):
            async with begin() as tx:
                assert await tx.scalar(sa.text("PRAGMA cache_size")) == -SMALL_CACHES.writer_kib


async def test_reads_of_sqlite_that_do_not_overlap_share_a_connection(tmp_path: Path) -> None:
    """A finding: reads took turns over all connections, so each of them filled a cache of pages and statements."""
    async with Database(f"sqlite+aiosqlite:///{tmp_path / 'foretell.db'}") as database:
        async with contextlib.AsyncExitStack() as stack:
            for number in range(1, READERS_MAX + 1):
                tx = await stack.enter_async_context(database.reading())
                await tx.execute(sa.text(f"PRAGMA cache_size={number}"))
        used = set()
        for _ in range(3 * READERS_MAX):
            async with database.reading() as tx:
                used.add(await tx.scalar(sa.text("PRAGMA cache_size")))
    assert len(used) == 1


def a_sqlite_that_is_not_there(_: pytest.FixtureRequest) -> str:
    return "sqlite+aiosqlite:////nowhere/at/all/foretell.db"


def a_postgres_that_is_not_there(_: pytest.FixtureRequest) -> str:
    return "postgresql+asyncpg://nobody@127.0.0.1:1/nothing"


def a_database_that_is_not_there(request: pytest.FixtureRequest) -> str:
    server: PostgresServer = request.getfixturevalue("postgres")
    url = sa.make_url(server.database_url).set(database="unknown")
    return url.render_as_string(hide_password=False)


@pytest.fixture(
    params=[
        a_sqlite_that_is_not_there,
        a_postgres_that_is_not_there,
        a_database_that_is_not_there,
    ]
)
async def unreachable(request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    async with Database(request.param(request)) as database:
        yield database
    await asyncio.sleep(0.1)  # the driver's thread still has a word for the loop


async def test_a_database_that_cannot_be_reached_is_unavailable(unreachable: Database) -> None:
    with pytest.raises(StoreUnavailable):
        await names(unreachable)
    with pytest.raises(StoreUnavailable):
        await write(unreachable, a_row("a"))
    with pytest.raises(StoreUnavailable):
        await unreachable.run_sync(lambda _: None)


async def test_the_refusal_does_not_contain_the_databases_address(unreachable: Database) -> None:
    with pytest.raises(StoreUnavailable) as refusal:
        await names(unreachable)
    assert "nobody" not in str(refusal.value)
    assert "/" not in str(refusal.value)


BACKEND = sa.text("SELECT pg_backend_pid()")


async def end_backend(server: PostgresServer, process_id: int) -> None:
    async with Database(server.database_url) as other, other.writing() as tx:
        await tx.scalar(sa.select(sa.func.pg_terminate_backend(process_id)))


async def be_cut_off_between_statements(database: Database, server: PostgresServer) -> None:
    async with database.writing() as tx:
        await end_backend(server, await tx.scalar(BACKEND))
        await tx.scalar(BACKEND)


async def be_cut_off_during_a_statement(database: Database, server: PostgresServer) -> None:
    async with database.writing() as tx, contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(
            asyncio.wait, [asyncio.create_task(end_backend(server, await tx.scalar(BACKEND)))]
        )
        await tx.scalar(sa.text("SELECT pg_sleep(20)"))


async def take_too_long(database: Database, _: PostgresServer) -> None:
    async with database.writing() as tx:
        await tx.execute(sa.text("SET LOCAL statement_timeout = 50"))
        await tx.scalar(sa.text("SELECT pg_sleep(20)"))


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        (be_cut_off_between_statements, "InterfaceError|InternalError|SQLSTATE 08"),
        (be_cut_off_during_a_statement, "SQLSTATE 08"),
        (take_too_long, "SQLSTATE 57"),
    ],
)
async def test_a_server_that_fails_during_a_transaction_is_unavailable(
    postgres: PostgresServer, fault: Any, cause: str
) -> None:
    async with Database(postgres.database_url) as database:
        with pytest.raises(StoreUnavailable, match=cause):
            await fault(database, postgres)


async def test_a_connection_lost_between_transactions_is_replaced(
    postgres: PostgresServer,
) -> None:
    async with Database(postgres.database_url) as database:
        async with database.writing() as tx:
            process_id = await tx.scalar(BACKEND)
        await end_backend(postgres, process_id)
        async with database.writing() as tx:
            assert await tx.scalar(BACKEND) != process_id


async def test_text_that_postgres_cannot_store_is_an_error_of_the_caller(
    postgres: PostgresServer,
) -> None:
    async with Database(postgres.database_url) as database:
        with pytest.raises(sa.exc.DBAPIError):
            await write(database, a_row("\0"))


async def test_two_processes_on_postgres_wake_each_other(postgres: PostgresServer) -> None:
    async with Database(postgres.database_url) as one, Database(postgres.database_url) as two:
        watch = await one.watch("fills")
        async with two.writing() as tx:
            await tx.announce("fills")
        assert await watch.wait(SOON_S)
