"""Version 1 of a segment's contents: a record of its own for each payload. It is only read.

    bytes   field
    4       length of the record, this header included, padding not
    4       CRC-32 of everything after this field, padding not
    8       sequence number, one more than the record before
    8       the sequence that was known to be synced when this was written
    16      chain: a hash of the record before's chain and this payload
    ...     payload
    ...     zeros up to a multiple of 8

The synced sequence distinguishes a write that was cut short from the loss of one that was
acknowledged.
"""

import hashlib
import struct
import zlib
from typing import Final, NamedTuple

from foretell.journal.framing import ALIGNMENT, CHAIN_BYTES, PAYLOAD_BYTES_MAX, SECTOR_BYTES, Run

HEADER: Final = struct.Struct("<IIQQ16s")
HEADER_BYTES: Final = HEADER.size
RECORD_BYTES_MAX: Final = HEADER_BYTES + PAYLOAD_BYTES_MAX


class Record(NamedTuple):
    """A record that was read, and where it ends in the file."""

    sequence: int
    synced: int
    chain: bytes
    payload: bytes
    end: int


def decode_record(buffer: bytes | memoryview, start: int) -> Record | None:
    """Return the record that starts here, or None when there is no intact one."""
    if start + HEADER_BYTES > len(buffer):
        return None
    length, checksum, sequence, synced, chain = HEADER.unpack_from(buffer, start)
    if not HEADER_BYTES < length <= RECORD_BYTES_MAX:
        return None
    end = start + length
    padded_end = end + -length % ALIGNMENT
    if padded_end > len(buffer) or zlib.crc32(buffer[start + ALIGNMENT : end]) != checksum:
        return None
    if any(buffer[end:padded_end]):
        return None
    payload = bytes(buffer[start + HEADER_BYTES : end])
    return Record(sequence, synced, chain, payload, padded_end)


def read_run(buffer: bytes, begin: Run, until: int | None = None) -> Run:
    """Return the records from where another run ended, up to the first that is not intact.

    Nothing after the sequence `until` is read. A start reads millions of records here, so the
    checks of `decode_record` are written out, without a call or an object per record.
    """
    payloads: list[bytes] = []
    _, sequence, chain, start, _ = begin
    unpack, crc32, blake2b = HEADER.unpack_from, zlib.crc32, hashlib.blake2b
    view, last_start = memoryview(buffer), len(buffer) - HEADER_BYTES
    while start <= last_start and sequence != until:
        length, checksum, seen, _, seen_chain = unpack(buffer, start)
        if seen != sequence + 1 or not HEADER_BYTES < length <= RECORD_BYTES_MAX:
            break
        end = start + length
        if crc32(view[start + ALIGNMENT : end]) != checksum:
            break
        payload = buffer[start + HEADER_BYTES : end]
        if blake2b(chain + payload, digest_size=CHAIN_BYTES).digest() != seen_chain:
            break
        padding = -length % ALIGNMENT
        if len(payload) != length - HEADER_BYTES or buffer[end : end + padding] != bytes(padding):
            break
        payloads.append(payload)
        sequence, chain, start = seen, seen_chain, end + padding
    return Run(payloads, sequence, chain, start)


def synced_by_later_records(buffer: bytes, offset: int) -> int:
    """Return the highest sequence that any intact record from an offset on states to be synced."""
    synced = 0
    for start in range(offset, len(buffer) - HEADER_BYTES, ALIGNMENT):
        if any(buffer[start : start + 4]):
            record = decode_record(buffer, start)
            if record is not None:
                synced = max(synced, record.synced)
    return synced


def is_record_cut_short(buffer: bytes, offset: int) -> bool:
    """Return whether a sector of the record that should begin here was never written."""
    length = int.from_bytes(buffer[offset : offset + 4], "little")
    if length == 0:
        return not any(buffer[offset : offset + HEADER_BYTES])
    first = -(-offset // SECTOR_BYTES) * SECTOR_BYTES
    return any(
        not any(buffer[sector : sector + SECTOR_BYTES])
        for sector in range(first, min(offset + length, len(buffer)), SECTOR_BYTES)
    )
