"""Read a journal at its address, in another process than its writer's, without a lock.

What is durable is never changed, so reading up to a durable sequence is safe while the journal grows. The
writer may remove old entries meanwhile, never those after its two newest snapshots.
"""

import contextlib
from collections.abc import Generator
from pathlib import Path

from foretell.domain.errors.storage import JournalDamaged
from foretell.journal.files.reader import read_entries
from foretell.journal.files.snapshots import newest_snapshot
from foretell.journal.port import Entry, FileJournalAddress, JournalAddress, Snapshot
from foretell.journal.postgres.connections import with_connection
from foretell.journal.postgres.rows import read_entries as read_rows
from foretell.journal.postgres.snapshots import newest_snapshot as newest_in_rows


def newest_snapshot_at(address: JournalAddress, until: int | None = None) -> Snapshot | None:
    """Return the newest intact snapshot of a journal that is not after a sequence, if there is one."""
    if isinstance(address, FileJournalAddress):
        return newest_snapshot(Path(address.folder), until)
    return with_connection(
        address.url, lambda connection: newest_in_rows(connection, address.shard, until)
    )


def entries_at(address: JournalAddress, after: int, until: int) -> Generator[Entry, None, None]:
    """Yield the entries of a journal after a sequence, up to a durable one."""
    if isinstance(address, FileJournalAddress):
        yield from read_entries(Path(address.folder), after, until)
        return
    with contextlib.closing(read_rows(address.url, address.shard, after)) as entries:
        for entry in entries:
            if entry.sequence > until:
                return
            yield entry


def payload_at(address: JournalAddress, sequence: int) -> bytes | None:
    """Return the payload of a durable sequence, None if it cannot be read: snapshots have replaced it, or it is damaged."""
    with (
        contextlib.suppress(JournalDamaged),
        contextlib.closing(entries_at(address, sequence - 1, sequence)) as entries,
    ):
        for entry in entries:
            return entry.payload
    return None
