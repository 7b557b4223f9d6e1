"""The tables of the journals that one database keeps, in a schema of their own.

The journal creates them itself, since a shard's database may be another one than the store's.
"""

from typing import Final

import asyncpg

from foretell.domain.errors.storage import JournalFormUnknown, ShardCountChanged
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.framing import new_identity

VERSION: Final = 1

_LOCK_KEY: Final = 0x464F5245  # one creator at a time, whatever the shard

# The epoch is in a unique index, which makes it part of a key: a statement that locks the row
# FOR KEY SHARE keeps other processes from changing the epoch, and lets the lease be renewed.
_TABLES: Final = """
CREATE SCHEMA IF NOT EXISTS journal;
CREATE TABLE journal.form (
    version integer NOT NULL,
    shard_count integer NOT NULL,
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only)
);
CREATE TABLE journal.lease (
    shard integer PRIMARY KEY,
    holder bytea NOT NULL,
    epoch bigint NOT NULL,
    until timestamptz NOT NULL,
    endpoint text NOT NULL,
    synced bigint NOT NULL DEFAULT 0,
    UNIQUE (shard, epoch)
) WITH (fillfactor = 50);
CREATE TABLE journal.record (
    shard integer NOT NULL,
    sequence bigint NOT NULL CHECK (sequence > 0),
    epoch bigint NOT NULL,
    command_id bytea NOT NULL,
    chain bytea NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (shard, sequence),
    UNIQUE (shard, command_id)
);
CREATE TABLE journal.snapshot (
    shard integer NOT NULL,
    sequence bigint NOT NULL CHECK (sequence > 0),
    chain bytea NOT NULL,
    part_count integer NOT NULL,
    checksum bytea NOT NULL,
    PRIMARY KEY (shard, sequence)
);
CREATE TABLE journal.snapshot_part (
    shard integer NOT NULL,
    sequence bigint NOT NULL,
    part integer NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (shard, sequence, part)
);
"""
_IDENTITIES: Final = """
CREATE TABLE IF NOT EXISTS journal.identity (
    shard integer PRIMARY KEY,
    id text NOT NULL
);
"""
"""The ids of journals; a database of an earlier version has none."""
_FORM: Final = "INSERT INTO journal.form (version, shard_count) VALUES ({:d}, {:d})"
_IS_MISSING: Final = "SELECT to_regclass('journal.form') IS NULL"
_IS_WITHOUT_IDENTITIES: Final = "SELECT to_regclass('journal.identity') IS NULL"
_MAKE_IDENTITY: Final = "INSERT INTO journal.identity VALUES ($1, $2) ON CONFLICT DO NOTHING"
_IDENTITY: Final = "SELECT id FROM journal.identity WHERE shard = $1"


async def prepare_schema(connection: asyncpg.Connection, shard_count: int) -> None:
    """Create the tables if there are none; refuse those of another form or number of shards."""
    if await connection.fetchval(_IS_WITHOUT_IDENTITIES):
        await _make_tables(connection, shard_count)
    form = await connection.fetchrow("SELECT version, shard_count FROM journal.form")
    if form["version"] != VERSION:
        raise JournalFormUnknown(form["version"], VERSION)
    if form["shard_count"] != shard_count:
        raise ShardCountChanged(form["shard_count"], shard_count)


async def load_identity(connection: asyncpg.Connection, shard: ShardNumber) -> str:
    """Return the id of a shard's journal; a journal without one gets one."""
    if await connection.fetchval(_IDENTITY, shard) is None:
        await connection.execute(_MAKE_IDENTITY, shard, new_identity())
    identity: str = await connection.fetchval(_IDENTITY, shard)
    return identity


async def _make_tables(connection: asyncpg.Connection, shard_count: int) -> None:
    """Create the tables unless another process just did.

    The lock belongs to the session: a transaction that waits for it would not see the new tables.
    """
    await connection.execute("SELECT pg_advisory_lock($1)", _LOCK_KEY)
    if await connection.fetchval(_IS_MISSING):
        await connection.execute(_TABLES + _FORM.format(VERSION, shard_count))
    await connection.execute(_IDENTITIES)
    await connection.execute("SELECT pg_advisory_unlock($1)", _LOCK_KEY)
