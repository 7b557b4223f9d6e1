"""`foretell journal rebuild`: tables are rebuilt from the journal."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.clock import Clock
from tests.rigs.in_process import Call
from tests.rigs.journals import query
from tests.rigs.postgres import PostgresServer, migrate
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_placing, a_sell, an_open_market, some_funds

from foretell.domain.exchange.commands import Command
from foretell.domain.values.sharding import ShardNumber, ShardPlace
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.projection import Projection
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.segments import segment_paths
from foretell.journal.files.snapshots import compact
from foretell.journal.postgres.journal import lead
from foretell.journal.postgres.leases import Candidate, JournalPlace
from foretell.journal.snapshot_process import take_snapshot
from foretell.store.database import Database
from foretell.store.trading.projected import PROJECTED

SHARDS = 2
STORY: list[Command] = [
    an_open_market(),
    some_funds("alice", "bob"),
    a_placing(a_sell("bob", price_ticks=40)),
    *(
        a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt)), at_ms=NOW_MS + salt)
        for salt in range(60)
    ),
]

Rows = dict[str, Sequence[Any]]


async def run_engine(data: Path, commands: Sequence[Command] = ()) -> Rows:
    """Start an engine on a folder, submit commands, and return the rows of its tables."""
    async with Database(f"sqlite+aiosqlite:///{data / 'foretell.db'}") as database:
        engine = Engine(FileJournal(data / "journal", segment_bytes=16 * 1024), Clock().now_ms)
        projection = Projection(database)
        engine.subscribe(projection.on_committed)
        await projection.start()
        await engine.start(projection.sequence)
        for command in commands:
            await engine.submit(command)
        await projection.catch_up()
        await engine.close()
        return await rows_of(database)


async def rows_of(database: Database) -> Rows:
    async with database.reading() as tx:
        return {table.name: sorted(await tx.all(sa.select(table)), key=repr) for table in PROJECTED}


async def rows_in(data: Path) -> Rows:
    async with Database(f"sqlite+aiosqlite:///{data / 'foretell.db'}") as database:
        return await rows_of(database)


@pytest.fixture
def data(empty_database: Path, tmp_path: Path) -> Path:
    data = tmp_path / "data"
    data.mkdir()
    shutil.copy(empty_database, data / "foretell.db")
    return data


def test_emptied_tables_are_rebuilt_by_the_next_start(call: Call, data: Path) -> None:
    before = asyncio.run(run_engine(data, STORY))
    take_snapshot(data / "journal", 30)
    called = call("journal", "rebuild", "--data", str(data))
    count = sum(map(len, before.values()))
    assert called.out.strip() == f"{count} rows removed; the next start rebuilds the tables"
    assert not any(asyncio.run(rows_in(data)).values())
    assert asyncio.run(run_engine(data)) == before


def test_tables_stay_if_the_beginning_of_the_journal_was_removed(call: Call, data: Path) -> None:
    before = asyncio.run(run_engine(data, STORY))
    take_snapshot(data / "journal", 40)
    take_snapshot(data / "journal", 60)
    assert compact(data / "journal") > 0
    called = call("journal", "rebuild", "--data", str(data))
    assert called.code == 1
    assert "earlier commands were deleted" in called.err
    assert asyncio.run(rows_in(data)) == before


def test_tables_stay_while_a_process_uses_the_folder(call: Call, data: Path) -> None:
    before = asyncio.run(run_engine(data, STORY))
    lock = lock_folder(data)
    called = call("journal", "rebuild", "--data", str(data))
    unlock_folder(lock)
    assert called.code == 1
    assert "another process uses" in called.err
    assert asyncio.run(rows_in(data)) == before


def test_tables_stay_where_there_is_no_journal(call: Call, data: Path) -> None:
    """The settings may be those of another installation."""
    before = asyncio.run(run_engine(data, STORY))
    (data / "journal").rename(data / "elsewhere")
    called = call("journal", "rebuild", "--data", str(data))
    assert called.code == 1
    assert "there is no journal" in called.err
    assert asyncio.run(rows_in(data)) == before


def test_tables_stay_when_a_segment_in_the_middle_is_damaged(call: Call, data: Path) -> None:
    before = asyncio.run(run_engine(data, STORY))
    path = segment_paths(data / "journal")[1]
    raw = bytearray(path.read_bytes())
    raw[200] ^= 1
    path.write_bytes(raw)
    called = call("journal", "rebuild", "--data", str(data))
    assert called.code == 1
    assert "is damaged at byte" in called.err
    assert asyncio.run(rows_in(data)) == before


def test_tables_stay_where_the_journal_is_older_than_they_are(call: Call, data: Path) -> None:
    asyncio.run(run_engine(data, STORY[:3]))
    shutil.copytree(data / "journal", data / "older")
    before = asyncio.run(run_engine(data, STORY[3:]))
    shutil.rmtree(data / "journal")
    (data / "older").rename(data / "journal")
    called = call("journal", "rebuild", "--data", str(data))
    assert called.code == 1
    assert "the database is ahead of the journal" in called.err
    assert asyncio.run(rows_in(data)) == before


async def run_shards(url: str) -> Rows:
    """Start two shards with journals in PostgreSQL, and return the rows of their tables."""
    async with Database(url) as database:
        for number in range(SHARDS):
            journal = await lead(
                JournalPlace(url, ShardNumber(number), SHARDS), Candidate(b"h" * 16, "another")
            )
            engine = Engine(journal, Clock().now_ms)
            projection = Projection(database, ShardPlace(number, SHARDS).name)
            engine.subscribe(projection.on_committed)
            await projection.start()
            await engine.start(projection.sequence, projection.drain_if_large)
            for command in STORY if engine.sequence == number == 0 else ():
                await engine.submit(command)
            await engine.submit(an_open_market(f"of shard {number}"))
            await projection.catch_up()
            await engine.close()
        return await rows_of(database)


@pytest.fixture
def shared(postgres: PostgresServer, journal_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database with empty tables, for the journals of two shards."""
    asyncio.run(migrate(journal_url))
    postgres.empty_database()
    monkeypatch.setenv("FORETELL_DATABASE_URL", journal_url)
    monkeypatch.setenv("FORETELL_JOURNAL", "postgres")
    monkeypatch.setenv("FORETELL_SHARDS", str(SHARDS))
    return journal_url


def test_tables_of_several_shards_are_rebuilt(call: Call, data: Path, shared: str) -> None:
    before = asyncio.run(run_shards(shared))
    called = call("journal", "rebuild", "--data", str(data))
    assert f"{sum(map(len, before.values()))} rows removed" in called.out
    assert asyncio.run(run_shards(shared)) == before


def test_tables_stay_where_a_shard_has_removed_its_first_commands(
    call: Call, data: Path, shared: str
) -> None:
    asyncio.run(run_shards(shared))
    query(shared, "DELETE FROM journal.record WHERE shard = 0 AND sequence < 5")
    called = call("journal", "rebuild", "--data", str(data))
    assert "the journal of shard 0 begins with sequence 5" in called.err


async def call_while_led(url: str, call: Call, data: Path) -> str:
    """Return the error of the command while a process leads the second shard."""
    journal = await lead(JournalPlace(url, ShardNumber(1), SHARDS), Candidate(b"h" * 16, "another"))
    try:
        called = await asyncio.to_thread(call, "journal", "rebuild", "--data", str(data))
    finally:
        await journal.close()
    return called.err


def test_tables_stay_while_a_process_leads_a_shard(call: Call, data: Path, shared: str) -> None:
    asyncio.run(run_shards(shared))
    error = asyncio.run(call_while_led(shared, call, data))
    assert "shard 1 is led by another" in error
