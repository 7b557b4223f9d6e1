"""The tail of the newest segment, where frames are written."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from foretell.journal.files.frames import (
    FrameEncoder,
    fits,
    fitting_count,
    frame_end,
    frame_start,
)
from foretell.journal.files.preallocation import (
    FULL,
    FULL_RETRY_S,
    DiskFull,
    SegmentPool,
    write_at,
)
from foretell.journal.files.segments import (
    HEAD_BYTES,
    VERSION,
    End,
    LastWrite,
    Mark,
    encode_head,
    segment_name,
)
from foretell.runtime.folders import sync_folder


class SegmentTail:
    """The tail of the newest segment, where frames are written by one thread at a time."""

    def __init__(
        self,
        folder: Path,
        last: LastWrite,
        segment_bytes: int,
        *,
        full_retry_s: float = FULL_RETRY_S,
    ) -> None:
        self._folder = folder
        self._segment_bytes = segment_bytes
        self._encoder = FrameEncoder()
        self._attempted_count = 0
        self._measured: Sequence[bytes] = ()
        self._lengths: Sequence[int] = ()
        self.end, self.handle = last.end, _open_last(last)
        self.sync_s = 0.0
        sync_folder(folder)
        self.segment_pool = SegmentPool(folder, segment_bytes, full_retry_s=full_retry_s)
        self.mark_file = Mark(folder)

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

    def has_room(self, payloads: Sequence[bytes], bytes_max: int) -> bool:
        """Return whether payloads are at most so long, and go into one frame of this segment."""
        payload_bytes = sum(self._lengths_of(payloads))
        return (
            self.handle is not None
            and payload_bytes <= bytes_max
            and fits(len(payloads), payload_bytes, self.end.offset, self._segment_bytes)
        )

    def write(self, payloads: Sequence[bytes]) -> int:
        """Write and sync as many of the payloads as one frame takes, and return how many.

        If the segment takes none, the next segment begins. When this raises DiskFull, nothing has
        changed, and the same payloads must be written next, perhaps with more after them.
        """
        lengths = self._lengths_of(payloads)
        count = self._count_of_next(lengths)
        if count < len(payloads):
            payloads, lengths = payloads[:count], lengths[:count]
        assert self.handle is not None
        end = self.end
        frame = self._encoder.encode(end.sequence + 1, end.chain, payloads, lengths)
        start = frame_start(end.offset, frame.length)
        self._attempted_count = count
        began_s = time.perf_counter()
        try:
            write_at(self.handle, frame.padded, start)
        except OSError as error:
            raise _full_or(error) from error
        os.fdatasync(self.handle)
        self.sync_s = time.perf_counter() - began_s
        self._attempted_count = 0
        self._measured, self._lengths = (), ()
        offset = frame_end(start, frame.length)
        self.end = End(end.path, offset, end.sequence + count, frame.chain)
        return count

    def _lengths_of(self, payloads: Sequence[bytes]) -> Sequence[int]:
        """Return the lengths of payloads, which `has_room` measured if they are written next."""
        if payloads is not self._measured:
            self._measured, self._lengths = payloads, list(map(len, payloads))
        return self._lengths

    def _count_of_next(self, payload_lengths: Sequence[int]) -> int:
        """Return how many payloads the next frame has; begin a segment if this one takes none.

        An attempt that met a full disk may have written a part of its frame, so exactly that frame
        is written again: another one might leave bytes of it in between.
        """
        if self._attempted_count:
            return self._attempted_count
        count = 0
        if self.handle is not None:
            count = fitting_count(payload_lengths, self.end.offset, self._segment_bytes)
        if count == 0:
            self.begin_segment()
            count = fitting_count(payload_lengths, self.end.offset, self._segment_bytes)
        assert count > 0
        return count

    def close(self) -> None:
        """Close the files."""
        self.segment_pool.close()
        self.mark_file.close()
        self._close_segment()

    def _close_segment(self) -> None:
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
        self._close_segment()
        self.handle = handle
        self.segment_pool.taken()
        self.end = End(path, HEAD_BYTES, end.sequence, end.chain)


def _open_last(last: LastWrite) -> int | None:
    """Return the newest segment, if it can be continued, after its last write was written again.

    A process may have been killed before its sync, or its sync failed. After a failure the kernel calls
    its pages clean: a read still returns them, and the next sync succeeds without writing them. The
    same is true of the zeros over a write that was cut short. So both are written, whatever a read
    returns, and from here on count as durable: the next frame proves that they are.
    """
    end, content = last
    if end.path is None:
        return None
    handle = os.open(end.path, os.O_RDWR)
    try:
        rest = bytes(max(0, os.fstat(handle).st_size - end.offset))
        write_at(handle, content + rest, end.offset - len(content))
        os.fdatasync(handle)
    except BaseException:
        os.close(handle)
        raise
    if end.version == VERSION:
        return handle
    os.close(handle)
    return None


@contextlib.contextmanager
def _raising_full() -> Iterator[None]:
    """Raise DiskFull for a full disk or quota; other errors pass unchanged."""
    try:
        yield
    except OSError as error:
        raise _full_or(error) from error


def _full_or(error: OSError) -> Exception:
    """Return DiskFull for an error that says so, and any other error itself."""
    return DiskFull() if error.errno in FULL else error
