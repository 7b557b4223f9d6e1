"""Snapshots of a shard next to its journal, in parts, and the removal of what they replace.

A snapshot is valid from when its head is written, which follows its parts.
"""

import hashlib
from typing import Final

import asyncpg
import structlog

from foretell.domain.errors.storage import JournalRowsDamaged, LeaseLost
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.port import Snapshot

PART_BYTES: Final = 4 * 1024 * 1024
KEPT_COUNT: Final = 2
DELETE_BATCH_RECORDS: Final = 5_000
CHECKSUM_BYTES: Final = 16

_KEEP_PART: Final = """
WITH fence AS MATERIALIZED (
    SELECT shard FROM journal.lease
    WHERE shard = $1 AND holder = $2 AND until > clock_timestamp()
    FOR KEY SHARE
)
INSERT INTO journal.snapshot_part (shard, sequence, part, payload)
SELECT shard, $3, $4, $5 FROM fence
ON CONFLICT (shard, sequence, part) DO UPDATE SET payload = excluded.payload
"""
_KEEP_HEAD: Final = """
WITH fence AS MATERIALIZED (
    SELECT shard FROM journal.lease
    WHERE shard = $1 AND holder = $2 AND until > clock_timestamp()
    FOR KEY SHARE
)
INSERT INTO journal.snapshot (shard, sequence, chain, part_count, checksum)
SELECT shard, $3, $4, $5, $6 FROM fence
ON CONFLICT (shard, sequence) DO UPDATE
SET chain = excluded.chain, part_count = excluded.part_count, checksum = excluded.checksum
"""
_CHAIN: Final = "SELECT chain FROM journal.record WHERE shard = $1 AND sequence = $2"
_HEADS: Final = """
SELECT sequence, chain, part_count, checksum FROM journal.snapshot
WHERE shard = $1 ORDER BY sequence DESC
"""
_PART: Final = """
SELECT payload FROM journal.snapshot_part WHERE shard = $1 AND sequence = $2 AND part = $3
"""
_NEEDED_AFTER: Final = """
SELECT sequence FROM journal.snapshot WHERE shard = $1 ORDER BY sequence DESC OFFSET $2 LIMIT 1
"""
_NEWEST: Final = "SELECT coalesce(max(sequence), 0) FROM journal.snapshot WHERE shard = $1"
_FIRST: Final = "SELECT min(sequence) FROM journal.record WHERE shard = $1"
_FORGET_HEADS: Final = "DELETE FROM journal.snapshot WHERE shard = $1 AND sequence < $2"
_FORGET_PARTS: Final = "DELETE FROM journal.snapshot_part WHERE shard = $1 AND sequence < $2"
_FORGET_RECORDS: Final = "DELETE FROM journal.record WHERE shard = $1 AND sequence <= $2"

log = structlog.get_logger(__name__)


async def keep_snapshot(
    connection: asyncpg.Connection,
    shard: ShardNumber,
    holder: bytes,
    snapshot: Snapshot,
    *,
    part_bytes: int = PART_BYTES,
) -> None:
    """Make a snapshot durable; its sequence must be in the journal, and the lease be the holder's.

    Keeping it again changes nothing, so an attempt with an unknown outcome may be repeated.
    """
    chain = await connection.fetchval(_CHAIN, shard, snapshot.sequence)
    assert chain is not None, "a snapshot is of a sequence that is durable"
    payload = memoryview(snapshot.payload)
    parts = [payload[at : at + part_bytes] for at in range(0, len(payload), part_bytes)]
    for number, part in enumerate(parts):
        done = await connection.execute(
            _KEEP_PART, shard, holder, snapshot.sequence, number, bytes(part)
        )
        _check_fence(done, shard)
    checksum = _checksum(snapshot, chain)
    done = await connection.execute(
        _KEEP_HEAD, shard, holder, snapshot.sequence, chain, len(parts), checksum
    )
    _check_fence(done, shard)


async def newest_snapshot(
    connection: asyncpg.Connection, shard: ShardNumber, until: int | None = None
) -> Snapshot | None:
    """Return the newest intact snapshot that is not after a sequence, if the entries after it are still there.

    A damaged one is skipped for the one before, or for the entries from the first on.
    """
    rows = await connection.fetch(_HEADS, shard)
    heads = [each for each in rows if until is None or each["sequence"] <= until]
    first = await connection.fetchval(_FIRST, shard)
    for head in heads:
        if first is not None and first > head["sequence"] + 1:
            break
        snapshot = await _read(connection, shard, head["sequence"], head["part_count"])
        if _checksum(snapshot, head["chain"]) == head["checksum"]:
            return snapshot
        log.error("snapshot damaged", shard=shard, sequence=head["sequence"])
    if heads and first != 1:
        raise JournalRowsDamaged(shard, heads[0]["sequence"], "no snapshot is complete")
    return None


async def newest_sequence(connection: asyncpg.Connection, shard: ShardNumber) -> int:
    """Return the sequence of the newest snapshot, intact or not; 0 when there is none."""
    sequence: int = await connection.fetchval(_NEWEST, shard)
    return sequence


async def compact(
    connection: asyncpg.Connection,
    shard: ShardNumber,
    *,
    keeps_all: bool = False,
    batch_records: int = DELETE_BATCH_RECORDS,
) -> int:
    """Remove, in batches, what the newest snapshots do not need; return how many entries.

    With `keeps_all` no entry is removed.
    """
    needed_after: int | None = await connection.fetchval(_NEEDED_AFTER, shard, KEPT_COUNT - 1)
    first: int | None = await connection.fetchval(_FIRST, shard)
    if needed_after is None or first is None:
        return 0
    await connection.execute(_FORGET_HEADS, shard, needed_after)
    await connection.execute(_FORGET_PARTS, shard, needed_after)
    if keeps_all:
        return 0
    for start in range(first, needed_after + 1, batch_records):
        end = min(start + batch_records - 1, needed_after)
        await connection.execute(_FORGET_RECORDS, shard, end)
    return max(needed_after + 1 - first, 0)


async def _read(
    connection: asyncpg.Connection, shard: ShardNumber, sequence: int, part_count: int
) -> Snapshot:
    parts = [
        await connection.fetchval(_PART, shard, sequence, number) for number in range(part_count)
    ]
    return Snapshot(sequence, b"".join(part or b"" for part in parts))


def _checksum(snapshot: Snapshot, chain: bytes) -> bytes:
    digest = hashlib.blake2b(chain, digest_size=CHECKSUM_BYTES)
    digest.update(snapshot.sequence.to_bytes(8, "big"))
    digest.update(snapshot.payload)
    return digest.digest()


def _check_fence(done: str, shard: ShardNumber) -> None:
    if done == "INSERT 0 0":
        raise LeaseLost(shard, "a snapshot was refused")
