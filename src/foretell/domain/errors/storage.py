"""Refusals of the database, the journal and the file storage.

Their place in the tree of refusals: see `families`.
"""

from foretell.domain.errors.families import ForetellError, NotFound, Unavailable, Upstream


class StoreUnavailable(Unavailable):
    """The database did not answer."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the database is unavailable: {cause}")


class SchemaNewer(ForetellError):
    """The database has the schema of a later release than this one, which cannot bring it back."""

    def __init__(self, found: str, known: str) -> None:
        super().__init__(
            f"the database is of a later release: its schema is {found}, and the newest that this release knows is"
            f" {known}; start that release, or restore a copy from before its first start",
            found=found,
            known=known,
        )


class WritesBusy(StoreUnavailable):
    """Other writes of requests, or those of the client, use all places for writes."""

    definite = True

    def __init__(self) -> None:
        super().__init__("too many writes of requests wait; send this one again after a pause")


class RowsLocked(StoreUnavailable):
    """Other transactions held rows for longer than this one waits; it was rolled back."""

    definite = True

    def __init__(self) -> None:
        super().__init__("other transactions hold rows for longer than this one waits")


class ReadTooSlow(Unavailable):
    """A read of a public route did not end by its deadline, and was stopped."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__(
            f"the read took longer than {deadline_s:g} s; ask for less, or send it again later",
            retry_after_s=max(1, round(deadline_s)),
        )


class ReadsBusy(Unavailable):
    """Reads of other clients use all places for reads of public routes."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(
            f"too many reads are running; send this one again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


class JournalDamaged(ForetellError):
    """A journal file holds bytes that no crash of a writer can leave."""

    def __init__(self, file: str, offset: int, what: str) -> None:
        super().__init__(
            f"journal file {file} is damaged at byte {offset}: {what}", file=file, offset=offset
        )


class SnapshotUnknown(ForetellError):
    """A snapshot cannot be decoded by this version of the program."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the snapshot cannot be read: {what}")


class JournalFailed(Unavailable):
    """The journal could not make a command durable; it has stopped, and the engine stops too."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the journal has failed: {cause}")


class JournalRowsDamaged(JournalDamaged):
    """A shard's journal in a database holds rows that no crash of a writer can leave."""

    def __init__(self, shard: int, sequence: int, what: str) -> None:
        ForetellError.__init__(
            self,
            f"the journal of shard {shard} is damaged at sequence {sequence}: {what}",
            shard=shard,
            sequence=sequence,
        )


class LeaseHeld(Unavailable):
    """Another process holds the lease of a shard."""

    def __init__(self, shard: int, endpoint: str) -> None:
        super().__init__(f"shard {shard} is led by {endpoint}", shard=shard, endpoint=endpoint)


class LeaseLost(JournalFailed):
    """The process lost the lease of a shard; the next holder continues from the journal."""

    def __init__(self, shard: int, cause: str) -> None:
        super().__init__(f"the lease of shard {shard} is lost: {cause}")


class JournalFormUnknown(ForetellError):
    """The tables of a journal have a version that this program does not know."""

    def __init__(self, version: int, known_version: int) -> None:
        super().__init__(
            f"the journal's tables have version {version}, and this program supports version"
            f" {known_version}; start the program that created them"
        )


class ShardCountChanged(ForetellError):
    """The journals were created with another number of shards; markets would change shards.

    0 shards are one engine in the process that serves trading.
    """

    def __init__(self, kept_count: int, shard_count: int) -> None:
        cure = (
            f"start with FORETELL_SHARDS={kept_count}, or with --shards {kept_count} after --workers"
            if kept_count
            else "start with FORETELL_SHARDS=0 and without --workers"
        )
        super().__init__(
            f"the journals were created with {kept_count} shards, and {shard_count} are configured: the number of"
            f" shards cannot change, so {cure}; another number needs a new data folder and a new database",
            kept_count=kept_count,
            shard_count=shard_count,
        )


class InvalidShardMap(ForetellError):
    """A shard map does not name the place of each shard exactly once."""

    def __init__(self, file: str, what: str) -> None:
        super().__init__(f"the shard map {file} cannot be used: {what}", file=file)


class JournalBehindTables(ForetellError):
    """The tables include a later command than the last one of the journal.

    One of them was restored from a copy, or the journal was replaced by a new one. New commands
    would repeat sequences that the tables have, so they would never reach the tables.
    """

    def __init__(self, tables_sequence: int, journal_sequence: int) -> None:
        super().__init__(
            f"the database is ahead of the journal: its tables are at sequence {tables_sequence},"
            f" and the journal ends at {journal_sequence}; restore both from one backup, or start"
            " with a new database if the journal is new",
            tables_sequence=tables_sequence,
            journal_sequence=journal_sequence,
        )


class ForeignJournal(ForetellError):
    """The tables have commands of another journal than the one that the engine opened.

    One of the two was restored or replaced. Sequences of this journal would be taken for those that the
    tables have, so orders would be in memory and not in the tables, or the other way round.
    """

    def __init__(self, name: str, noted: str, seen: str) -> None:
        super().__init__(
            f"the tables of {name} have commands of the journal with id {noted}, and this is the journal with id"
            f" {seen}: restore the journal and the database that belong together, or have the tables made from"
            " this journal with foretell journal rebuild",
            noted=noted,
            seen=seen,
        )


class JournalForked(ForetellError):
    """The tables end with another command than the journal has at that sequence, though it is the same journal.

    An installation was copied and both copies went on; then the database of one was put beside the journal of the
    other. The tables would keep rows of commands that the journal does not have.
    """

    def __init__(self, name: str, sequence: int) -> None:
        super().__init__(
            f"the tables of {name} and their journal have different commands at sequence {sequence}: they are of two"
            " copies of one installation that went on apart; restore the journal and the database that belong"
            " together, or, if the journal is kept from its beginning, have the tables made from it with"
            " foretell journal rebuild",
            sequence=sequence,
        )


class TablesSetBack(ForetellError):
    """The tables are at an earlier sequence than this process has written, so they lost commands.

    The database was restored from a copy, or its standby took over without its last commits. A start
    writes what is missing from the journal.
    """

    def __init__(self, written_sequence: int, tables_sequence: int) -> None:
        super().__init__(
            f"the tables were set back: {written_sequence} was written, and they are at"
            f" {tables_sequence}"
        )


class TablesBehindSnapshot(ForetellError):
    """The tables lack commands that the journal has deleted."""

    def __init__(self, tables_sequence: int, snapshot_sequence: int) -> None:
        super().__init__(
            f"the tables are at sequence {tables_sequence}, and the journal begins with a snapshot"
            f" at {snapshot_sequence}: the commands between were deleted; restore a backup of the"
            " database that is as new as the journal",
            tables_sequence=tables_sequence,
            snapshot_sequence=snapshot_sequence,
        )


class SnapshotFailed(Unavailable):
    """The snapshot process failed; the journal continues without a new snapshot."""

    def __init__(self, cause: str) -> None:
        super().__init__(f"no snapshot was taken: {cause}")


class SumsReplaced(ForetellError):
    """The sums by wallet that were to be changed have been replaced by others meanwhile."""

    def __init__(self, generation: int) -> None:
        super().__init__(
            f"another rebuild has replaced the sums of generation {generation}; wait until it has ended,"
            " and run the command again"
        )


class RebuildRunning(Unavailable):
    """Another process rebuilds the sums of the index now."""

    def __init__(self) -> None:
        super().__init__(
            "another process rebuilds the sums of this index; wait until it has ended, or stop it"
        )


class RebuildOvertaken(Unavailable):
    """The index grew faster than a rebuild of its sums could follow."""

    def __init__(self, rounds: int) -> None:
        super().__init__(
            f"the sums did not reach the last block in {rounds} rounds, because the index grows faster;"
            " rebuild them when it has caught up with the chain"
        )


class SumsHeld(Unavailable):
    """Others held sums each time a rebuild was to write, to replace or to follow them."""

    def __init__(self, tries: int) -> None:
        super().__init__(
            f"other transactions held sums that a rebuild changes in each of {tries} tries; look for one that does not"
            " end (pg_stat_activity on PostgreSQL), end it, and run the command again"
        )


class FolderInUse(Unavailable):
    """Another process uses a folder that allows one process at a time."""

    def __init__(self, folder: str, process_id: int | None = None) -> None:
        holder = "" if process_id is None else f" (process {process_id})"
        super().__init__(
            f"another process uses {folder}{holder}; stop it, or choose another folder with --data",
            process_id=process_id,
        )


class StorageUnavailable(Upstream):
    """The storage of metadata and images failed to write or to read."""

    definite = False

    def __init__(self, cause: str) -> None:
        super().__init__(f"the storage is unavailable: {cause}")


class StorageFull(StorageUnavailable):
    """The disk of the storage is nearly full."""

    definite = True

    def __init__(self) -> None:
        super().__init__("its disk is nearly full")


class ItemTooLarge(StorageUnavailable):
    """An item is larger than the storage takes."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(f"an item has at most {bytes_max} bytes")


class BlobNotFound(NotFound):
    """Nothing is stored under this id."""

    def __init__(self, blob_id: str) -> None:
        super().__init__(f"nothing is stored under {blob_id[:64]!r}")


class BlobDamaged(Upstream):
    """A stored blob does not match its id."""

    def __init__(self, blob_id: str) -> None:
        super().__init__(f"the blob stored under {blob_id} is damaged")
