"""Read-only keys: the hash of each, and the salt that its owner's key is derived with, never the key.

Written by trading.
"""

import hashlib
from collections.abc import Sequence

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import readonly_keys


def readonly_hash(key: str) -> str:
    """Return the hash by which a read-only key is found."""
    return hashlib.sha256(key.encode()).hexdigest()


async def record_readonly_key(
    tx: Transaction, key: str, address: Address, salt: str, now_ms: int
) -> None:
    """Store a key, unless it is stored already."""
    await tx.insert_new(
        readonly_keys,
        key_hash=readonly_hash(key),
        address=address,
        salt=salt,
        created_at_ms=now_ms,
    )


async def load_readonly_salts(tx: Transaction, address: Address) -> Sequence[str]:
    """Return the salts of an address's keys, the oldest first."""
    rows = await tx.all(
        sa.select(readonly_keys.c.salt)
        .where(readonly_keys.c.address == address)
        .order_by(readonly_keys.c.created_at_ms, readonly_keys.c.key_hash)
    )
    return [row.salt for row in rows]


async def load_readonly_salt(tx: Transaction, address: Address, key_hash: str) -> str | None:
    """Return the salt of a key, None if the address has no such key."""
    salt: str | None = await tx.scalar(
        sa.select(readonly_keys.c.salt).where(
            readonly_keys.c.key_hash == key_hash, readonly_keys.c.address == address
        )
    )
    return salt


async def delete_readonly_key(tx: Transaction, address: Address, key_hash: str) -> bool:
    """Delete a key of an address; return whether there was one."""
    deleted = await tx.execute(
        readonly_keys.delete().where(
            readonly_keys.c.key_hash == key_hash, readonly_keys.c.address == address
        )
    )
    return deleted == 1
