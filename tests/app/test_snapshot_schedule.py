"""When the next snapshot of the journal is due, and the process that makes it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.domain.exchange.digest import digest
from tests.rigs.journals import PostgresJournals
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_placing, an_open_market, some_funds

from foretell.app import snapshot_schedule
from foretell.app.snapshot_schedule import Schedule, Snapshots
from foretell.domain.errors.storage import JournalDamaged, SnapshotFailed
from foretell.domain.treasury.commands import AdmitShard
from foretell.domain.treasury.folds import JournalKind, ShardFold
from foretell.engine.writer.engine import Engine
from foretell.engine.writer.treasury_engine import TreasuryEngine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Journal

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 16 * 1024


class Room:
    """An engine and what takes its snapshots; the tables are as far as a test says."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.engine = Engine(self.journal, lambda: NOW_MS)
        self.tables_sequence = 0
        self.salt = 0

    def snapshots(self, every: int = 50, *, keeps_all: bool = False) -> Snapshots:
        schedule = Schedule(every, keeps_all)
        return Snapshots(self.journal, lambda: self.tables_sequence, schedule)

    async def place(self, count: int) -> None:
        self.salt += count
        placings = [
            a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt)))
            for salt in range(self.salt - count, self.salt)
        ]
        await asyncio.gather(*(self.engine.submit(placing) for placing in placings))
        self.tables_sequence = self.engine.sequence


@pytest.fixture(params=["file", "postgresql"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Journal:
    if request.param == "file":
        return FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    return PostgresJournals(request.getfixturevalue("journal_url")).open("trading")


@pytest.fixture
async def room(journal: Journal) -> AsyncIterator[Room]:
    room = Room(journal)
    await room.engine.start()
    await room.engine.submit(an_open_market())
    await room.engine.submit(some_funds("alice"))
    yield room
    await room.engine.close()


async def test_a_snapshot_is_taken_when_enough_commands_came(room: Room) -> None:
    await room.place(47)
    assert not await room.snapshots().take_if_due()
    await room.place(1)
    assert await room.snapshots().take_if_due()
    assert await room.journal.snapshot_sequence() == 50
    assert not await room.snapshots().take_if_due()


async def test_with_an_interval_of_none_there_is_no_snapshot(room: Room) -> None:
    await room.place(100)
    assert not await room.snapshots(0).take_if_due()


async def test_a_journal_that_keeps_all_lets_go_of_older_snapshots_alone(room: Room) -> None:
    snapshot_schedule = room.snapshots(keeps_all=True)
    for _ in range(3):
        await room.place(60)
        assert await snapshot_schedule.take_if_due()
    assert [entry.sequence for entry in room.journal.entries()] == list(range(1, 183))


async def test_a_snapshot_is_never_ahead_of_the_tables(room: Room) -> None:
    await room.place(100)
    room.tables_sequence = 60
    assert await room.snapshots().take_if_due()
    assert await room.journal.snapshot_sequence() == 60


async def test_the_second_snapshot_lets_go_of_what_came_before_the_first(room: Room) -> None:
    for _ in range(2):
        await room.place(100)
        await room.snapshots().take_if_due()
    await room.place(7)
    with pytest.raises(JournalDamaged):
        next(room.journal.entries())
    snapshot = await asyncio.to_thread(room.journal.snapshot)
    assert snapshot is not None
    fold = ShardFold(snapshot.payload)
    for entry in room.journal.entries(snapshot.sequence):
        fold.take(entry.payload)
    assert digest(fold.state) == digest(room.engine.state)


async def test_what_takes_snapshots_knows_of_those_that_it_took(room: Room) -> None:
    snapshot_schedule = room.snapshots()
    await room.place(48)
    assert [await snapshot_schedule.take_if_due() for _ in range(2)] == [True, False]
    await room.place(50)
    assert [await snapshot_schedule.take_if_due() for _ in range(2)] == [True, False]
    assert await room.journal.snapshot_sequence() == 100


async def test_a_process_that_makes_no_snapshot_says_why(room: Room) -> None:
    await room.place(60)
    with pytest.raises(SnapshotFailed, match="63 was durable"):
        await room.snapshots()._take(63)


async def test_a_process_that_takes_too_long_is_ended(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_schedule, "DEADLINE_S", 0.01)
    await room.place(60)
    with pytest.raises(SnapshotFailed, match="longer than"):
        await room.snapshots().take_if_due()
    assert await room.journal.snapshot_sequence() == 0


async def test_after_a_failure_the_next_one_is_taken_in_its_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshot_schedule, "DEADLINE_S", 0.01)
    monkeypatch.setattr(snapshot_schedule, "RETRY_S", 0.01)
    await room.place(60)
    running = asyncio.create_task(room.snapshots().run())
    await asyncio.sleep(0.1)
    monkeypatch.setattr(snapshot_schedule, "DEADLINE_S", 60.0)
    async with asyncio.timeout(30):
        while await room.journal.snapshot_sequence() != 62:  # noqa: ASYNC110 - a process makes it
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_treasury_s_journal_is_kept_short_in_the_same_way(journal: Journal) -> None:
    engine = TreasuryEngine(journal, lambda: NOW_MS)
    await engine.start()
    snapshot_schedule = Snapshots(
        journal, lambda: engine.synced_sequence, Schedule(5), JournalKind.TREASURY
    )
    for number in range(1, 13):
        await engine.submit(AdmitShard(NOW_MS, f"shard {number}"))
        await snapshot_schedule.take_if_due()
    assert await journal.snapshot_sequence() == 10
    again = TreasuryEngine(journal, lambda: NOW_MS)
    await again._replay()
    assert again.state == engine.state
    assert len(again.state.shards) == 12
    await engine.close()
