"""The identity of a database: the epoch of its API keys, and the chain and the journals that its tables are of.

Written by a start.
"""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Database, Transaction
from foretell.store.tables import api_keys, identity

KEY_EPOCH: Final = "key_epoch"
CHAIN: Final = "chain"
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
        await tx.insert_new(identity, name=KEY_EPOCH, value=first)
        epoch = await load_fact(tx, KEY_EPOCH)
    assert epoch is not None, "it was just written, here or by another process"
    return epoch


async def load_fact(tx: Transaction, name: str) -> str | None:
    """Return what a database knows of itself under a name."""
    value: str | None = await tx.scalar(sa.select(identity.c.value).where(identity.c.name == name))
    return value


async def record_fact(tx: Transaction, name: str, value: str) -> None:
    """Store what a database knows of itself, in place of what it knew."""
    await tx.upsert_rows(identity, [(name, value)])
