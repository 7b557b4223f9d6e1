"""The journal of one machine: files of zeros, written in place and synced in groups.

All that is appended in a turn of the event loop is one frame, and is written and synced at the end
of the turn (`group_commit`). Segments are filled with zeros beforehand, so that a sync writes data
and no file size, which halves its time. One process uses a folder at a time.

While the disk is full the journal waits and writes the same bytes to the same place again; nothing
is reported before it is synced. A sync that fails ends the journal: the kernel drops what it could
not write, and still reads it from memory. So a start writes the last frame again (`tail`).
"""

import asyncio
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final

from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.journal.files.frames import PAGE_BYTES, payload_bytes_max
from foretell.journal.files.group_commit import INLINE, GroupCommit, InlineLimits
from foretell.journal.files.identity import load_identity, write_identity
from foretell.journal.files.preallocation import FULL_RETRY_S
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import HEAD_BYTES, chain_at, find_last_write
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
from foretell.journal.port import Capacity, Entry, FileJournalAddress, Snapshot

SEGMENT_BYTES: Final = 16 * 1024 * 1024


class FileJournal:
    """A journal in a folder; see `journal.port.Journal`."""

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        full_retry_s: float = FULL_RETRY_S,
        inline: InlineLimits = INLINE,
    ) -> None:
        assert segment_bytes % PAGE_BYTES == 0
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._payload_bytes_max = payload_bytes_max(HEAD_BYTES, segment_bytes)
        self._lock = lock_folder(folder)
        try:
            remove_parts(folder)
            last = find_last_write(folder)
            self.identity, is_made = load_identity(folder)
            self.lost_identity = is_made and last.end.sequence > 0
            self.tail = SegmentTail(folder, last, segment_bytes, full_retry_s=full_retry_s)
        except BaseException:
            unlock_folder(self._lock)
            raise
        self._taken_sequence = self.tail.end.sequence
        self._appended: list[bytes] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self.group_commit = GroupCommit(self.tail, inline, full_retry_s)

    @property
    def capacity(self) -> Capacity:
        """How much more can be written."""
        if self.group_commit.is_stuck:
            return Capacity.NONE
        return Capacity.SCARCE if self.tail.is_scarce else Capacity.AMPLE

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self._folder

    def adopt_identity(self, identity: str) -> None:
        """Take the id that the journal had before its file was lost."""
        assert self.lost_identity
        write_identity(self._folder, identity)
        self.identity, self.lost_identity = identity, False

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""
        return self._taken_sequence + len(self._appended)

    @property
    def address(self) -> FileJournalAddress:
        """Where another process reads it."""
        return FileJournalAddress(str(self._folder))

    def entries(self, after: int = 0) -> Generator[Entry, None, None]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged."""
        return read_entries(self._folder, after)

    def snapshot(self, until: int | None = None) -> Snapshot | None:
        """Return the newest intact snapshot that is not after a sequence, if there is one."""
        check_snapshots(self._folder, self.tail.end.sequence)
        return newest_snapshot(self._folder, until)

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
        assert self._loop is None
        self._loop = asyncio.get_running_loop()
        self.group_commit.start(on_synced, on_failed)
        if self._appended:
            self._loop.call_soon(self._write_appended)

    def append(self, payload: bytes, command_id: bytes | None = None) -> int:
        """Take a payload and return its sequence; it is not durable yet.

        All that is appended in a turn of the event loop is written together at its end.
        """
        del command_id
        assert 0 < len(payload) <= self._payload_bytes_max
        appended = self._appended
        if not appended and self._loop is not None:
            self._loop.call_soon(self._write_appended)
        appended.append(payload)
        return self._taken_sequence + len(appended)

    def _write_appended(self) -> None:
        payloads, self._appended = self._appended, []
        self._taken_sequence += len(payloads)
        if payloads:
            self.group_commit.write(payloads)

    async def close(self) -> None:
        """Make durable what was appended, and release the folder."""
        if self._loop is not None:
            self._write_appended()
            await self.group_commit.close()
        self.tail.close()
        unlock_folder(self._lock)
