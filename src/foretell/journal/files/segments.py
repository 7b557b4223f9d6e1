"""The segments of a journal: their names, headers, versions and checks.

A segment is named after its first sequence, begins with a header that carries the chain so far, and
is followed by the segment that continues its sequence and its chain. Version 1 holds records,
version 2 frames; a journal may begin with the one and continue with the other. Only the newest
segment may end in a write that was cut short.
"""

import os
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.frames import is_frame_cut_short, read_frames, synced_by_later_frames
from foretell.journal.files.records import is_record_cut_short, read_run, synced_by_later_records
from foretell.journal.framing import CHAIN_START, SECTOR_BYTES, Run
from foretell.runtime.files import OWNER_ONLY
from foretell.runtime.folders import sync_folder

MAGIC_BY_VERSION: Final[Mapping[int, bytes]] = MappingProxyType({1: b"FTJOURN1", 2: b"FTJOURN2"})
VERSION: Final = 2
"""The version that is written."""
SUFFIX: Final = ".journal"
MARK_NAME: Final = "synced"

_VERSION_BY_MAGIC: Final = {magic: version for version, magic in MAGIC_BY_VERSION.items()}
_HEAD: Final = struct.Struct("<8sQ16sI")
_MARK: Final = struct.Struct("<QI")
HEAD_BYTES: Final = 40
_ZEROS: Final = bytes(64 * 1024)


class _Layout(NamedTuple):
    """The functions that read the contents of a version."""

    read: Callable[[bytes, Run, int | None], Run]
    synced_later: Callable[[bytes, int], int]
    is_cut_short: Callable[[bytes, int], bool]


_LAYOUTS: Final[Mapping[int, _Layout]] = MappingProxyType(
    {
        1: _Layout(read_run, synced_by_later_records, is_record_cut_short),
        2: _Layout(read_frames, synced_by_later_frames, is_frame_cut_short),
    }
)


class End(NamedTuple):
    """The place of the next record, what it follows, and the version of the segment there.

    Nothing proves that the bytes from `proven_offset` on were synced: they are of the last write.
    """

    path: Path | None
    offset: int
    sequence: int
    chain: bytes
    version: int = VERSION
    proven_offset: int = HEAD_BYTES


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


def encode_head(first_sequence: int, chain: bytes, version: int = VERSION) -> bytes:
    """Return the first bytes of a segment."""
    return _head_of(MAGIC_BY_VERSION[version], first_sequence, chain)


def _head_of(magic: bytes, first_sequence: int, chain: bytes) -> bytes:
    head = _HEAD.pack(magic, first_sequence, chain, 0)[:-4]
    return (head + zlib.crc32(head).to_bytes(4, "little")).ljust(HEAD_BYTES, b"\x00")


def read_segment(path: Path) -> tuple[bytes, End]:
    """Return a segment's bytes, and the place of its first record or frame."""
    buffer = path.read_bytes()
    magic, first_sequence, chain, _ = _HEAD.unpack_from(buffer.ljust(HEAD_BYTES, b"\x00"))
    is_whole = buffer[:HEAD_BYTES] == _head_of(magic, first_sequence, chain)
    if not is_whole or path.name != segment_name(first_sequence):
        raise JournalDamaged(path.name, 0, "the header does not belong to this segment")
    if magic not in _VERSION_BY_MAGIC:
        raise JournalDamaged(path.name, 0, f"this program cannot read its format, {magic!r}")
    return buffer, End(path, HEAD_BYTES, first_sequence - 1, chain, _VERSION_BY_MAGIC[magic])


def read_records(buffer: bytes, begin: End, until: int | None = None) -> tuple[list[bytes], End]:
    """Return the payloads of a segment's consecutive records, and the end after them.

    Nothing after the sequence `until` is read.
    """
    run = _LAYOUTS[begin.version].read(
        buffer, Run([], begin.sequence, begin.chain, begin.offset), until
    )
    proven_offset = max(begin.proven_offset, run.proven_end)
    return run.payloads, End(
        begin.path, run.end, run.sequence, run.chain, begin.version, proven_offset
    )


def check_rest(buffer: bytes, end: End, *, is_newest: bool) -> None:
    """Refuse a segment if no crash of ours can have left the bytes after its last record.

    Zeros were never written. In the newest segment a write may have been cut short: then some of
    its sectors are still zeros, and no later record states that it was synced.
    """
    assert end.path is not None
    if is_never_written(buffer, end.offset):
        return
    if not is_newest:
        raise JournalDamaged(end.path.name, end.offset, "a record is missing here")
    layout = _LAYOUTS[end.version]
    if layout.synced_later(buffer, end.offset) > end.sequence:
        raise JournalDamaged(end.path.name, end.offset, "a synced record is missing")
    if not layout.is_cut_short(buffer, end.offset):
        raise JournalDamaged(end.path.name, end.offset, "the record is damaged")


def is_never_written(content: bytes, offset: int = 0) -> bool:
    """Return whether all bytes from an offset on are zeros; most of a segment is."""
    places = range(offset, len(content), len(_ZEROS))
    return all(_ZEROS.startswith(content[at : at + len(_ZEROS)]) for at in places)


def has_entries_after(folder: Path, sequence: int) -> bool:
    """Return whether the entries after a sequence are still there."""
    paths = segment_paths(folder)
    return bool(paths) and int(paths[0].stem) <= sequence + 1


def chain_at(folder: Path, sequence: int) -> bytes:
    """Return the chain after a durable sequence, or refuse one that is not there.

    Within a frame that is the chain of the whole frame: it was written and synced as one.
    """
    holding = [path for path in segment_paths(folder) if int(path.stem) <= sequence + 1]
    if not holding:
        raise JournalDamaged(str(folder), 0, f"the segment of sequence {sequence + 1} is missing")
    buffer, end = read_segment(holding[-1])
    _, end = read_records(buffer, end, sequence)
    if end.sequence == sequence:
        return end.chain
    raise JournalDamaged(holding[-1].name, 0, f"sequence {sequence} is not in it")


class LastWrite(NamedTuple):
    """Where the journal continues, and the bytes of the last write before that place."""

    end: End
    content: bytes


def find_end(folder: Path) -> End:
    """Return where the journal continues; a record that was cut short is not erased yet."""
    return find_last_write(folder).end


def find_last_write(folder: Path) -> LastWrite:
    """Return where the journal continues, and what may be there in the memory of the kernel alone."""
    paths = segment_paths(folder)
    end, content = EMPTY, b""
    if paths:
        buffer, end = read_segment(paths[-1])
        _, end = read_records(buffer, end)
        check_rest(buffer, end, is_newest=True)
        content = buffer[end.proven_offset : end.offset]
    synced = Mark.read(folder)
    if synced > end.sequence:
        name = end.path.name if end.path else str(folder)
        raise JournalDamaged(name, end.offset, f"sequence {synced} was synced and is missing")
    return LastWrite(end, content)


class Mark:
    """A file next to the segments that states up to which sequence they were synced.

    Two slots are written in turn, so that a write that is cut short leaves the other one intact.
    The mark may lag behind the records, and is never ahead of them.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / MARK_NAME
        self.sequence = Mark.read(folder)
        self._slot = 0
        self.handle = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
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
