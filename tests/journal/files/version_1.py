"""Journals of version 1, which the product only reads, written as it wrote them."""

import struct
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from foretell.journal.files.records import HEADER_BYTES
from foretell.journal.files.segments import EMPTY, HEAD_BYTES, End, Mark, encode_head, segment_name
from foretell.journal.framing import ALIGNMENT, PAYLOAD_BYTES_MAX, next_chain

_CHECKED = struct.Struct("<QQ16s")


def encode_record(sequence: int, synced: int, chain: bytes, payload: bytes) -> bytes:
    """Return the bytes of a record, padded; `chain` is the record's own."""
    assert 0 < len(payload) <= PAYLOAD_BYTES_MAX
    checked = _CHECKED.pack(sequence, synced, chain) + payload
    length = HEADER_BYTES + len(payload)
    head = length.to_bytes(4, "little") + zlib.crc32(checked).to_bytes(4, "little")
    return head + checked + bytes(-length % ALIGNMENT)


class Writer:
    """Writes batches of records, and the segments that they need."""

    def __init__(self, folder: Path, segment_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._segment_bytes = folder, segment_bytes
        self._segment = bytearray()
        self.end = EMPTY._replace(version=1)

    def write(self, payloads: Sequence[bytes]) -> None:
        """Write a batch."""
        synced = self.end.sequence
        for payload in payloads:
            chain = next_chain(self.end.chain, payload)
            record = encode_record(self.end.sequence + 1, synced, chain, payload)
            if self.end.path is None or self.end.offset + len(record) > self._segment_bytes:
                self.begin_segment()
            offset, end = self.end.offset, self.end.offset + len(record)
            self._segment[offset:end] = record
            self.end = self.end._replace(offset=end, sequence=self.end.sequence + 1, chain=chain)
        assert self.end.path is not None
        self.end.path.write_bytes(self._segment)

    def begin_segment(self) -> None:
        """Begin the next segment."""
        if self.end.path is not None:
            self.end.path.write_bytes(self._segment)
        first, chain = self.end.sequence + 1, self.end.chain
        self._segment = bytearray(encode_head(first, chain, 1).ljust(self._segment_bytes, b"\x00"))
        path = self._folder / segment_name(first)
        path.write_bytes(self._segment)
        self.end = End(path, HEAD_BYTES, first - 1, chain, 1)

    def mark(self) -> None:
        """State that everything is synced."""
        mark = Mark(self._folder)
        mark.write(self.end.sequence)
        mark.close()


def write_version_1(folder: Path, batches: Iterable[Sequence[bytes]], segment_bytes: int) -> End:
    """Write a journal of version 1 that was closed, and return its end."""
    writer = Writer(folder, segment_bytes)
    for payloads in batches:
        writer.write(payloads)
    writer.mark()
    return writer.end
