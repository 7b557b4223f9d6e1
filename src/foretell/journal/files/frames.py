"""The layout of a frame: the records of one write, under one checksum and one link of the chain.

    bytes       field
    4           length of the frame, this header included, padding not
    4           checksum: CRC-32 of everything after the chain, padding not
    16          chain: the first 16 bytes of SHA-256 of the chain before, the length, the checksum
    8           sequence of its first record
    4           count of its records
    4 x count   length of each payload
    ...         the payloads, one after the other
    ...         zeros up to a multiple of 8

A large frame begins at a multiple of a page, so that a write neither reads nor repeats a part of
one. A frame is written when the one before it is synced: at most the last one can be incomplete,
and an intact one proves that all before it were synced.
"""

import hashlib
import struct
import sys
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise, takewhile
from typing import Final, NamedTuple

from foretell.journal.framing import (
    ALIGNMENT,
    CHAIN_BYTES,
    PAYLOAD_BYTES_MAX,
    SECTOR_BYTES,
    Run,
)

PAGE_BYTES: Final = 4096
LARGE_FRAME_BYTES: Final = 16 * 1024
"""The length from which a frame begins at a multiple of a page: it wastes half a page on average."""
BUFFER_BYTES: Final = 1024 * 1024
"""The length up to which records share a frame; a record that is longer has one to itself."""
HEADER: Final = struct.Struct("<II16sQI")
HEADER_BYTES: Final = HEADER.size
LENGTH_BYTES: Final = 4
FRAME_BYTES_MAX: Final = HEADER_BYTES + LENGTH_BYTES + PAYLOAD_BYTES_MAX

_SEAL: Final = struct.Struct("<II16s")
_CHECKED_FROM: Final = _SEAL.size
_BEGIN: Final = struct.Struct("<QI")
_LINKED: Final = struct.Struct("<II")
_SOLE_PAYLOAD: Final = HEADER_BYTES + LENGTH_BYTES
_RECORD_BYTES_MIN: Final = LENGTH_BYTES + 1
_PAYLOADS_JOINED: Final = 64


def next_frame_chain(chain: bytes, length: int, checksum: int) -> bytes:
    """Return the chain of a frame with this length and checksum that follows this chain."""
    return hashlib.sha256(chain + _LINKED.pack(length, checksum)).digest()[:CHAIN_BYTES]


def frame_length(count: int, payload_bytes: int) -> int:
    """Return the length of the frame of so many payloads and bytes of them, without padding."""
    return HEADER_BYTES + LENGTH_BYTES * count + payload_bytes


def frame_start(offset: int, length: int) -> int:
    """Return where a frame of a length begins if the one before it ends at an offset."""
    return offset + -offset % PAGE_BYTES if length >= LARGE_FRAME_BYTES else offset


def frame_end(start: int, length: int) -> int:
    """Return where a frame ends, its padding included."""
    return start + length + -length % ALIGNMENT


def fitting_count(payload_lengths: Sequence[int], offset: int, segment_bytes: int) -> int:
    """Return how many of the payloads, from the first on, go into one frame after an offset.

    0 when a segment of this size has no room for the first.
    """
    if fits(len(payload_lengths), sum(payload_lengths), offset, segment_bytes):
        return len(payload_lengths)
    sums = enumerate(accumulate(payload_lengths), 1)
    return sum(1 for _ in takewhile(lambda each: fits(*each, offset, segment_bytes), sums))


def fits(count: int, payload_bytes: int, offset: int, segment_bytes: int) -> bool:
    """Return whether so many payloads and bytes of them go into one frame after an offset."""
    length = frame_length(count, payload_bytes)
    is_short = length <= BUFFER_BYTES or count == 1
    return is_short and frame_end(frame_start(offset, length), length) <= segment_bytes


def payload_bytes_max(first_offset: int, segment_bytes: int) -> int:
    """Return the length of the longest payload that a segment takes, whose frames begin there."""
    large = segment_bytes - frame_start(first_offset, LARGE_FRAME_BYTES)
    small = min(segment_bytes - first_offset, LARGE_FRAME_BYTES - ALIGNMENT)
    length = large if large >= LARGE_FRAME_BYTES else small
    return min(PAYLOAD_BYTES_MAX, length - frame_length(1, 0))


class EncodedFrame(NamedTuple):
    """The bytes of a frame with its padding, its length without that, and its chain."""

    padded: memoryview
    length: int
    chain: bytes


class FrameEncoder:
    """Encodes frames into one buffer, which each of them overwrites.

    A new buffer for each would cost more than all other work on a large frame: the kernel clears
    its pages when they are first touched.
    """

    def __init__(self) -> None:
        self._buffer = memoryview(bytearray(BUFFER_BYTES + PAGE_BYTES))

    def encode(
        self, sequence: int, chain: bytes, payloads: Sequence[bytes], payload_lengths: Sequence[int]
    ) -> EncodedFrame:
        """Return a frame; `chain` is that of the one before.

        The bytes are valid until the next call. A large frame is padded to whole pages.
        """
        count = len(payloads)
        length = frame_length(count, sum(payload_lengths))
        assert count > 0
        assert length <= BUFFER_BYTES or (count == 1 and length <= FRAME_BYTES_MAX)
        padding = -length % (PAGE_BYTES if length >= LARGE_FRAME_BYTES else ALIGNMENT)
        buffer = self._buffer
        if length > BUFFER_BYTES:
            buffer = memoryview(bytearray(length + padding))
        _BEGIN.pack_into(buffer, _CHECKED_FROM, sequence, count)
        struct.pack_into(f"<{count}I", buffer, HEADER_BYTES, *payload_lengths)
        _copy(payloads, buffer, HEADER_BYTES + LENGTH_BYTES * count)
        checksum = zlib.crc32(buffer[_CHECKED_FROM:length])
        chain = next_frame_chain(chain, length, checksum)
        _SEAL.pack_into(buffer, 0, length, checksum, chain)
        buffer[length : length + padding] = bytes(padding)
        return EncodedFrame(buffer[: length + padding], length, chain)


def _copy(payloads: Sequence[bytes], buffer: memoryview, start: int) -> None:
    """Copy payloads into a buffer, one after the other.

    They are joined first, because a copy into the buffer costs more than a join for a payload; but
    few at a time, so that the joined bytes stay in memory that is already mapped.
    """
    for first in range(0, len(payloads), _PAYLOADS_JOINED):
        joined = b"".join(payloads[first : first + _PAYLOADS_JOINED])
        end = start + len(joined)
        buffer[start:end] = joined
        start = end


def read_frames(buffer: bytes, begin: Run, until: int | None = None) -> Run:
    """Return the records from where another run ended, up to the first frame that is not intact.

    Nothing after the sequence `until` is returned; the chain is then that of the frame that holds
    it. A start may read a million frames here, so little is called for each.
    """
    payloads: list[bytes] = []
    _, sequence, chain, offset, proven_end = begin
    limit = sys.maxsize if until is None else until
    unpack, crc32, sha256 = HEADER.unpack_from, zlib.crc32, hashlib.sha256
    view, last_start = memoryview(buffer), len(buffer) - HEADER_BYTES
    while offset <= last_start and sequence < limit:
        start, head = offset, unpack(buffer, offset)
        if not 0 < head[0] < LARGE_FRAME_BYTES:
            start = _start_of_large(buffer, offset)
            head = unpack(buffer, min(start, last_start))
        length, checksum, seen_chain, first_sequence, count = head
        if first_sequence != sequence + 1 or not _is_possible(length, count, len(buffer) - start):
            break
        end, padding = start + length, -length % ALIGNMENT
        if crc32(view[start + _CHECKED_FROM : end]) != checksum:
            break
        linked = chain + buffer[start : start + _LINKED.size]
        if sha256(linked).digest()[:CHAIN_BYTES] != seen_chain:
            break
        if padding and any(view[end : end + padding]):
            break
        if count == 1:
            payloads.append(buffer[start + _SOLE_PAYLOAD : end])
        else:
            payloads += _payloads(buffer, start, count, end)
        proven_end = offset
        sequence, chain, offset = sequence + count, seen_chain, end + padding
    surplus = max(0, sequence - limit)
    return Run(payloads[: len(payloads) - surplus], sequence - surplus, chain, offset, proven_end)


def _start_of_large(buffer: bytes, offset: int) -> int:
    """Return where a large frame begins after an offset: at the next page, after zeros.

    The end of the buffer where none does.
    """
    start = frame_start(offset, LARGE_FRAME_BYTES)
    is_large = _length_at(buffer, start) >= LARGE_FRAME_BYTES
    is_next = is_large and buffer[offset:start] == bytes(start - offset)
    return start if is_next else len(buffer)


def _length_at(buffer: bytes, start: int) -> int:
    return int.from_bytes(buffer[start : start + LENGTH_BYTES], "little")


def _is_possible(length: int, count: int, room: int) -> bool:
    """Return whether a frame may have this length and count where the buffer has so much room."""
    shortest = HEADER_BYTES + _RECORD_BYTES_MIN * count
    return count > 0 and shortest <= length <= FRAME_BYTES_MAX and length <= room


def _payloads(buffer: bytes, start: int, count: int, end: int) -> list[bytes]:
    """Return the payloads of a frame whose checksum is right."""
    begin = start + HEADER_BYTES + LENGTH_BYTES * count
    lengths = struct.unpack_from(f"<{count}I", buffer, start + HEADER_BYTES)
    bounds = list(accumulate(lengths, initial=begin))
    assert bounds[-1] == end
    return [buffer[one:other] for one, other in pairwise(bounds)]


def sequence_of_frame(buffer: bytes | memoryview, start: int) -> int | None:
    """Return the first sequence of the frame that starts here, None when there is no intact one.

    The frame before it is not needed.
    """
    if start + HEADER_BYTES > len(buffer):
        return None
    length, checksum, _, sequence, count = HEADER.unpack_from(buffer, start)
    if not _is_possible(length, count, len(buffer) - start):
        return None
    first_sequence: int = sequence
    is_intact = zlib.crc32(buffer[start + _CHECKED_FROM : start + length]) == checksum
    return first_sequence if is_intact else None


def synced_by_later_frames(buffer: bytes, offset: int) -> int:
    """Return the highest sequence that intact frames from an offset on prove to be synced."""
    synced, view = 0, memoryview(buffer)
    for start in range(offset, len(buffer.rstrip(b"\x00")), ALIGNMENT):
        if any(buffer[start : start + LENGTH_BYTES]):
            synced = max(synced, (sequence_of_frame(view, start) or 1) - 1)
    return synced


def is_frame_cut_short(buffer: bytes, offset: int) -> bool:
    """Return whether the bytes after the last frame are one more of which a sector is missing.

    Its length may be missing too, so both places where it may begin are tried.
    """
    end = len(buffer.rstrip(b"\x00"))
    if end <= offset + LARGE_FRAME_BYTES and _lacks_sector(buffer, offset, end):
        return True
    start = frame_start(offset, LARGE_FRAME_BYTES)
    return buffer[offset:start] == bytes(start - offset) and _lacks_sector(buffer, start, end)


def _lacks_sector(buffer: bytes, start: int, end: int) -> bool:
    """Return whether a sector of the frame that begins here, and nothing after it, was not written.

    `end` is where the bytes end that are not zeros.
    """
    length = _length_at(buffer, start)
    following = start + SECTOR_BYTES - start % SECTOR_BYTES
    if length == 0:
        return not any(buffer[start:following])
    return end <= start + length and any(
        not any(buffer[sector : sector + SECTOR_BYTES])
        for sector in range(following, min(start + length, len(buffer)), SECTOR_BYTES)
    )
