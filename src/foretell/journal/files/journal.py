"""The journal of one machine: files of zeros, written in place and synced in groups.

A writer thread takes everything that was appended during the last sync, writes it and syncs once:
the group commit. Segments are filled with zeros beforehand, so that a sync writes data and no file
size, which halves its time. One process uses a folder at a time.

While the disk is full the writer waits and writes the same bytes to the same place again; nothing
is reported before it is synced. A sync that fails ends the journal.
"""

import asyncio
import errno
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Final

from foretell.domain.errors.storage import JournalFailed
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.journal.files.preallocation import FULL_RETRY_S, DiskFull
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import HEAD_BYTES, chain_at, find_end
from foretell.journal.files.snapshots import (
    ChainedSnapshot,
    check_snapshots,
    compact,
    newest_sequence,
    newest_snapshot,
    remove_parts,
    write_snapshot,
)
from foretell.journal.files.tail import SegmentTail
from foretell.journal.framing import ALIGNMENT, HEADER_BYTES, PAYLOAD_BYTES_MAX
from foretell.journal.port import Capacity, Entry, FileJournalAddress, Snapshot

SEGMENT_BYTES: Final = 16 * 1024 * 1024
MARK_AFTER_S: Final = 0.05
MARK_EVERY_S: Final = 1.0


class FileJournal:
    """A journal in a folder; see `journal.port.Journal`."""

    # Group commit: `append` only adds to `_appended`, and while the writer thread syncs, appends go
    # on. The next write takes all of them, so one sync serves as many commands as came during the
    # one before: latency stays that of one or two syncs, and throughput grows with the load.

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        full_retry_s: float = FULL_RETRY_S,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.full_retry_s = full_retry_s
        record_bytes_max = segment_bytes - HEAD_BYTES - ALIGNMENT
        self._payload_bytes_max = min(PAYLOAD_BYTES_MAX, record_bytes_max - HEADER_BYTES)
        self._lock = lock_folder(folder)
        try:
            remove_parts(folder)
            end = find_end(folder)
            self.tail = SegmentTail(folder, end, segment_bytes, full_retry_s=full_retry_s)
        except BaseException:
            unlock_folder(self._lock)
            raise
        self._last_sequence = self.tail.end.sequence
        self._appended: list[bytes] = []
        self._wakes = threading.Condition()
        self._is_closing = self._is_waking = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_stuck = self._is_mark_stuck = False
        self._writer: threading.Thread | None = None
        self._mark_at = time.monotonic() + MARK_EVERY_S

    @property
    def capacity(self) -> Capacity:
        """How much more can be written."""
        if self._is_stuck:
            return Capacity.NONE
        return Capacity.SCARCE if self.tail.is_scarce else Capacity.AMPLE

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._folder

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""
        return self._last_sequence

    @property
    def address(self) -> FileJournalAddress:
        """Where another process reads it."""
        return FileJournalAddress(str(self._folder))

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged."""
        return read_entries(self._folder, after)

    def snapshot(self) -> Snapshot | None:
        """Return the newest intact snapshot, if there is one."""
        check_snapshots(self._folder, self.tail.end.sequence)
        return newest_snapshot(self._folder)

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and remove what the two newest do not need."""
        assert 0 < snapshot.sequence <= self.tail.end.sequence

        def keep() -> None:
            chain = chain_at(self._folder, snapshot.sequence)
            write_snapshot(self._folder, ChainedSnapshot(snapshot, chain))
            compact(self._folder)

        await asyncio.to_thread(keep)

    async def snapshot_sequence(self) -> int:
        """Return the sequence of the newest snapshot by its name, 0 when there is none."""
        return newest_sequence(self._folder)

    def begin_snapshot(self) -> FileJournalAddress:
        """Return the folder, after removing the remains of unfinished snapshots."""
        remove_parts(self._folder)
        return self.address

    async def compact(self, *, keeps_all: bool = False) -> int:
        """Remove what the two newest snapshots do not need; return how many segments."""
        return await asyncio.to_thread(compact, self._folder, keeps_all=keeps_all)

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""
        assert self._writer is None
        self._loop = loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                while (payloads := self._take()) is not None:
                    self._mark_if_due(is_idle=not payloads)
                    while payloads:
                        payloads = payloads[self._write(payloads) :]
                        loop.call_soon_threadsafe(on_synced, self.tail.end.sequence)
            except Exception as error:  # noqa: BLE001 - it is reported, or all would wait
                cause = error.strerror if isinstance(error, OSError) else str(error)
                failure = JournalFailed(f"{type(error).__name__}: {cause}")
                loop.call_soon_threadsafe(on_failed, failure)

        self._writer = threading.Thread(target=run, name="journal", daemon=True)
        self._writer.start()

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet."""
        del command_id
        assert 0 < len(payload) <= self._payload_bytes_max
        with self._wakes:
            self._appended.append(payload)
        self._last_sequence += 1
        if self._loop is not None and not self._is_waking:
            self._is_waking = True
            self._loop.call_soon(self._wake)
        return self._last_sequence

    def _wake(self) -> None:
        """Wake the writer, once for all that was appended in a turn of the event loop."""
        self._is_waking = False
        with self._wakes:
            self._wakes.notify()

    async def close(self) -> None:
        """Make durable what was appended, and release the folder."""
        with self._wakes:
            self._is_closing = True
            self._wakes.notify()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.join)
        self.tail.close()
        unlock_folder(self._lock)

    def _take(self) -> Sequence[bytes] | None:
        """Wait for payloads; return () when a mark is due, and None when the journal is closed."""
        with self._wakes:
            is_marked = self.tail.is_marked or (self._is_closing and self._is_mark_stuck)
            while not self._appended and not self._is_closing:
                if not self._wakes.wait(None if is_marked else MARK_AFTER_S):
                    return ()
            if not self._appended and is_marked:
                return None
            payloads, self._appended = self._appended, []
            return payloads

    def _write(self, payloads: Sequence[bytes]) -> int:
        """Write some of the payloads, and return how many; while the disk is full, try again.

        Nothing of them was synced or reported, so the same bytes go to the same place.
        """
        while True:
            is_last_try = self._is_closing
            try:
                written = self.tail.write(payloads)
            except DiskFull as full:
                if is_last_try:
                    raise OSError(errno.ENOSPC, "no space left, and it closes") from full
                self._is_stuck = True
                with self._wakes:
                    self._wakes.wait_for(lambda: self._is_closing, self.full_retry_s)
            else:
                self._is_stuck = False
                return written

    def _mark_if_due(self, *, is_idle: bool) -> None:
        """Have the mark cover what is written; it may lag behind while the disk is full."""
        if is_idle or time.monotonic() >= self._mark_at:
            try:
                self.tail.mark()
            except DiskFull:
                self._is_mark_stuck = True
            self._mark_at = time.monotonic() + MARK_EVERY_S
