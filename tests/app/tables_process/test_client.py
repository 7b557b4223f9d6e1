"""The tables of an engine in a real process: whatever happens to it, they equal a fresh fold."""

import asyncio
import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import pytest
import sqlalchemy as sa
from tests.app.tables_process.rig import (
    PEOPLE,
    QUICK,
    SEGMENT_BYTES,
    SMALL,
    SOON_S,
    TablesRig,
    a_tables_rig,
    some_trading,
    submit,
    until,
)
from tests.rigs.values import an_open_market, some_funds

from foretell.app.tables_process.client import TablesLimits
from foretell.app.tables_process.feed import FeedLimits
from foretell.domain.errors.command import ChildRefused
from foretell.domain.errors.storage import StoreUnavailable
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.snapshot_process import take_snapshot
from foretell.runtime.worker import RETRY_S
from foretell.store.database import Database
from foretell.store.trading.trades import TOPIC

pytestmark = pytest.mark.anyio

STDERR: Final = 2
LOG_BYTES: Final = 16 * 1024
"""Room for the log of a process, which is less than a database takes."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture
async def database(database_file: Path) -> AsyncIterator[Database]:
    async with Database(f"sqlite+aiosqlite:///{database_file}") as database:
        yield database


@contextlib.asynccontextmanager
async def running(
    folder: Path, database: Database, empty_database: Path, limits: TablesLimits = QUICK
) -> AsyncIterator[TablesRig]:
    journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
    copied = Path(shutil.copy(empty_database, folder.with_name("empty.db")))
    async with a_tables_rig(journal, database, copied, limits) as rig:
        yield rig


@pytest.fixture
async def rig(folder: Path, database: Database, empty_database: Path) -> AsyncIterator[TablesRig]:
    async with running(folder, database, empty_database) as rig:
        await rig.open()
        yield rig


@pytest.fixture
async def small(folder: Path, database: Database, empty_database: Path) -> AsyncIterator[TablesRig]:
    """A rig that keeps few commands for its process."""
    async with running(folder, database, empty_database, SMALL) as rig:
        await rig.open()
        yield rig


async def test_the_tables_hold_what_was_committed(rig: TablesRig) -> None:
    await rig.trade(300)
    await rig.check()
    assert rig.tables.sequence == rig.engine.published_sequence
    assert not rig.tables.is_behind


async def test_a_commit_of_the_process_wakes_watches_here(rig: TablesRig) -> None:
    watch = await rig.database.watch(TOPIC)
    await rig.trade(50)
    async with asyncio.timeout(SOON_S):
        assert await watch.wait(SOON_S)


async def test_a_request_does_not_wait_for_more_commands(
    folder: Path, database: Database, empty_database: Path
) -> None:
    slow = QUICK._replace(send_every_s=SOON_S)
    async with running(folder, database, empty_database, slow) as rig:
        await rig.open()
        await rig.trade(5)
        await rig.check()


async def test_a_close_leaves_tables_that_have_everything(
    folder: Path, database: Database, empty_database: Path
) -> None:
    limits = QUICK._replace(close_deadline_s=SOON_S)
    async with running(folder, database, empty_database, limits) as rig:
        await rig.open()
        await rig.trade(100)
    assert rig.tables.sequence == rig.engine.published_sequence
    async with running(folder, database, empty_database) as rig:
        assert rig.tables.sequence == rig.engine.sequence
        await rig.check()


@pytest.mark.parametrize("limits", [QUICK, SMALL], ids=["fed again", "from the journal"])
async def test_a_process_that_is_killed_at_any_time_loses_and_doubles_nothing(
    folder: Path, database: Database, empty_database: Path, limits: TablesLimits
) -> None:
    rng = random.Random(1)
    async with running(folder, database, empty_database, limits) as rig:
        await rig.open()
        for _ in range(6):
            trading = asyncio.create_task(rig.trade(150))
            await asyncio.sleep(rng.uniform(0, 0.4))
            rig.kill()
            await trading
        await rig.check()


async def test_what_had_no_room_is_read_from_the_journal(small: TablesRig) -> None:
    await small.written()
    small.kill()
    await small.trade(200)
    await small.check()
    await small.trade(3)
    await small.check()


async def test_a_snapshot_shortens_the_reading_of_the_journal(
    small: TablesRig, folder: Path
) -> None:
    await small.trade(100)
    await small.written()
    await asyncio.to_thread(take_snapshot, folder, small.tables.sequence)
    small.kill()
    await small.trade(100)
    await small.check()


async def test_a_process_that_does_not_read_holds_nobody_up(small: TablesRig) -> None:
    await small.written()
    pid = await small.freeze()
    before = small.tables.sequence
    async with asyncio.timeout(SOON_S):
        await small.trade(2_000)
    assert small.tables.sequence == before
    os.kill(pid, signal.SIGCONT)
    await small.check()


async def test_a_process_that_hangs_is_killed(
    folder: Path, database: Database, empty_database: Path
) -> None:
    limits = QUICK._replace(hangs_after_s=10.0)
    async with running(folder, database, empty_database, limits) as rig:
        await rig.open()
        await rig.written()
        frozen = await rig.freeze()
        await rig.trade(20)
        await rig.check()
        assert rig.pid != frozen


async def test_tables_wait_for_a_database_that_another_writer_locks(
    rig: TablesRig, database_file: Path
) -> None:
    await rig.written()
    with contextlib.closing(sqlite3.connect(database_file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await rig.trade(100)
        await asyncio.sleep(0.5)
        assert rig.tables.sequence < rig.engine.published_sequence
        other.execute("COMMIT")
    await rig.check()


async def test_tables_wait_for_a_database_that_fails(rig: TablesRig) -> None:
    await rig.written()
    await rename(rig.database, "quotes", "hidden")
    await rig.trade(100)
    await asyncio.sleep(0.7)
    pid = rig.pid
    rig.kill()
    await until(lambda: rig.tables.child.process is not None and rig.pid != pid)
    await rename(rig.database, "hidden", "quotes")
    await rig.check()


async def test_a_start_drains_tables_that_are_thousands_of_commands_behind(
    folder: Path, database: Database, empty_database: Path
) -> None:
    engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), lambda: 0)
    await engine.start()
    await submit(engine, an_open_market(), some_funds(*PEOPLE), *some_trading(3_000))
    await engine.close()
    limits = QUICK._replace(held_at_start_max=500)
    async with running(folder, database, empty_database, limits) as rig:
        assert rig.engine.sequence - rig.tables.sequence <= 500 + 2_000
        await rig.check()


async def test_a_start_is_refused_while_the_tables_do_not_advance(
    folder: Path, database: Database, empty_database: Path
) -> None:
    engine = Engine(FileJournal(folder, segment_bytes=SEGMENT_BYTES), lambda: 0, replay_batch=10)
    await engine.start()
    await submit(engine, an_open_market(), some_funds(*PEOPLE), *some_trading(2_100))
    await engine.close()
    await rename(database, "trades", "hidden")
    limits = QUICK._replace(held_at_start_max=10, progress_deadline_s=0.5, close_deadline_s=0.1)
    with pytest.raises(StoreUnavailable, match="the tables do not advance"):
        async with running(folder, database, empty_database, limits):
            pass


async def test_tables_that_were_set_back_are_written_again(
    rig: TablesRig, database_file: Path
) -> None:
    await rig.trade(50)
    await rig.written()
    copy = database_file.with_name("older.db")
    with (
        contextlib.closing(sqlite3.connect(database_file)) as present,
        contextlib.closing(sqlite3.connect(copy)) as older,
    ):
        present.backup(older)
        await rig.trade(50)
        await rig.written()
        older.backup(present)
    await rig.trade(50)
    await rig.check()


async def test_tables_that_lack_what_the_journal_removed_end_the_supervision(
    small: TablesRig, folder: Path
) -> None:
    await small.trade(2_000)
    await small.written()
    for _ in range(2):
        await asyncio.to_thread(take_snapshot, folder, small.tables.sequence)
        await small.trade(10)
        await small.written()
    assert await small.engine.journal.compact() > 0
    async with small.database.writing() as tx:
        await tx.execute(sa.text("UPDATE projections SET sequence = 7"))
    await small.trade(1)
    with pytest.raises(ExceptionGroup) as ended:
        await asyncio.wait_for(small.tables.run(), SOON_S)
    assert isinstance(ended.value.exceptions[0], ChildRefused)


async def rename(database: Database, table: str, name: str) -> None:
    async with database.writing() as tx:
        await tx.execute(sa.text(f"ALTER TABLE {table} RENAME TO {name}"))


def test_the_feed_of_an_engine_is_bounded() -> None:
    assert TablesLimits().feed == FeedLimits(commands_max=50_000, bytes_max=64 * 1024 * 1024)


@pytest.fixture
def process_log(tmp_path: Path) -> Iterator[Path]:
    """The file that processes write their logs to that start from now on."""
    path, before = tmp_path / "log", os.dup(STDERR)
    with path.open("ab") as file:
        os.dup2(file.fileno(), STDERR)
    yield path
    os.dup2(before, STDERR)
    os.close(before)


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


async def test_attack_l3_tables_without_room_are_a_line_and_no_trace(
    process_log: Path, small: TablesRig
) -> None:
    """The loop once wrote a traceback a second. Here its files may not grow, but for its log."""
    await small.written()
    resource.prlimit(small.pid, resource.RLIMIT_FSIZE, (LOG_BYTES, resource.RLIM_INFINITY))
    await small.trade(1_000)
    await until(lambda: "StoreUnavailable" in process_log.read_text())
    await asyncio.sleep(4 * RETRY_S)
    lines = await asyncio.to_thread(lines_of, process_log)
    no_limit = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(small.pid, resource.RLIMIT_FSIZE, no_limit)
    await small.check()
    assert [line for line in lines if "Traceback" in line] == []
    assert len(lines) == 1, lines
