"""The journal of one machine: files of zeros, written in place and synced in groups.

A writer thread takes whatever was appended while the last sync ran, writes it and syncs once: that
is the group commit. Segments are filled with zeros beforehand, so that a sync moves data and no
file size, which halves its time. A folder belongs to one process at a time.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from foretell.domain.storage_errors import JournalFailed
from foretell.journal.locking import lock_folder, unlock_folder
from foretell.journal.port import Entry, Snapshot
from foretell.journal.reading import read_entries
from foretell.journal.records import (
    ALIGNMENT,
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    encode_record,
    next_chain,
)
from foretell.journal.segments import (
    HEAD_BYTES,
    End,
    Mark,
    chain_at,
    encode_head,
    find_end,
    segment_name,
    sync_folder,
)
from foretell.journal.snapshots import (
    ChainedSnapshot,
    check_snapshots,
    let_go,
    newest_snapshot,
    remove_parts,
    write_snapshot,
)

SEGMENT_BYTES: Final = 16 * 1024 * 1024
MARK_AFTER_S: Final = 0.05
MARK_EVERY_S: Final = 1.0
_ZEROS: Final = bytes(1024 * 1024)


class FileJournal:
    """A journal in a folder; see `journal.port.Journal`."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        room = segment_bytes - HEAD_BYTES - HEADER_BYTES - ALIGNMENT
        self._payload_bytes_max = min(PAYLOAD_BYTES_MAX, room)
        self._lock = lock_folder(folder)
        try:
            remove_parts(folder)
            self._tail = _Tail(folder, find_end(folder), segment_bytes)
        except BaseException:
            unlock_folder(self._lock)
            raise
        self._last_sequence = self._tail.end.sequence
        self._appended: list[bytes] = []
        self._wakes = threading.Condition()
        self._is_closing = False
        self._writer: threading.Thread | None = None
        self._mark_at = time.monotonic() + MARK_EVERY_S

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return self._folder

    @property
    def last_sequence(self) -> int:
        """The sequence of the newest payload appended, 0 when there is none."""
        return self._last_sequence

    def entries(self, after: int = 0) -> Iterator[Entry]:
        """Yield what is durable after a sequence, in order; damage raises JournalDamaged."""
        return read_entries(self._folder, after)

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot that is whole, passing over those that are not."""
        check_snapshots(self._folder, self._tail.end.sequence)
        return newest_snapshot(self._folder)

    async def keep_snapshot(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and let go of what the two newest do not need."""
        assert 0 < snapshot.sequence <= self._tail.end.sequence

        def keep() -> None:
            chain = chain_at(self._folder, snapshot.sequence)
            write_snapshot(self._folder, ChainedSnapshot(snapshot, chain))
            let_go(self._folder)

        await asyncio.to_thread(keep)

    async def let_go(self) -> int:
        """Let go of what the two newest snapshots do not need; return how many segments went."""
        return await asyncio.to_thread(let_go, self._folder)

    def start(
        self, on_synced: Callable[[int], None], on_failed: Callable[[Exception], None]
    ) -> None:
        """Begin to write; both callbacks are called in the thread of the running event loop."""
        assert self._writer is None
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                while (payloads := self._take()) is not None:
                    if payloads:
                        self._tail.write(payloads)
                        loop.call_soon_threadsafe(on_synced, self._tail.end.sequence)
                    if not payloads or time.monotonic() >= self._mark_at:
                        self._tail.mark()
                        self._mark_at = time.monotonic() + MARK_EVERY_S
            except Exception as error:  # noqa: BLE001 - whatever ends the writer is told, or all wait
                words = error.strerror if isinstance(error, OSError) else str(error)
                failure = JournalFailed(f"{type(error).__name__}: {words}")
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
            self._wakes.notify()
            return self._last_sequence

    async def close(self) -> None:
        """Make durable what was appended, and let go of the folder."""
        with self._wakes:
            self._is_closing = True
            self._wakes.notify()
        if self._writer is not None:
            await asyncio.to_thread(self._writer.join)
        self._tail.close()
        unlock_folder(self._lock)

    def _take(self) -> Sequence[bytes] | None:
        """Wait for payloads; an empty answer means that a mark is due, None that it is over."""
        with self._wakes:
            is_marked = self._tail.is_marked
            while not self._appended and not self._is_closing:
                if not self._wakes.wait(None if is_marked else MARK_AFTER_S):
                    return ()
            if not self._appended and is_marked:
                return None
            payloads, self._appended = self._appended, []
            return payloads


class _Tail:
    """The end of the newest segment, where records are written."""

    def __init__(self, folder: Path, end: End, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._handle: int | None = None
        self._spare = _Spare(folder, segment_bytes)
        self._mark = Mark(folder)
        self._offset = end.offset
        self.end = end
        if end.path is not None:
            self._handle = os.open(end.path, os.O_RDWR)
            self._erase_rest()
        self._spare.prepare()

    @property
    def is_marked(self) -> bool:
        """Whether the mark vouches for everything that is written."""
        return self._mark.sequence == self.end.sequence

    def mark(self) -> None:
        """Let the mark vouch for everything that is written."""
        self._mark.write(self.end.sequence)

    def write(self, payloads: Sequence[bytes]) -> None:
        """Write and sync the payloads."""
        batch = bytearray()
        end = self.end
        synced = end.sequence
        for payload in payloads:
            chain = next_chain(end.chain, payload)
            record = encode_record(end.sequence + 1, synced, chain, payload)
            if self._handle is None or end.offset + len(record) > self._segment_bytes:
                self._flush(batch)
                batch = bytearray()
                synced = end.sequence
                end = self._begin_segment(end)
            batch += record
            end = End(end.path, end.offset + len(record), end.sequence + 1, chain)
        self._flush(batch)
        self.end = end

    def close(self) -> None:
        """Let go of the files."""
        self._spare.close()
        self._mark.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _flush(self, batch: bytearray) -> None:
        if batch:
            assert self._handle is not None
            _write_at(self._handle, batch, self._offset)
            os.fdatasync(self._handle)
            self._offset += len(batch)

    def _begin_segment(self, end: End) -> End:
        """Go on in the spare file, which gets its header before it gets its name."""
        spare = self._spare.take()
        path = self._folder / segment_name(end.sequence + 1)
        handle = os.open(spare, os.O_RDWR)
        _write_at(handle, encode_head(end.sequence + 1, end.chain), 0)
        os.fdatasync(handle)
        spare.rename(path)
        sync_folder(self._folder)
        if self._handle is not None:
            os.close(self._handle)
        self._handle, self._offset = handle, HEAD_BYTES
        self._spare.prepare()
        return End(path, HEAD_BYTES, end.sequence, end.chain)

    def _erase_rest(self) -> None:
        """Put zeros where a record was cut short, so that no later start meets its bytes."""
        assert self._handle is not None
        size = os.fstat(self._handle).st_size
        rest = os.pread(self._handle, size - self._offset, self._offset)
        if any(rest):
            _write_at(self._handle, bytes(len(rest)), self._offset)
            os.fdatasync(self._handle)


class _Spare:
    """The next segment, filled with zeros while the present one is in use."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        self._path = folder / "spare"
        self._segment_bytes = segment_bytes
        self._filler: threading.Thread | None = None
        self._failure: Exception | None = None

    def prepare(self) -> None:
        """Begin to fill the next spare."""
        self._filler = threading.Thread(target=self._fill, name="journal spare", daemon=True)
        self._filler.start()

    def take(self) -> Path:
        """Return the spare, waiting for it if need be."""
        assert self._filler is not None
        self._filler.join()
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure
        return self._path

    def close(self) -> None:
        """Wait for the filling to end."""
        if self._filler is not None:
            self._filler.join()

    def _fill(self) -> None:
        try:
            with self._path.open("wb") as file:
                for start in range(0, self._segment_bytes, len(_ZEROS)):
                    file.write(_ZEROS[: self._segment_bytes - start])
                file.flush()
                os.fsync(file.fileno())
        except Exception as error:  # noqa: BLE001 - it is raised where the spare is taken
            self._failure = error


def _write_at(handle: int, data: bytes | bytearray, offset: int) -> None:
    view = memoryview(data)
    while view:
        written = os.pwrite(handle, view, offset)
        view, offset = view[written:], offset + written
