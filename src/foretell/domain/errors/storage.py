"""The refusals of what keeps things: database, journal, files.

They belong to the tree at the top of `errors.py`.
"""

from foretell.domain.errors.families import ForetellError, NotFound, Unavailable, Upstream


class StoreUnavailable(Unavailable):
    """The database did not answer."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the database is unavailable: {cause}")


class JournalDamaged(ForetellError):
    """A journal file holds something that no stop of ours can leave behind."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(
            f"journal file {file} is damaged at byte {offset}: {what}", file=file, offset=offset
        )


class SnapshotUnknown(ForetellError):
    """A snapshot's payload is none that this program can make a state of."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the snapshot is none that this program reads: {what}")


class JournalFailed(Unavailable):
    """The journal could not make a command durable; it stopped, and so must the engine."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the journal stopped: {cause}")


class JournalRowsDamaged(JournalDamaged):
    """A shard's journal in a database holds something that no stop of ours can leave behind."""

    def __init__(self, shard: int, sequence: int, what: str) -> None:
        ForetellError.__init__(
            self,
            f"the journal of shard {shard} is damaged at sequence {sequence}: {what}",
            shard=shard,
            sequence=sequence,
        )


class LeaseHeld(Unavailable):
    """Another process has the lease of a shard, which one process may have at a time."""

    def __init__(self, shard: int, endpoint: str) -> None:
        super().__init__(f"shard {shard} is led by {endpoint}", shard=shard, endpoint=endpoint)


class LeaseLost(JournalFailed):
    """The lease of a shard ended while we had it; whoever takes it goes on from the journal."""

    def __init__(self, shard: int, cause: str) -> None:
        super().__init__(f"the lease of shard {shard} is lost: {cause}")


class JournalFormUnknown(ForetellError):
    """The tables of a journal are of a form that this version does not know."""

    def __init__(self, version: int, known_version: int) -> None:
        super().__init__(
            f"the journal's tables are of version {version}, and this program knows version"
            f" {known_version}"
        )


class ShardCountChanged(ForetellError):
    """A database has journals of another number of shards: its markets would change shards."""

    def __init__(self, kept_count: int, shard_count: int) -> None:
        super().__init__(
            f"the journals of this database were made with {kept_count} shards, and now"
            f" {shard_count} are asked for; the number of shards cannot change"
        )


class ShardMapUnfit(ForetellError):
    """A shard map does not say for each shard, once, where it is."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"the shard map {file} cannot be used: {what}", file=file)


class JournalBehindTables(ForetellError):
    """The tables are true at a later command than the last one of the journal.

    One of them was put back, or the journal was begun anew: what is matched now would never reach
    the tables, whose commands have the same sequences.
    """

    def __init__(self, tables_sequence: int, journal_sequence: int) -> None:
        super().__init__(
            f"the database is ahead of the journal: its tables are at sequence {tables_sequence},"
            f" and the journal ends at {journal_sequence}; put back both from one copy, or, with a"
            " journal that was begun anew, start with a new database",
            tables_sequence=tables_sequence,
            journal_sequence=journal_sequence,
        )


class TablesBehindSnapshot(ForetellError):
    """The tables lack commands that the journal has let go of."""

    def __init__(self, tables_sequence: int, snapshot_sequence: int) -> None:
        super().__init__(
            f"the tables are at sequence {tables_sequence}, and the journal begins with a snapshot"
            f" at {snapshot_sequence}: what came between is not kept any more; put back a database"
            " that is as new as the journal",
            tables_sequence=tables_sequence,
            snapshot_sequence=snapshot_sequence,
        )


class SnapshotFailed(Unavailable):
    """The process that makes snapshots did not make one; the journal goes on as it is."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"no snapshot was made: {cause}")


class FolderInUse(Unavailable):
    """Another process works in a folder that one process may have at a time."""

    def __init__(self, folder: str, process_id: int | None = None) -> None:
        holder = "" if process_id is None else f" (process {process_id})"
        super().__init__(f"another process uses {folder}{holder}", process_id=process_id)


class StorageUnavailable(Upstream):
    """The storage of metadata and images does not take, or does not give."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the storage is unavailable: {cause}")


class BlobNotFound(NotFound):
    """Nothing is stored under this id."""

    def __init__(self, blob_id: str) -> None:
        super().__init__(f"nothing is stored under {blob_id[:64]!r}")


class BlobDamaged(Upstream):
    """What is stored is not what was stored under this id."""

    def __init__(self, blob_id: str) -> None:
        super().__init__(f"what is stored under {blob_id} is damaged")
