"""A process that takes the next snapshot by a replay, so that the engine never stops for one.

It reads one line from its standard input: the journal, and a durable sequence of it. It replays
what came after the newest snapshot and keeps the next one; it locks nothing and removes nothing. A
database takes its snapshot only while the parent process holds the lease. It runs at the lowest
priority, and ends with its parent, the end of which closes its standard input.
"""

import contextlib
import os
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Final

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.storage import JournalDamaged, JournalRowsDamaged
from foretell.domain.treasury.folds import FOLD_BY_KIND, JournalFold, JournalKind
from foretell.journal.files.reader import read_entries
from foretell.journal.files.segments import chain_at
from foretell.journal.files.snapshots import ChainedSnapshot, newest_snapshot, write_snapshot
from foretell.journal.port import (
    Entry,
    FileJournalAddress,
    JournalAddress,
    PostgresJournalAddress,
    Snapshot,
)
from foretell.journal.postgres.connections import with_connection
from foretell.journal.postgres.rows import read_entries as read_rows
from foretell.journal.postgres.snapshots import keep_snapshot
from foretell.journal.postgres.snapshots import newest_snapshot as newest_in_rows
from foretell.runtime.garbage_collection import garbage_collection_paused

NICENESS: Final = 19


class SnapshotJob(msgspec.Struct, frozen=True, kw_only=True):
    """A snapshot to take: of which journal, and after which sequence."""

    address: JournalAddress
    until: int
    kind: JournalKind = JournalKind.SHARD


def encode_job(job: SnapshotJob) -> bytes:
    """Return the line that the process reads."""
    return msgspec.json.encode(job) + b"\n"


def take_snapshot(folder: Path, until: int, kind: JournalKind = JournalKind.SHARD) -> Path:
    """Write the snapshot of a folder's journal after a durable sequence; return its path."""
    fold, sequence = _begin(kind, newest_snapshot(folder))
    sequence = _fold_until(fold, read_entries(folder, sequence, until), until, sequence)
    if sequence != until:
        raise JournalDamaged(
            str(folder), 0, f"it ends at {sequence}, and sequence {until} was durable"
        )
    snapshot = Snapshot(until, fold.encode())
    return write_snapshot(folder, ChainedSnapshot(snapshot, chain_at(folder, until)))


def take_snapshot_of_rows(
    address: PostgresJournalAddress, until: int, kind: JournalKind = JournalKind.SHARD
) -> None:
    """Keep the snapshot of a database's journal after a durable sequence, or refuse."""
    url, shard = address.url, address.shard
    fold, sequence = _begin(
        kind, with_connection(url, lambda connection: newest_in_rows(connection, shard))
    )
    sequence = _fold_until(fold, read_rows(url, shard, sequence), until, sequence)
    if sequence != until:
        raise JournalRowsDamaged(shard, sequence, f"sequence {until} was durable and is missing")
    snapshot = Snapshot(until, fold.encode())
    with_connection(
        url, lambda connection: keep_snapshot(connection, shard, address.holder, snapshot)
    )


def _begin(kind: JournalKind, base: Snapshot | None) -> tuple[JournalFold, int]:
    """Return the state and sequence that a replay begins with, from a snapshot if there is one."""
    new = FOLD_BY_KIND[kind]
    return (new(None), 0) if base is None else (new(base.payload), base.sequence)


def _fold_until(
    fold: JournalFold, entries: Generator[Entry, None, None], until: int, sequence: int
) -> int:
    """Apply entries up to a sequence, and return that of the last one applied."""
    with contextlib.closing(entries):
        for entry in entries:
            if entry.sequence > until:
                break
            fold.take(entry.payload)
            sequence = entry.sequence
    return sequence


def _take(job: SnapshotJob) -> None:
    if isinstance(job.address, FileJournalAddress):
        take_snapshot(Path(job.address.folder), job.until, job.kind)
    else:
        take_snapshot_of_rows(job.address, job.until, job.kind)


def main() -> None:
    """Take the snapshot; a failure prints one line and exits with 1."""
    os.nice(NICENESS)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=SnapshotJob)

    def end_with_parent() -> None:
        os.read(sys.stdin.fileno(), 1)
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
    try:
        with garbage_collection_paused():
            _take(job)
    except ForetellError as error:
        sys.exit(error.message)
    except OSError as error:
        sys.exit(f"{error.filename or 'the journal'}: {error.strerror}")


if __name__ == "__main__":
    main()
