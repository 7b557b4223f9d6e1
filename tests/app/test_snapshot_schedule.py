"""Snapshots of the journal: when one is due, and the process that makes it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.digest import digest
from tests.rigs.journals import PostgresJournals
from tests.rigs.values import NOW_MS, TOKEN, a_buy, a_placing, an_open_market, some_funds

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
LEASE_S = 60.0
"""A machine that is busy with other tests does not let one of seconds be renewed in time."""
WITHIN_S = 120.0


class SnapshotRig:
    """An engine and the snapshots of its journal; a test sets how far the tables are."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.engine = Engine(self.journal, lambda: NOW_MS)
        self.tables_sequence = 0
        self.salt = 0

    def snapshots(self, every: int = 50, **limits: Any) -> Snapshots:
        schedule = Schedule(every, **limits)
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
    return PostgresJournals(request.getfixturevalue("journal_url"), LEASE_S).open("trading")


@pytest.fixture
async def rig(journal: Journal) -> AsyncIterator[SnapshotRig]:
    rig = SnapshotRig(journal)
    await rig.engine.start()
    await rig.engine.submit(an_open_market())
    await rig.engine.submit(some_funds("alice"))
    yield rig
    await rig.engine.close()


@pytest.mark.case("A-07")
async def test_a_snapshot_is_taken_when_enough_commands_came(rig: SnapshotRig) -> None:
    await rig.place(47)
    assert not await rig.snapshots().take_if_due()
    await rig.place(1)
    assert await rig.snapshots().take_if_due()
    assert await rig.journal.snapshot_sequence() == 50
    assert not await rig.snapshots().take_if_due()


async def test_an_interval_of_zero_takes_no_snapshot(rig: SnapshotRig) -> None:
    await rig.place(100)
    assert not await rig.snapshots(0).take_if_due()


async def test_a_journal_that_keeps_all_removes_older_snapshots_alone(rig: SnapshotRig) -> None:
    snapshots = rig.snapshots(keeps_all=True)
    for _ in range(3):
        await rig.place(60)
        assert await snapshots.take_if_due()
    assert [entry.sequence for entry in rig.journal.entries()] == list(range(1, 183))


async def test_a_snapshot_is_never_ahead_of_the_tables(rig: SnapshotRig) -> None:
    await rig.place(100)
    rig.tables_sequence = 60
    assert await rig.snapshots().take_if_due()
    assert await rig.journal.snapshot_sequence() == 60


async def test_the_second_snapshot_removes_the_commands_before_the_first(rig: SnapshotRig) -> None:
    for _ in range(2):
        await rig.place(100)
        await rig.snapshots().take_if_due()
    await rig.place(7)
    with pytest.raises(JournalDamaged):
        next(rig.journal.entries())
    snapshot = await asyncio.to_thread(rig.journal.snapshot)
    assert snapshot is not None
    fold = ShardFold(snapshot.payload)
    for entry in rig.journal.entries(snapshot.sequence):
        fold.take(entry.payload)
    assert digest(fold.state) == digest(rig.engine.state)


async def test_a_snapshot_counts_from_the_one_before(rig: SnapshotRig) -> None:
    snapshots = rig.snapshots()
    await rig.place(48)
    assert [await snapshots.take_if_due() for _ in range(2)] == [True, False]
    await rig.place(50)
    assert [await snapshots.take_if_due() for _ in range(2)] == [True, False]
    assert await rig.journal.snapshot_sequence() == 100


async def test_a_snapshot_that_fails_says_why(rig: SnapshotRig) -> None:
    await rig.place(60)
    with pytest.raises(SnapshotFailed, match="63 was durable"):
        await rig.snapshots().take(63)


async def test_a_process_that_takes_too_long_is_ended(rig: SnapshotRig) -> None:
    await rig.place(60)
    with pytest.raises(SnapshotFailed, match="longer than"):
        await rig.snapshots(deadline_s=0.01).take_if_due()
    assert await rig.journal.snapshot_sequence() == 0


async def test_a_snapshot_that_failed_is_taken_later(
    rig: SnapshotRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshots, attempts = rig.snapshots(deadline_s=0.01, retry_s=0.01), list[int]()
    take = snapshots.take

    async def noted(until: int) -> None:
        attempts.append(until)
        await take(until)

    monkeypatch.setattr(snapshots, "take", noted)
    await rig.place(60)
    running = asyncio.create_task(snapshots.run())
    async with asyncio.timeout(WITHIN_S):
        while not attempts:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.02)
        snapshots.schedule = snapshots.schedule._replace(deadline_s=WITHIN_S)
        while await rig.journal.snapshot_sequence() != 62:  # noqa: ASYNC110 - a process makes it
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len(attempts) > 1


async def test_a_treasury_s_journal_has_snapshots_too(journal: Journal) -> None:
    engine = TreasuryEngine(journal, lambda: NOW_MS)
    await engine.start()
    snapshots = Snapshots(
        journal, lambda: engine.synced_sequence, Schedule(5), JournalKind.TREASURY
    )
    for number in range(1, 13):
        await engine.submit(AdmitShard(NOW_MS, f"shard {number}"))
        await snapshots.take_if_due()
    assert await journal.snapshot_sequence() == 10
    again = TreasuryEngine(journal, lambda: NOW_MS)
    await again._replay()
    assert again.state == engine.state
    assert len(again.state.shards) == 12
    await engine.close()
