"""When the next snapshot of the journal is due, and the process that makes it."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.build import NOW_MS, TOKEN, a_buy, a_placing, an_open_market, some_funds
from tests.domain.digest import digest

from foretell.app import snapshots
from foretell.app.snapshots import Snapshots
from foretell.domain.storage_errors import SnapshotFailed
from foretell.journal.file import FileJournal
from foretell.journal.segments import has_entries_after
from foretell.journal.snapshots import newest_sequence, snapshot_name
from foretell.trading.engine import Engine

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 16 * 1024


class Room:
    """An engine and what takes its snapshots; the tables are as far as a test says."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES)
        self.engine = Engine(self.journal, lambda: NOW_MS)
        self.tables_sequence = 0
        self.salt = 0

    def snapshots(self, every: int = 50) -> Snapshots:
        return Snapshots(self.journal, lambda: self.tables_sequence, every)

    async def place(self, count: int) -> None:
        self.salt += count
        placings = [
            a_placing(a_buy(size_units=5 * TOKEN, salt=str(salt)))
            for salt in range(self.salt - count, self.salt)
        ]
        await asyncio.gather(*(self.engine.submit(placing) for placing in placings))
        self.tables_sequence = self.engine.sequence


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path)
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
    assert newest_sequence(room.folder) == 50
    assert not await room.snapshots().take_if_due()


async def test_with_an_interval_of_none_there_is_no_snapshot(room: Room) -> None:
    await room.place(100)
    assert not await room.snapshots(0).take_if_due()


async def test_a_snapshot_is_never_ahead_of_the_tables(room: Room) -> None:
    await room.place(100)
    room.tables_sequence = 60
    assert await room.snapshots().take_if_due()
    assert newest_sequence(room.folder) == 60


async def test_the_second_snapshot_lets_go_of_what_came_before_the_first(
    room: Room, tmp_path_factory: pytest.TempPathFactory
) -> None:
    for _ in range(2):
        await room.place(100)
        await room.snapshots().take_if_due()
    assert not has_entries_after(room.folder, 0)
    before = digest(room.engine.state)
    copy = tmp_path_factory.mktemp("copy") / "journal"
    again = Room(Path(shutil.copytree(room.folder, copy)))
    await again.engine.start(room.tables_sequence)
    assert digest(again.engine.state) == before
    assert again.engine.sequence == room.engine.sequence
    await again.engine.close()


async def test_a_process_that_makes_no_snapshot_says_why(room: Room) -> None:
    await room.place(60)
    (room.folder / f"{snapshot_name(1)}.copy.snapshot").write_bytes(b"")
    with pytest.raises(SnapshotFailed, match="no snapshot has such a name"):
        await room.snapshots()._take(60)


async def test_a_process_that_takes_too_long_is_ended(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "DEADLINE_S", 0.01)
    await room.place(60)
    with pytest.raises(SnapshotFailed, match="longer than"):
        await room.snapshots().take_if_due()
    assert newest_sequence(room.folder) == 0


async def test_after_a_failure_the_next_one_is_taken_in_its_time(
    room: Room, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(snapshots, "DEADLINE_S", 0.01)
    monkeypatch.setattr(snapshots, "RETRY_S", 0.01)
    await room.place(60)
    running = asyncio.create_task(room.snapshots().run())
    await asyncio.sleep(0.1)
    monkeypatch.setattr(snapshots, "DEADLINE_S", 60.0)
    async with asyncio.timeout(30):
        while newest_sequence(room.folder) != 62:  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.02)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
