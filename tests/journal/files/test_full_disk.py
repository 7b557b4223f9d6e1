"""A full disk: the journal waits, does not fail, and reports nothing that is not synced."""

import asyncio
import contextlib
import errno
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tests.rigs.disks import SmallDisk
from tests.rigs.journals import ALWAYS_INLINE, NEVER_INLINE, JournalCalls, writing

from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import MARK_NAME, find_end
from foretell.journal.port import Capacity

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 4 * 1024
PAYLOAD = b"x" * 300


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallDisk:
    return SmallDisk(tmp_path, monkeypatch)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - another thread's work
            await asyncio.sleep(0.005)


@pytest.fixture(params=[ALWAYS_INLINE, NEVER_INLINE], ids=["inline", "by its thread"], autouse=True)
def inline(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the one thread or the other write what both may write."""
    defaults = FileJournal.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "inline", request.param)


def open_journal(folder: Path, segment_bytes: int = SEGMENT_BYTES) -> FileJournal:
    return FileJournal(folder, segment_bytes=segment_bytes, full_retry_s=0.01)


@contextlib.asynccontextmanager
async def a_full_journal(disk: SmallDisk) -> AsyncIterator[tuple[FileJournal, JournalCalls]]:
    """Yield a journal that has a spare and a reserve, on a disk that takes no more files."""
    journal = open_journal(disk.folder)
    async with writing(journal) as calls:
        journal.append(PAYLOAD)
        await calls.until_synced(1)
        await until(lambda: journal.tail.segment_pool.is_filled)
        disk.fill()
        yield journal, calls
        disk.heal()


def fill_segments(journal: FileJournal, count: int) -> None:
    for _ in range(count * (SEGMENT_BYTES // 304)):
        journal.append(PAYLOAD)


async def test_on_a_disk_with_room_capacity_is_ample(disk: SmallDisk) -> None:
    journal = open_journal(disk.folder)
    async with writing(journal):
        fill_segments(journal, 3)
        assert journal.capacity is Capacity.AMPLE
    assert disk.refusals == 0


async def test_when_no_spare_can_be_filled_the_reserve_becomes_it(disk: SmallDisk) -> None:
    async with a_full_journal(disk) as (journal, calls):
        fill_segments(journal, 1)
        journal.append(PAYLOAD)
        await calls.until_synced(journal.last_sequence)
        await until(lambda: journal.capacity is Capacity.SCARCE)
        fill_segments(journal, 1)
        await calls.until_synced(journal.last_sequence)
        assert not calls.failures
        assert journal.capacity is Capacity.SCARCE


async def test_when_the_reserve_is_used_up_appended_payloads_wait(disk: SmallDisk) -> None:
    async with a_full_journal(disk) as (journal, calls):
        fill_segments(journal, 6)
        await until(lambda: journal.capacity is Capacity.NONE)
        assert calls.synced[-1] < journal.last_sequence
        await until(lambda: len(list(read_entries(disk.folder))) == calls.synced[-1])
        assert not calls.failures


@pytest.mark.case("A-06")
async def test_when_there_is_room_again_the_journal_resumes_and_nothing_is_lost(
    disk: SmallDisk,
) -> None:
    async with a_full_journal(disk) as (journal, calls):
        for _ in range(3):
            fill_segments(journal, 6)
            await until(lambda: journal.capacity is Capacity.NONE)
            disk.heal()
            await calls.until_synced(journal.last_sequence)
            await until(lambda: journal.capacity is Capacity.AMPLE)
            disk.fill()
        written = journal.last_sequence
    assert calls.synced == sorted(set(calls.synced))
    assert not calls.failures
    assert [entry.sequence for entry in read_entries(disk.folder)] == list(range(1, written + 1))


async def test_a_write_in_place_that_finds_no_room_is_repeated(disk: SmallDisk) -> None:
    """A file system that never writes in place does this."""
    async with a_full_journal(disk) as (journal, calls):
        disk.takes_writes = False
        journal.append(b"first")
        await until(lambda: journal.capacity is Capacity.NONE)
        journal.append(b"second")
        assert calls.synced == [1]
        disk.heal()
        await calls.until_synced(3)
    assert [entry.payload for entry in read_entries(disk.folder)] == [PAYLOAD, b"first", b"second"]


@pytest.mark.case("A-06")
@pytest.mark.parametrize("later", [b"small", b"large" * 1_000])
async def test_a_write_that_was_torn_by_a_full_disk_is_repeated_before_anything_else(
    disk: SmallDisk, later: bytes
) -> None:
    """Another frame in its place might leave bytes of it that belong to nothing."""
    journal = open_journal(disk.folder, 8 * SEGMENT_BYTES)
    async with writing(journal) as calls:
        journal.append(PAYLOAD)
        await calls.until_synced(1)
        disk.takes_writes, disk.bytes_before_refusal = False, 100
        journal.append(b"first" * 50)
        await until(lambda: disk.refusals > 1)
        journal.append(later)
        await asyncio.sleep(0.05)
        disk.heal()
        await calls.until_synced(3)
    assert calls.synced == [1, 2, 3]
    find_end(disk.folder)
    assert [entry.payload for entry in read_entries(disk.folder)] == [
        PAYLOAD,
        b"first" * 50,
        later,
    ]


async def test_a_stop_while_the_disk_is_full_is_reported_as_a_failure(disk: SmallDisk) -> None:
    journal = open_journal(disk.folder)
    async with writing(journal) as calls:
        journal.append(PAYLOAD)
        await calls.until_synced(1)
        await until(lambda: journal.tail.is_marked)
        disk.takes_writes = False
        journal.append(b"lost")
        await until(lambda: journal.capacity is Capacity.NONE)
    await calls.until_failed()
    disk.heal()
    assert calls.synced == [1]
    find_end(disk.folder)
    assert [entry.payload for entry in read_entries(disk.folder)] == [PAYLOAD]


async def test_a_sync_that_finds_no_room_ends_the_journal(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel may have dropped what it could not store."""

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async with a_full_journal(disk) as (journal, calls):
        monkeypatch.setattr(os, "fdatasync", full)
        journal.append(b"lost")
        await calls.until_failed()
        assert calls.synced == [1]


async def test_a_mark_that_finds_no_room_lags_behind_without_a_failure(disk: SmallDisk) -> None:
    journal = open_journal(disk.folder)
    async with writing(journal) as calls:
        disk.refused_file = MARK_NAME
        journal.append(PAYLOAD)
        await calls.until_synced(1)
        await until(lambda: disk.refusals > 1)
        assert not calls.failures
        await journal.close()
        disk.heal()
        journal.close = _closed  # type: ignore[method-assign]
    assert [entry.payload for entry in read_entries(disk.folder)] == [PAYLOAD]


async def _closed() -> None:
    """Do nothing: the test closed the journal."""


async def test_a_start_on_a_full_disk_uses_the_spare_and_the_reserve(disk: SmallDisk) -> None:
    async with a_full_journal(disk):
        pass
    disk.fill()
    journal = open_journal(disk.folder)
    async with writing(journal) as calls:
        fill_segments(journal, 2)
        await calls.until_synced(journal.last_sequence)
        assert not calls.failures
        disk.heal()


async def test_a_start_on_a_disk_that_was_always_full_waits_for_room(disk: SmallDisk) -> None:
    disk.bytes_max = 2 * 1024
    journal = open_journal(disk.folder)
    async with writing(journal) as calls:
        journal.append(b"first")
        await until(lambda: journal.capacity is Capacity.NONE)
        assert not calls.synced
        disk.heal()
        await calls.until_synced(1)


async def test_a_disk_that_is_full_is_not_filled_by_trying(disk: SmallDisk) -> None:
    async with a_full_journal(disk) as (journal, _):
        fill_segments(journal, 6)
        await until(lambda: journal.capacity is Capacity.NONE)
        refusals, used = disk.refusals, disk.used_bytes()
        await until(lambda: disk.refusals > refusals + 3)
        assert disk.used_bytes() == used
