"""The process that takes a snapshot by a replay."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.rigs.digest import digest
from tests.rigs.journals import PostgresJournals, query, written
from tests.rigs.values import TOKEN, a_buy, a_placing, an_open_market, some_funds

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, encode_command
from foretell.domain.exchange.snapshot import decode_state
from foretell.domain.exchange.state import State
from foretell.domain.treasury.commands import AdmitShard, encode_treasury_command
from foretell.domain.treasury.folds import JournalKind
from foretell.domain.treasury.snapshot import decode_treasury
from foretell.domain.values.sharding import ShardNumber
from foretell.journal import snapshot_process
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import fold
from foretell.journal.files.segments import segment_paths
from foretell.journal.files.snapshots import PART_SUFFIX, newest_snapshot, snapshot_name
from foretell.journal.framing import ALIGNMENT
from foretell.journal.port import FileJournalAddress, PostgresJournalAddress, Snapshot
from foretell.journal.postgres.journal import PostgresJournal
from foretell.journal.snapshot_process import (
    SnapshotJob,
    encode_job,
    take_snapshot,
    take_snapshot_of_rows,
)

COMMANDS: list[Command] = [
    an_open_market(),
    some_funds("alice"),
    *(a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt))) for salt in range(100)),
]


def state_after(count: int) -> str:
    state = State()
    for command in COMMANDS[:count]:
        apply(state, command)
    return digest(state)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A journal of 102 commands."""
    journal = FileJournal(tmp_path, segment_bytes=16 * 1024)
    asyncio.run(written(journal, [encode_command(command) for command in COMMANDS]))
    return tmp_path


@pytest.mark.parametrize("until", [1, 2, 50, 102])
def test_a_snapshot_is_the_state_after_its_sequence(folder: Path, until: int) -> None:
    assert take_snapshot(folder, until).name == snapshot_name(until)
    snapshot = newest_snapshot(folder)
    assert snapshot is not None
    assert snapshot.sequence == until
    assert digest(decode_state(snapshot.payload)) == state_after(until)


def test_the_next_snapshot_begins_with_the_one_before(folder: Path) -> None:
    """The records before the first one are missing."""
    take_snapshot(folder, 60)
    segment_paths(folder)[0].unlink()
    take_snapshot(folder, 102)
    snapshot = newest_snapshot(folder)
    assert snapshot is not None
    assert digest(decode_state(snapshot.payload)) == state_after(102)


def test_a_state_from_a_snapshot_and_the_rest_is_that_of_the_whole_journal(folder: Path) -> None:
    take_snapshot(folder, 60)
    state, sequence = fold(folder, newest_snapshot(folder))
    assert (digest(state), sequence) == (state_after(102), 102)


def test_nothing_after_the_sequence_is_read(folder: Path) -> None:
    """Another process may be writing it."""
    path = segment_paths(folder)[-1]
    raw = path.read_bytes().rstrip(b"\x00")
    path.write_bytes(raw + bytes(-len(raw) % ALIGNMENT) + b"\xff" * 400)
    take_snapshot(folder, 100)
    with pytest.raises(JournalDamaged):
        fold(folder, None)


def test_a_journal_that_ends_too_early_makes_no_snapshot(folder: Path) -> None:
    with pytest.raises(JournalDamaged, match="ends at 102, and sequence 103 was durable"):
        take_snapshot(folder, 103)
    assert newest_snapshot(folder) is None


@contextlib.contextmanager
def started(job: SnapshotJob) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(
        [sys.executable, "-m", snapshot_process.__name__],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(encode_job(job))
        process.stdin.flush()
        yield process


def of_folder(folder: Path, until: int) -> SnapshotJob:
    return SnapshotJob(address=FileJournalAddress(str(folder)), until=until)


def error_of(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    assert process.wait(60) == 1
    return process.stderr.read().decode()


def test_the_process_takes_a_snapshot_while_another_uses_the_folder(folder: Path) -> None:
    (folder / "lock").write_bytes(b"")
    with started(of_folder(folder, 102)) as process:
        assert process.wait(60) == 0
    assert isinstance(newest_snapshot(folder), Snapshot)


@pytest.mark.parametrize("until", [103, 10**6])
def test_the_process_prints_one_line_when_it_takes_no_snapshot(folder: Path, until: int) -> None:
    with started(of_folder(folder, until)) as process:
        assert error_of(process).count("\n") == 1
    assert newest_snapshot(folder) is None


def test_the_process_ends_with_its_parent(folder: Path) -> None:
    """It blocks, as on a long journal, and its standard input closes, as after a kill."""
    fifo = folder / f"{'9' * 20}.journal"
    os.mkfifo(fifo)
    with started(of_folder(folder, 10**6)) as process:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 1
    assert not list(folder.glob(f"*{PART_SUFFIX}"))


@pytest.fixture
async def journal(journal_url: str) -> AsyncIterator[PostgresJournal]:
    """The same commands in a database, with the lease held."""
    shards = PostgresJournals(journal_url)
    await written(shards.open("j"), [encode_command(command) for command in COMMANDS])
    journal = shards.open("j")
    yield journal
    await journal.close()


@pytest.mark.anyio
@pytest.mark.parametrize("until", [1, 50, 102])
async def test_a_snapshot_of_rows_is_the_state_after_its_sequence(
    journal: PostgresJournal, until: int
) -> None:
    await asyncio.to_thread(take_snapshot_of_rows, journal.begin_snapshot(), until)
    snapshot = await asyncio.to_thread(journal.snapshot)
    assert snapshot is not None
    assert snapshot.sequence == await journal.snapshot_sequence() == until
    assert digest(decode_state(snapshot.payload)) == state_after(until)


@pytest.mark.anyio
async def test_the_next_snapshot_of_rows_begins_with_the_one_before(
    journal: PostgresJournal,
) -> None:
    """What came before the older of two is removed."""
    for until in (40, 60):
        await asyncio.to_thread(take_snapshot_of_rows, journal.begin_snapshot(), until)
    assert await journal.compact(keeps_all=True) == 0
    assert await journal.compact() == 40
    await asyncio.to_thread(take_snapshot_of_rows, journal.begin_snapshot(), 102)
    snapshot = await asyncio.to_thread(journal.snapshot)
    assert snapshot is not None
    assert digest(decode_state(snapshot.payload)) == state_after(102)


@pytest.mark.anyio
async def test_rows_that_end_too_early_make_no_snapshot(journal: PostgresJournal) -> None:
    with pytest.raises(JournalDamaged, match="sequence 103 was durable and is missing"):
        await asyncio.to_thread(take_snapshot_of_rows, journal.begin_snapshot(), 103)
    assert await journal.snapshot_sequence() == 0


@pytest.mark.anyio
async def test_the_process_of_a_parent_that_lost_the_lease_keeps_no_snapshot(
    journal: PostgresJournal, journal_url: str
) -> None:
    job = SnapshotJob(address=journal.begin_snapshot(), until=102)
    query(journal_url, "UPDATE journal.lease SET holder = 'other', epoch = epoch + 1")
    with started(job) as process:
        error = await asyncio.to_thread(error_of, process)
    assert "lease of shard 0 is lost: a snapshot was refused" in error
    assert await journal.snapshot_sequence() == 0


@pytest.mark.anyio
async def test_a_process_that_cannot_reach_the_database_prints_no_address() -> None:
    secret = "postgresql+asyncpg://me:hunter2@127.0.0.1:1/none"
    with started(
        SnapshotJob(address=PostgresJournalAddress(secret, ShardNumber(0), b""), until=1)
    ) as process:
        error = await asyncio.to_thread(error_of, process)
    assert "the journal has failed: ConnectionRefusedError" in error
    assert "hunter2" not in error


def test_a_snapshot_of_the_treasurys_journal_is_the_treasury(tmp_path: Path) -> None:
    command = AdmitShard(1, "north")
    asyncio.run(written(FileJournal(tmp_path), [encode_treasury_command(command)]))
    take_snapshot(tmp_path, 1, JournalKind.TREASURY)
    snapshot = newest_snapshot(tmp_path)
    assert snapshot is not None
    assert decode_treasury(snapshot.payload).shards == {"north": None}
