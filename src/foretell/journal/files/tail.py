"""The end of the newest segment, where records are written."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from foretell.journal.files.preallocation import FULL, DiskFull, SegmentPool, write_at
from foretell.journal.files.segments import (
    HEAD_BYTES,
    End,
    Mark,
    encode_head,
    segment_name,
    sync_folder,
)
from foretell.journal.framing import encode_record, next_chain


class SegmentTail:
    """The end of the newest segment, where records are written."""

    def __init__(self, folder: Path, end: End, segment_bytes: int) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._handle: int | None = None
        self._segment_pool = SegmentPool(folder, segment_bytes)
        self._mark = Mark(folder)
        self.end = end
        if end.path is not None:
            self._handle = os.open(end.path, os.O_RDWR)
            self._erase_rest()

    @property
    def is_marked(self) -> bool:
        """Whether the mark vouches for everything that is written."""
        return self._mark.sequence == self.end.sequence

    def mark(self) -> None:
        """Let the mark vouch for everything that is written."""
        with _raising_full():
            self._mark.write(self.end.sequence)

    @property
    def is_scarce(self) -> bool:
        """Whether the disk has no room for another segment after the next."""
        return self._segment_pool.is_scarce

    def write(self, payloads: Sequence[bytes]) -> int:
        """Write and sync as many of the payloads as the segment takes, and return how many.

        If it takes none the next segment begins. When the disk is full nothing has changed.
        """
        batch = bytearray()
        end = self.end
        count = 0
        for payload in payloads:
            chain = next_chain(end.chain, payload)
            record = encode_record(end.sequence + 1, self.end.sequence, chain, payload)
            if self._handle is None or end.offset + len(record) > self._segment_bytes:
                if batch:
                    break
                self._begin_segment()
                end = self.end
            batch += record
            count += 1
            end = End(end.path, end.offset + len(record), end.sequence + 1, chain)
        assert self._handle is not None
        with _raising_full():
            write_at(self._handle, batch, self.end.offset)
        os.fdatasync(self._handle)
        self.end = end
        return count

    def close(self) -> None:
        """Let go of the files."""
        self._segment_pool.close()
        self._mark.close()
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def _begin_segment(self) -> None:
        """Go on in the spare file, which gets its header before it gets its name."""
        end, spare = self.end, self._segment_pool.take()
        path = self._folder / segment_name(end.sequence + 1)
        handle = os.open(spare, os.O_RDWR)
        try:
            with _raising_full():
                write_at(handle, encode_head(end.sequence + 1, end.chain), 0)
            os.fdatasync(handle)
            with _raising_full():
                spare.rename(path)
        except BaseException:
            os.close(handle)
            raise
        sync_folder(self._folder)
        if self._handle is not None:
            os.close(self._handle)
        self._handle = handle
        self._segment_pool.taken()
        self.end = End(path, HEAD_BYTES, end.sequence, end.chain)

    def _erase_rest(self) -> None:
        """Put zeros where a record was cut short, so that no later start meets its bytes."""
        assert self._handle is not None
        size = os.fstat(self._handle).st_size
        rest = os.pread(self._handle, size - self.end.offset, self.end.offset)
        if any(rest):
            write_at(self._handle, bytes(len(rest)), self.end.offset)
            os.fdatasync(self._handle)


@contextlib.contextmanager
def _raising_full() -> Iterator[None]:
    """Raise DiskFull where the disk is; whatever else goes wrong is left as it is."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull from error
