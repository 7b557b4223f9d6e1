"""The tail of the newest segment, where records are written."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from foretell.journal.files.preallocation import (
    FULL,
    FULL_RETRY_S,
    DiskFull,
    SegmentPool,
    write_at,
)
from foretell.journal.files.segments import (
    HEAD_BYTES,
    End,
    Mark,
    encode_head,
    segment_name,
)
from foretell.journal.framing import encode_record, next_chain
from foretell.runtime.folders import sync_folder


class SegmentTail:
    """The tail of the newest segment, where records are written."""

    def __init__(
        self, folder: Path, end: End, segment_bytes: int, *, full_retry_s: float = FULL_RETRY_S
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self.handle: int | None = None
        self.segment_pool = SegmentPool(folder, segment_bytes, full_retry_s=full_retry_s)
        self.mark_file = Mark(folder)
        self.end = end
        if end.path is not None:
            self.handle = os.open(end.path, os.O_RDWR)
            self._erase_rest()

    @property
    def is_marked(self) -> bool:
        """Whether the mark covers everything that is written."""
        return self.mark_file.sequence == self.end.sequence

    def mark(self) -> None:
        """Have the mark cover everything that is written."""
        with _raising_full():
            self.mark_file.write(self.end.sequence)

    @property
    def is_scarce(self) -> bool:
        """Whether the disk has no room for another segment after the next."""
        return self.segment_pool.is_scarce

    def write(self, payloads: Sequence[bytes]) -> int:
        """Write and sync as many of the payloads as the segment takes, and return how many.

        If it takes none, the next segment begins. When this raises DiskFull, nothing has changed.
        """
        batch = bytearray()
        end = self.end
        count = 0
        for payload in payloads:
            chain = next_chain(end.chain, payload)
            record = encode_record(end.sequence + 1, self.end.sequence, chain, payload)
            if self.handle is None or end.offset + len(record) > self._segment_bytes:
                if batch:
                    break
                self.begin_segment()
                end = self.end
            batch += record
            count += 1
            end = End(end.path, end.offset + len(record), end.sequence + 1, chain)
        assert self.handle is not None
        with _raising_full():
            write_at(self.handle, batch, self.end.offset)
        os.fdatasync(self.handle)
        self.end = end
        return count

    def close(self) -> None:
        """Close the files."""
        self.segment_pool.close()
        self.mark_file.close()
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None

    def begin_segment(self) -> None:
        """Continue in the spare file, which gets its header before it gets its name."""
        end, spare = self.end, self.segment_pool.take()
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
        if self.handle is not None:
            os.close(self.handle)
        self.handle = handle
        self.segment_pool.taken()
        self.end = End(path, HEAD_BYTES, end.sequence, end.chain)

    def _erase_rest(self) -> None:
        """Write zeros over a record that was cut short, so that no later start reads its bytes."""
        assert self.handle is not None
        size = os.fstat(self.handle).st_size
        rest = os.pread(self.handle, size - self.end.offset, self.end.offset)
        if any(rest):
            write_at(self.handle, bytes(len(rest)), self.end.offset)
            os.fdatasync(self.handle)


@contextlib.contextmanager
def _raising_full() -> Iterator[None]:
    """Raise DiskFull for a full disk or quota; other errors pass unchanged."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise DiskFull from error
