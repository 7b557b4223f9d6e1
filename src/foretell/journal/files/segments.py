"""The segments of a journal: their names, headers, records and checks.

A segment is named after its first sequence, begins with a header that carries the chain so far, and
holds records up to the first zeros. Only the newest may end in a record that was cut short.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.framing import (
    ALIGNMENT,
    CHAIN_START,
    HEADER_BYTES,
    Run,
    decode_record,
    read_run,
)
from foretell.runtime.folders import sync_folder

MAGIC: Final = b"FTJOURN1"
SECTOR_BYTES: Final = 512
SUFFIX: Final = ".journal"
MARK_NAME: Final = "synced"

_HEAD: Final = struct.Struct("<8sQ16sI")
_MARK: Final = struct.Struct("<QI")
HEAD_BYTES: Final = 40


class End(NamedTuple):
    """The place of the next record, and what it follows."""

    path: Path | None
    offset: int
    sequence: int
    chain: bytes


EMPTY: Final = End(None, 0, 0, CHAIN_START)


def segment_name(first_sequence: int) -> str:
    """Return the file name of the segment that begins with this sequence."""
    return f"{first_sequence:020d}{SUFFIX}"


def segment_paths(folder: Path) -> list[Path]:
    """Return the segments of a journal, the oldest first; a file with another name is damage."""
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    for path in paths:
        digits = path.stem
        if not (digits.isascii() and digits.isdigit()) or path.name != segment_name(int(digits)):
            raise JournalDamaged(path.name, 0, "the file name is not a segment's")
    return paths


def encode_head(first_sequence: int, chain: bytes) -> bytes:
    """Return the first bytes of a segment."""
    head = _HEAD.pack(MAGIC, first_sequence, chain, 0)[:-4]
    return (head + zlib.crc32(head).to_bytes(4, "little")).ljust(HEAD_BYTES, b"\x00")


def read_segment(path: Path) -> tuple[bytes, End]:
    """Return a segment's bytes, and the place of its first record."""
    buffer = path.read_bytes()
    if len(buffer) < HEAD_BYTES or buffer[:HEAD_BYTES] != _true_head(buffer, path):
        raise JournalDamaged(path.name, 0, "the header does not belong to this segment")
    _, first_sequence, chain, _ = _HEAD.unpack_from(buffer)
    sequence = first_sequence - 1
    return buffer, End(path, HEAD_BYTES, sequence, chain)


def _true_head(buffer: bytes, path: Path) -> bytes:
    _, first_sequence, chain, _ = _HEAD.unpack_from(buffer)
    is_named = path.name == segment_name(first_sequence)
    return encode_head(first_sequence, chain) if is_named else b""


def read_records(buffer: bytes, begin: End, until: int | None = None) -> tuple[list[bytes], End]:
    """Return the payloads of a segment's consecutive records, and the end after them.

    Nothing after the sequence `until` is read.
    """
    run = read_run(buffer, Run([], begin.sequence, begin.chain, begin.offset), until)
    return run.payloads, End(begin.path, run.end, run.sequence, run.chain)


def check_rest(buffer: bytes, end: End, *, is_newest: bool) -> None:
    """Refuse a segment if no crash of ours can have left the bytes after its last record.

    Zeros were never written. In the newest segment a write may have been cut short: then some of
    its sectors are still zeros, and no later record states that it was synced.
    """
    assert end.path is not None
    if not buffer[end.offset :].rstrip(b"\x00"):
        return
    if not is_newest:
        raise JournalDamaged(end.path.name, end.offset, "a record is missing here")
    if _synced_later(buffer, end.offset) > end.sequence:
        raise JournalDamaged(end.path.name, end.offset, "a synced record is missing")
    if not _is_cut_short(buffer, end.offset):
        raise JournalDamaged(end.path.name, end.offset, "the record is damaged")


def _synced_later(buffer: bytes, offset: int) -> int:
    """Return the highest sequence that any intact later record states to be synced."""
    synced = 0
    for start in range(offset, len(buffer) - HEADER_BYTES, ALIGNMENT):
        if any(buffer[start : start + 4]):
            record = decode_record(buffer, start)
            if record is not None:
                synced = max(synced, record.synced)
    return synced


def _is_cut_short(buffer: bytes, offset: int) -> bool:
    """Return whether a sector of the record that should begin here was never written."""
    length = int.from_bytes(buffer[offset : offset + 4], "little")
    if length == 0:
        return not any(buffer[offset : offset + HEADER_BYTES])
    first = -(-offset // SECTOR_BYTES) * SECTOR_BYTES
    return any(
        not any(buffer[sector : sector + SECTOR_BYTES])
        for sector in range(first, min(offset + length, len(buffer)), SECTOR_BYTES)
    )


def has_entries_after(folder: Path, sequence: int) -> bool:
    """Return whether the entries after a sequence are still there."""
    paths = segment_paths(folder)
    return bool(paths) and int(paths[0].stem) <= sequence + 1


def chain_at(folder: Path, sequence: int) -> bytes:
    """Return the chain after a durable sequence, or refuse one that is not there."""
    holding = [path for path in segment_paths(folder) if int(path.stem) <= sequence + 1]
    if not holding:
        raise JournalDamaged(str(folder), 0, f"the segment of sequence {sequence + 1} is missing")
    buffer, end = read_segment(holding[-1])
    _, end = read_records(buffer, end, sequence)
    if end.sequence == sequence:
        return end.chain
    raise JournalDamaged(holding[-1].name, 0, f"sequence {sequence} is not in it")


def find_end(folder: Path) -> End:
    """Return where the journal continues; a record that was cut short is not erased yet."""
    paths = segment_paths(folder)
    end = EMPTY
    if paths:
        buffer, end = read_segment(paths[-1])
        _, end = read_records(buffer, end)
        check_rest(buffer, end, is_newest=True)
    synced = Mark.read(folder)
    if synced > end.sequence:
        name = end.path.name if end.path else str(folder)
        raise JournalDamaged(name, end.offset, f"sequence {synced} was synced and is missing")
    return end


class Mark:
    """A file next to the segments that states up to which sequence they were synced.

    Two slots are written in turn, so that a write that is cut short leaves the other one intact.
    The mark may lag behind the records, and is never ahead of them.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / MARK_NAME
        self.sequence = Mark.read(folder)
        self._slot = 0
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if os.fstat(self.handle).st_size == 0:
            os.pwrite(self.handle, bytes(2 * SECTOR_BYTES), 0)
            self.write(0)
            self.write(0)
            sync_folder(folder)

    @staticmethod
    def read(folder: Path) -> int:
        """Return the highest sequence that the file states."""
        path = folder / MARK_NAME
        raw = path.read_bytes() if path.exists() else b""
        slots = [_MARK.unpack_from(raw, at) for at in range(0, len(raw) - 11, SECTOR_BYTES)]
        sequences = [slot[0] for slot in slots if _mark(slot[0]) == _MARK.pack(*slot)]
        if raw.rstrip(b"\x00") and not sequences:
            raise JournalDamaged(MARK_NAME, 0, "both slots are damaged")
        return max(sequences, default=0)

    def write(self, sequence: int) -> None:
        """State that a sequence is synced."""
        os.pwrite(self.handle, _mark(sequence), self._slot * SECTOR_BYTES)
        os.fdatasync(self.handle)
        self._slot = 1 - self._slot
        self.sequence = sequence

    def close(self) -> None:
        """Close the file."""
        os.close(self.handle)


def _mark(sequence: int) -> bytes:
    return _MARK.pack(sequence, zlib.crc32(sequence.to_bytes(8, "little")))
