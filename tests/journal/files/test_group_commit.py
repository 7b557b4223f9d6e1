"""The thread that writes: the event loop's own or the writer thread."""

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.journal.files.rig import SEGMENT_BYTES, Client, read
from tests.rigs.journals import ALWAYS_INLINE, NEVER_INLINE, JournalCalls, writing

from foretell.journal.files.group_commit import (
    INLINE,
    INLINE_AFTER_FAST_SYNCS,
    INLINE_BYTES_MAX,
    INLINE_RECORDS_MAX,
    InlineLimits,
)
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.segments import Mark

pytestmark = pytest.mark.anyio

SLOW_S = 1.0
GATE_S = 30.0
BY_SPEED = InlineLimits(sync_s=SLOW_S / 2)
LOOP, WRITER = "loop", "writer"


class Disk:
    """The syncs of a journal: the thread of each, and how long the next ones take or wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: list[str] = []
        self.delay_s = 0.0
        self.is_real = True
        """Whether a sync goes to the disk, whose own speed other processes decide."""
        self.gate = threading.Event()
        self.gate.set()
        self._loop_thread = threading.current_thread()
        self._fdatasync = os.fdatasync
        monkeypatch.setattr(os, "fdatasync", self.fdatasync)

    def fdatasync(self, handle: int) -> None:
        is_loop = threading.current_thread() is self._loop_thread
        self.threads.append(LOOP if is_loop else WRITER)
        time.sleep(self.delay_s)
        self.gate.wait(GATE_S)
        if self.is_real:
            self._fdatasync(handle)


@pytest.fixture
async def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk without marks, since their syncs would be counted too."""
    monkeypatch.setattr("foretell.journal.files.group_commit.MARK_AFTER_S", 60.0)
    return Disk(monkeypatch)


class Begun:
    """A journal in its first segment."""

    def __init__(self, journal: FileJournal, calls: JournalCalls, disk: Disk) -> None:
        self.journal, self.calls, self._disk = journal, calls, disk

    async def write(self, *payloads: bytes) -> list[str]:
        """Append payloads at once, wait until they are durable, and return who synced."""
        self._disk.threads.clear()
        for payload in payloads:
            self.journal.append(payload)
        await self.calls.until_synced(self.journal.last_sequence)
        return list(self._disk.threads)


@contextlib.asynccontextmanager
async def begun(
    folder: Path, disk: Disk, inline: InlineLimits, segment_bytes: int = SEGMENT_BYTES
) -> AsyncIterator[Begun]:
    journal = FileJournal(folder, segment_bytes=segment_bytes, inline=inline)
    async with writing(journal) as calls:
        journal.append(b"first")
        await calls.until_synced(1)
        yield Begun(journal, calls, disk)


async def test_the_loop_syncs_once_for_all_that_was_appended_in_a_turn(
    tmp_path: Path, disk: Disk
) -> None:
    async with begun(tmp_path, disk, ALWAYS_INLINE) as it:
        assert await it.write(b"a", b"b", b"c") == [LOOP]
        assert await it.write(b"d") == [LOOP]
        assert it.calls.synced == [1, 4, 5]


async def test_the_writer_thread_syncs_where_the_loop_may_not(tmp_path: Path, disk: Disk) -> None:
    async with begun(tmp_path, disk, NEVER_INLINE) as it:
        assert await it.write(b"a", b"b", b"c") == [WRITER]
        assert it.calls.synced == [1, 4]


async def test_nothing_is_written_before_the_turn_ends(tmp_path: Path, disk: Disk) -> None:
    async with begun(tmp_path, disk, ALWAYS_INLINE) as it:
        it.journal.append(b"a")
        assert it.journal.tail.end.sequence == 1
        await asyncio.sleep(0)
        assert it.journal.tail.end.sequence == 2
        assert it.calls.synced == [1, 2]


async def test_while_a_client_waits_the_writer_thread_syncs(tmp_path: Path, disk: Disk) -> None:
    """The loop reads what the client sent in the meantime.

    It sends in the turn in which the loop would write: before that turn, uvloop reads and asyncio does not.
    """
    async with begun(tmp_path, disk, ALWAYS_INLINE) as it:
        with contextlib.closing(Client()) as client:
            assert await it.write(b"a") == [LOOP]
            asyncio.get_running_loop().call_soon(client.send)
            assert await it.write(b"b") == [WRITER]
            assert client.received == [b"x"]
            assert await it.write(b"c") == [LOOP]


async def test_the_writer_thread_begins_the_next_segment(tmp_path: Path, disk: Disk) -> None:
    """Its spare may not be filled yet, and the loop does not wait for that."""
    async with begun(tmp_path, disk, ALWAYS_INLINE) as it:
        assert await it.write(b"a" * 20_000) == [LOOP]
        by_whom = await it.write(b"b" * 20_000)
    assert set(by_whom) == {WRITER}
    assert read(tmp_path) == [b"first", b"a" * 20_000, b"b" * 20_000]


@pytest.mark.parametrize(
    ("payloads", "thread"),
    [
        ([b"x"] * INLINE_RECORDS_MAX, LOOP),
        ([b"x"] * (INLINE_RECORDS_MAX + 1), WRITER),
        ([b"x" * (INLINE_BYTES_MAX // 2)] * 2, LOOP),
        ([b"x" * (INLINE_BYTES_MAX // 2)] * 3, WRITER),
    ],
    ids=["few", "many", "short", "long"],
)
async def test_much_is_written_by_the_writer_thread(
    tmp_path: Path, disk: Disk, payloads: list[bytes], thread: str
) -> None:
    async with begun(tmp_path, disk, ALWAYS_INLINE, 16 * 1024 * 1024) as it:
        assert await it.write(*payloads) == [thread]


async def test_after_a_slow_sync_the_loop_syncs_again_when_some_were_fast(
    tmp_path: Path, disk: Disk
) -> None:
    disk.is_real = False
    async with begun(tmp_path, disk, BY_SPEED) as it:
        for _ in range(20):
            await it.write(b"until the loop does it")
        disk.delay_s = SLOW_S
        assert await it.write(b"slow") == [LOOP]
        assert [await it.write(b"slow") for _ in range(3)] == [[WRITER]] * 3
        disk.delay_s = 0.0
        by_whom = [await it.write(b"fast") for _ in range(20)]
    assert by_whom[:INLINE_AFTER_FAST_SYNCS] == [[WRITER]] * INLINE_AFTER_FAST_SYNCS
    assert by_whom[-1] == [LOOP]


async def test_while_the_writer_thread_syncs_the_loop_hands_over_all_to_it(
    tmp_path: Path, disk: Disk
) -> None:
    """Its next sync serves all of that."""
    async with begun(tmp_path, disk, InlineLimits(records=1, sync_s=60.0)) as it:
        disk.threads.clear()
        disk.gate.clear()
        it.journal.append(b"a")
        it.journal.append(b"b")
        while not disk.threads:  # noqa: ASYNC110 - another thread's work
            await asyncio.sleep(0.001)
        for _ in range(10):
            it.journal.append(b"c")
            await asyncio.sleep(0)
        assert it.calls.synced == [1]
        disk.gate.set()
        await it.calls.until_synced(13)
        assert disk.threads == [WRITER, WRITER]
        assert it.calls.synced == [1, 3, 13]
    assert read(tmp_path) == [b"first", b"a", b"b", *[b"c"] * 10]


async def test_writes_of_both_threads_keep_the_order_of_appending(
    tmp_path: Path, disk: Disk
) -> None:
    written = [b"first"]
    async with begun(tmp_path, disk, InlineLimits(records=3, sync_s=60.0)) as it:
        for number in range(300):
            batch = [b"%d" % number] * (number % 5)
            written += batch
            for payload in batch:
                it.journal.append(payload)
            await asyncio.sleep(0 if number % 7 else 0.002)
        await it.calls.until_synced(it.journal.last_sequence)
        assert set(disk.threads) == {LOOP, WRITER}
    assert it.calls.synced == sorted(set(it.calls.synced))
    assert read(tmp_path) == written


async def test_what_is_appended_when_syncs_are_reported_is_written_too(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES, inline=ALWAYS_INLINE)
    calls = JournalCalls()

    def on_synced(sequence: int) -> None:
        calls.on_synced(sequence)
        if sequence < 50:
            journal.append(b"x")

    journal.start(on_synced, calls.on_failed)
    journal.append(b"x")
    await calls.until_synced(50)
    await journal.close()
    assert read(tmp_path) == [b"x"] * 50


async def test_what_was_appended_before_the_start_is_written(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES)
    journal.append(b"a")
    async with writing(journal) as calls:
        await calls.until_synced(1)
    assert read(tmp_path) == [b"a"]


@pytest.mark.parametrize("inline", [INLINE, NEVER_INLINE])
async def test_a_journal_closed_at_once_has_all_that_was_appended(
    tmp_path: Path, inline: InlineLimits
) -> None:
    journal = FileJournal(tmp_path, segment_bytes=SEGMENT_BYTES, inline=inline)
    async with writing(journal):
        journal.append(b"a")
    assert read(tmp_path) == [b"a"]
    assert Mark.read(tmp_path) == 1
