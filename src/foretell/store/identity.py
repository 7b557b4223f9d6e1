"""The identity of a database: the epoch of its API keys, its number of shards, its chain and its journals.

Written by a start.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Database, Transaction
from foretell.store.tables import api_keys, identity

KEY_EPOCH: Final = "key_epoch"
CHAIN: Final = "chain"
SHARDS: Final = "shards"
JOURNAL: Final = "journal {}"
"""The journal that the tables of a reader are made from, by the name of the reader."""
FIRST_EPOCH: Final = ""
"""The epoch of keys that were created before databases had one."""


async def load_key_epoch(database: Database, new_epoch: str) -> str:
    """Return the epoch of a database's API keys; it is `new_epoch`, a random text, for a new database.

    Keys are derived with it: a new database never derives the keys of a lost one, which may have been
    revoked there.
    """
    async with database.reading() as tx:
        epoch = await load_fact(tx, KEY_EPOCH)
    if epoch is not None:
        return epoch
    async with database.writing() as tx:
        has_keys = await tx.first(sa.select(api_keys.c.key_id).limit(1)) is not None
        first = FIRST_EPOCH if has_keys else new_epoch
        return await record_first(tx, KEY_EPOCH, first)


async def load_fact(tx: Transaction, name: str) -> str | None:
    """Return what a database knows of itself under a name."""
    value: str | None = await tx.scalar(sa.select(identity.c.value).where(identity.c.name == name))
    return value


async def load_journals(tx: Transaction) -> dict[str, str]:
    """Return the ids of the journals that a database knows, by the name of their reader."""
    prefix = JOURNAL.format("")
    rows = await tx.all(sa.select(identity).where(identity.c.name.startswith(prefix)))
    return {row.name.removeprefix(prefix): row.value for row in rows}


async def record_first(tx: Transaction, name: str, value: str) -> str:
    """Store what a database knows of itself unless it knows it; return what it knows."""
    await tx.insert_new(identity, name=name, value=value)
    first = await load_fact(tx, name)
    assert first is not None, "it was just written, here or by another process"
    return first


async def record_fact(tx: Transaction, name: str, value: str) -> None:
    """Store what a database knows of itself, in place of what it knew."""
    await tx.upsert_rows(identity, [(name, value)])
