"""Read-only keys: the hash of each, and the salt that its owner's key is derived with, never the key.

Written by trading. A deleted key keeps its row, so that its salt never makes it again.
"""

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import readonly_keys
from foretell.store.trading.api_keys import TOPIC


class ReadonlyKey(NamedTuple):
    """A read-only key without the key itself."""

    key_hash: str
    address: Address
    salt: str
    created_at_ms: int
    deleted_at_ms: int | None

    @property
    def is_active(self) -> bool:
        """Whether the key is still accepted."""
        return self.deleted_at_ms is None


def readonly_hash(key: str) -> str:
    """Return the hash by which a read-only key is found."""
    return hashlib.sha256(key.encode()).hexdigest()


async def record_readonly_key(tx: Transaction, key: ReadonlyKey) -> None:
    """Store a key, unless it is stored already."""
    await tx.insert_new(readonly_keys, **key._asdict())


async def load_readonly_keys(tx: Transaction, address: Address) -> Sequence[ReadonlyKey]:
    """Return all keys of an address, deleted ones included, the oldest first."""
    rows = await tx.all(
        sa.select(readonly_keys)
        .where(readonly_keys.c.address == address)
        .order_by(readonly_keys.c.created_at_ms, readonly_keys.c.key_hash)
    )
    return [_key(row) for row in rows]


async def load_readonly_key(tx: Transaction, key_hash: str) -> ReadonlyKey | None:
    """Return a key, active or deleted."""
    row = await tx.first(sa.select(readonly_keys).where(readonly_keys.c.key_hash == key_hash))
    return None if row is None else _key(row)


async def load_deleted_hashes(tx: Transaction, key_hashes: Sequence[str]) -> set[str]:
    """Return which of some keys are deleted."""
    rows = await tx.all(
        sa.select(readonly_keys.c.key_hash).where(
            readonly_keys.c.key_hash.in_(key_hashes), readonly_keys.c.deleted_at_ms.is_not(None)
        )
    )
    return {row.key_hash for row in rows}


async def delete_readonly_key(
    tx: Transaction, address: Address, key_hash: str, now_ms: int
) -> bool:
    """Delete a key of an address permanently; return whether it was active."""
    changed = await tx.execute(
        readonly_keys.update()
        .where(
            readonly_keys.c.key_hash == key_hash,
            readonly_keys.c.address == address,
            readonly_keys.c.deleted_at_ms.is_(None),
        )
        .values(deleted_at_ms=now_ms)
    )
    await tx.announce(TOPIC)
    return changed == 1


def _key(row: sa.Row[Any]) -> ReadonlyKey:
    return ReadonlyKey(
        row.key_hash, Address(row.address), row.salt, row.created_at_ms, row.deleted_at_ms
    )
