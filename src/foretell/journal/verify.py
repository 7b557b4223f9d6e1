"""Verify a journal's files from outside: check everything in them, and change nothing.

In a folder that another process uses, only what its mark covers is checked: that is durable, and
what comes after may be half written.
"""

from pathlib import Path
from typing import NamedTuple

from foretell.domain.errors.storage import JournalDamaged
from foretell.domain.exchange.snapshot import decode_state
from foretell.journal.files.folder_lock import is_locked
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import Mark, chain_at, find_end, segment_paths
from foretell.journal.files.snapshots import (
    check_snapshots,
    newest_sequence,
    read_snapshot,
    snapshot_paths,
)


class JournalReport(NamedTuple):
    """The intact contents of a journal; `bytes` are those of the payloads."""

    first_sequence: int
    last_sequence: int
    records: int
    bytes: int
    segments: int
    snapshots: tuple[int, ...]
    is_in_use: bool


def durable_until(folder: Path) -> int | None:
    """Return the sequence up to which a folder in use may be read; None if it is not in use."""
    if not is_locked(folder):
        return None
    return max(Mark.read(folder), newest_sequence(folder))


def first_sequence(folder: Path) -> int:
    """Return the sequence of the oldest record that is kept, 1 when there is none."""
    return min((int(path.stem) for path in segment_paths(folder)), default=1)


def verify(folder: Path) -> JournalReport:
    """Check every segment, the chain, the mark and every snapshot; damage raises JournalDamaged."""
    until, first = durable_until(folder), first_sequence(folder)
    if until is None:
        find_end(folder)
    records, size, last = 0, 0, first - 1
    for entry in read_entries(folder, first - 1, until):
        records, size, last = records + 1, size + len(entry.payload), entry.sequence
    if until is not None and last < until:
        raise JournalDamaged(str(folder), 0, f"sequence {until} was synced and is missing")
    check_snapshots(folder, last)
    snapshots = tuple(_verified_sequence(folder, path) for path in snapshot_paths(folder))
    return JournalReport(
        first_sequence=first,
        last_sequence=last,
        records=records,
        bytes=size,
        segments=len(segment_paths(folder)),
        snapshots=snapshots,
        is_in_use=until is not None,
    )


def _verified_sequence(folder: Path, path: Path) -> int:
    snapshot, chain = read_snapshot(path)
    if chain_at(folder, snapshot.sequence) != chain:
        raise JournalDamaged(path.name, 0, "it belongs to another journal")
    decode_state(snapshot.payload)
    return snapshot.sequence
