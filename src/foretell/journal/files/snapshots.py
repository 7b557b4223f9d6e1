"""The files of snapshots: writing, reading, choosing, and the removal of what they replace.

A snapshot is named after the last sequence in it and bears the chain of that record, so it belongs
to one place in one journal. It gets its name when it is complete and synced. The two newest are
kept, and the entries after the older one: a single damaged snapshot costs only time.
"""

import contextlib
import hashlib
import itertools
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple

import structlog

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.segments import chain_at, has_entries_after, segment_paths
from foretell.journal.port import Snapshot
from foretell.runtime.files import write_atomically
from foretell.runtime.folders import sync_folder

MAGIC: Final = b"FTSNAPS1"
SUFFIX: Final = ".snapshot"
PART_SUFFIX: Final = ".part"
SNAPSHOTS_KEPT: Final = 2

_HEAD: Final = struct.Struct("<8sQ16sQ")
_CHECKSUM_BYTES: Final = 32
HEAD_BYTES: Final = _HEAD.size + _CHECKSUM_BYTES

log = structlog.get_logger(__name__)


class ChainedSnapshot(NamedTuple):
    """A snapshot, and the chain of the last record in it."""

    snapshot: Snapshot
    chain: bytes


def snapshot_name(sequence: int) -> str:
    """Return the file name of the snapshot after this sequence."""
    return f"{sequence:020d}{SUFFIX}"


def snapshot_paths(folder: Path) -> list[Path]:
    """Return the snapshots of a journal, the oldest first; a file with another name is damage."""
    paths = sorted(folder.glob(f"*{SUFFIX}"))
    for path in paths:
        digits = path.stem
        if not (digits.isascii() and digits.isdigit()) or path.name != snapshot_name(int(digits)):
            raise JournalDamaged(path.name, 0, "the file name is not a snapshot's")
    return paths


def newest_sequence(folder: Path) -> int:
    """Return the sequence of the newest snapshot by its name, 0 when there is none."""
    return max((int(path.stem) for path in snapshot_paths(folder)), default=0)


def write_snapshot(folder: Path, chained: ChainedSnapshot) -> Path:
    """Write and sync a snapshot; it appears complete or not at all."""
    snapshot = chained.snapshot
    head = _HEAD.pack(MAGIC, snapshot.sequence, chained.chain, len(snapshot.payload))
    path = folder / snapshot_name(snapshot.sequence)
    part = path.with_suffix(f".{os.getpid()}{PART_SUFFIX}")
    checksum = _checksum(head, snapshot.payload)
    write_atomically(path, head, checksum, snapshot.payload, draft=part)
    return path


def read_snapshot(path: Path) -> ChainedSnapshot:
    """Return the snapshot of a file; one that is not intact raises JournalDamaged."""
    with path.open("rb") as file:
        head, checksum = file.read(_HEAD.size), file.read(_CHECKSUM_BYTES)
        payload = file.read()
    if len(checksum) < _CHECKSUM_BYTES or checksum != _checksum(head, payload):
        raise JournalDamaged(path.name, 0, "the snapshot is incomplete")
    magic, sequence, chain, length = _HEAD.unpack(head)
    if (magic, length, path.name) != (MAGIC, len(payload), snapshot_name(sequence)):
        raise JournalDamaged(path.name, 0, "the header does not belong to this snapshot")
    return ChainedSnapshot(Snapshot(sequence, payload), chain)


def newest_snapshot(folder: Path, until: int | None = None) -> Snapshot | None:
    """Return the newest snapshot that is intact, of this journal and not after a sequence, if there is one.

    Damaged ones are skipped, as long as the entries that they replace are still there.
    """
    damages: list[JournalDamaged] = []
    for path in reversed(snapshot_paths(folder)):
        if until is not None and int(path.stem) > until:
            continue
        try:
            return _matching(folder, path)
        except JournalDamaged as damage:
            log.warning("snapshot skipped", file=path.name, cause=damage.message)
            damages.append(damage)
    if damages and not has_entries_after(folder, 0):
        raise damages[0]
    return None


def check_snapshots(folder: Path, last_sequence: int) -> None:
    """Refuse a journal that ends before one of its snapshots: synced entries are gone."""
    sequence = newest_sequence(folder)
    if sequence > last_sequence:
        raise JournalDamaged(
            snapshot_name(sequence),
            0,
            f"its sequence is later than the end of the journal, {last_sequence}",
        )


def remove_parts(folder: Path) -> None:
    """Remove the remains of unfinished snapshots."""
    for part in folder.glob(f"*{PART_SUFFIX}"):
        part.unlink(missing_ok=True)


def compact(folder: Path, *, keeps_all: bool = False) -> int:
    """Remove what the two newest snapshots do not need, and return how many segments that were.

    With `keeps_all` no segment is removed, only older snapshots. Only the holder of the folder's
    lock may call this. If either of the two is damaged, everything is kept. The oldest segment is
    removed first, so that a crash at any moment leaves a journal without a gap.
    """
    snapshots = snapshot_paths(folder)
    kept = snapshots[-SNAPSHOTS_KEPT:]
    if len(kept) < SNAPSHOTS_KEPT or not all(_is_whole(path) for path in kept):
        return 0
    for path in snapshots[:-SNAPSHOTS_KEPT]:
        path.unlink()
    paths = [] if keeps_all else segment_paths(folder)
    needless = [
        path
        for path, following in itertools.pairwise(paths)
        if int(following.stem) <= int(kept[0].stem) + 1
    ]
    for path in needless:
        path.unlink()
        sync_folder(folder)
    return len(needless)


def _matching(folder: Path, path: Path) -> Snapshot:
    snapshot, chain = read_snapshot(path)
    if chain_at(folder, snapshot.sequence) != chain:
        raise JournalDamaged(path.name, 0, "it belongs to another journal")
    return snapshot


def _is_whole(path: Path) -> bool:
    with contextlib.suppress(JournalDamaged):
        read_snapshot(path)
        return True
    return False


def _checksum(head: bytes, payload: bytes) -> bytes:
    digest = hashlib.blake2b(head, digest_size=_CHECKSUM_BYTES)
    digest.update(payload)
    return digest.digest()
