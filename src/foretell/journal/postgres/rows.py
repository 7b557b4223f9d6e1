"""A shard's journal as rows: written in one statement, read in batches, never with a gap.

One statement both checks the fence and inserts a batch. It takes effect as a whole or not at all,
and a sender that stops half-way holds no lock that others wait for.
"""

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar

import asyncpg

from foretell.domain.errors.storage import JournalFailed, JournalRowsDamaged
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.framing import CHAIN_START, next_chain
from foretell.journal.port import Entry
from foretell.journal.postgres.connections import LOST, cause_of, connect
from foretell.runtime.event_loop_thread import LoopThread

READ_BATCH_RECORDS: Final = 2_000
READ_BATCH_BYTES: Final = 16 * 1024 * 1024

# The fence: FOR KEY SHARE lets renewals of the lease pass and keeps the epoch, which is part of a
# key, from changing until the rows are in. A process that begins the next epoch waits for this
# statement, and a statement that arrives after that finds no row of its epoch, so it inserts
# nothing.
_INSERT: Final = """
WITH fence AS MATERIALIZED (
    SELECT epoch FROM journal.lease
    WHERE shard = $1 AND epoch = $2 AND until > clock_timestamp()
    FOR KEY SHARE
)
INSERT INTO journal.record (shard, epoch, sequence, command_id, chain, payload)
SELECT $1, fence.epoch, added.sequence, added.command_id, added.chain, added.payload
FROM fence, unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[])
    AS added (sequence, command_id, chain, payload)
"""
_CHAINS: Final = """
SELECT sequence, chain FROM journal.record
WHERE shard = $1 AND sequence BETWEEN $2 AND $3 ORDER BY sequence
"""
_TAIL: Final = """
SELECT sequence, chain FROM journal.record WHERE shard = $1 ORDER BY sequence DESC LIMIT 1
"""
_CHAIN_AT: Final = """
SELECT chain FROM journal.record WHERE shard = $1 AND sequence = $2
UNION ALL
SELECT chain FROM journal.snapshot WHERE shard = $1 AND sequence = $2
LIMIT 1
"""
_SYNCED: Final = "SELECT synced FROM journal.lease WHERE shard = $1"
_READ_BATCH: Final = """
SELECT sequence, chain, payload FROM (
    SELECT sequence, chain, payload,
        sum(octet_length(payload)) OVER (ORDER BY sequence) - octet_length(payload) AS bytes_before
    FROM (
        SELECT sequence, chain, payload FROM journal.record
        WHERE shard = $1 AND sequence > $2 ORDER BY sequence LIMIT $3
    ) AS batch
) AS measured
WHERE bytes_before < $4 ORDER BY sequence
"""


T = TypeVar("T")


class Row(NamedTuple):
    """A record to write."""

    sequence: int
    command_id: bytes
    chain: bytes
    payload: bytes


class Tail(NamedTuple):
    """The record that the next one follows."""

    sequence: int
    chain: bytes


async def insert_rows(
    connection: asyncpg.Connection, shard: ShardNumber, epoch: int, rows: Sequence[Row]
) -> bool:
    """Make rows durable; return False when the lease is over, or of another epoch."""
    columns = list(zip(*rows, strict=True))
    done = await connection.execute(_INSERT, shard, epoch, *columns)
    count = int(done.rpartition(" ")[2])
    assert count in {0, len(rows)}
    return count > 0


async def are_durable(
    connection: asyncpg.Connection, shard: ShardNumber, rows: Sequence[Row]
) -> bool:
    """Return whether rows are in the journal, all of them as they were written."""
    found = await connection.fetch(_CHAINS, shard, rows[0].sequence, rows[-1].sequence)
    if not found:
        return False
    if [(row["sequence"], row["chain"]) for row in found] != [
        (row.sequence, row.chain) for row in rows
    ]:
        raise JournalFailed(f"another process wrote to shard {shard} during this lease")
    return True


async def find_tail(connection: asyncpg.Connection, shard: ShardNumber) -> Tail:
    """Return the end of the journal; refuse a journal that lost its newest records."""
    found = await connection.fetchrow(_TAIL, shard)
    tail = Tail(0, CHAIN_START) if found is None else Tail(found["sequence"], found["chain"])
    synced = await connection.fetchval(_SYNCED, shard)
    if synced is not None and synced > tail.sequence:
        raise JournalRowsDamaged(
            shard, tail.sequence, f"sequence {synced} was synced and is missing"
        )
    return tail


def read_entries(
    url: str,
    shard: ShardNumber,
    after: int = 0,
    *,
    batch_records: int = READ_BATCH_RECORDS,
    batch_bytes: int = READ_BATCH_BYTES,
) -> Generator[Entry, None, None]:
    """Yield what is durable after a sequence, in order; damage raises JournalDamaged.

    While one batch is used, the next one is fetched in a thread of its own.
    """
    thread = LoopThread("journal reader")
    reader = _Reader(url, shard, batch_records, batch_bytes)
    try:
        end = _outcome(thread.submit(reader.begin(after)))
        pending = thread.submit(reader.fetch(after))
        while rows := _outcome(pending):
            pending = thread.submit(reader.fetch(rows[-1]["sequence"]))
            _check_run(shard, end, rows)
            end = Tail(rows[-1]["sequence"], rows[-1]["chain"])
            for sequence, _, payload in rows:
                yield Entry(sequence, payload)
    finally:
        thread.run(reader.close())
        thread.close()


class _Reader:
    """A connection that fetches batches, one after the other."""

    def __init__(self, url: str, shard: ShardNumber, batch_records: int, batch_bytes: int) -> None:
        self._url = url
        self._shard = shard
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._connection: asyncpg.Connection | None = None

    async def begin(self, after: int) -> Tail:
        """Return the record that the first entry must follow."""
        self._connection = await connect(self._url)
        chain = await self._connection.fetchval(_CHAIN_AT, self._shard, after)
        return Tail(after, CHAIN_START if after == 0 else chain or b"")

    async def fetch(self, after: int) -> Sequence[Any]:
        """Return the next rows, none at the end."""
        assert self._connection is not None
        return await self._connection.fetch(
            _READ_BATCH, self._shard, after, self._batch_records, self._batch_bytes
        )

    async def close(self) -> None:
        """Close the connection, whatever is under way on it."""
        if self._connection is not None:
            self._connection.terminate()


def _outcome(pending: Future[T]) -> T:
    try:
        return pending.result()
    except LOST as error:
        raise JournalFailed(cause_of(error)) from error


def _check_run(shard: ShardNumber, end: Tail, rows: Sequence[Any]) -> None:
    """Refuse rows that do not each follow the one before, the first an end."""
    sequence, chain = end
    for seen, seen_chain, payload in rows:
        sequence += 1
        if seen != sequence:
            raise JournalRowsDamaged(shard, sequence, f"sequence {sequence} is missing")
        if not chain:
            raise JournalRowsDamaged(shard, end.sequence, "the previous record is missing")
        if next_chain(chain, payload) != seen_chain:
            raise JournalRowsDamaged(shard, seen, "the record is damaged")
        chain = seen_chain
