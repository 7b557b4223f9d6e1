"""Builders' keys: the salt that each is derived with, never its secret.

Written by trading. A deleted key keeps its row, so that its salt never makes it again.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import builder_keys
from foretell.store.trading.api_keys import TOPIC


class BuilderKey(NamedTuple):
    """A builder's key without its secrets."""

    key_id: str
    address: Address
    salt: str
    created_at_ms: int
    deleted_at_ms: int | None

    @property
    def is_active(self) -> bool:
        """Whether the key is still accepted."""
        return self.deleted_at_ms is None


async def record_builder_key(tx: Transaction, key: BuilderKey) -> None:
    """Store a new key."""
    await tx.execute(builder_keys.insert().values(key._asdict()))


async def load_builder_key(tx: Transaction, key_id: str) -> BuilderKey | None:
    """Return a key, active or deleted."""
    row = await tx.first(sa.select(builder_keys).where(builder_keys.c.key_id == key_id))
    return None if row is None else _key(row)


async def load_builder_keys(tx: Transaction, address: Address) -> Sequence[BuilderKey]:
    """Return all keys of an address, deleted ones included, the oldest first."""
    rows = await tx.all(
        sa.select(builder_keys)
        .where(builder_keys.c.address == address)
        .order_by(builder_keys.c.created_at_ms, builder_keys.c.key_id)
    )
    return [_key(row) for row in rows]


async def load_deleted_builder_ids(tx: Transaction, key_ids: Sequence[str]) -> set[str]:
    """Return which of some keys are deleted."""
    rows = await tx.all(
        sa.select(builder_keys.c.key_id).where(
            builder_keys.c.key_id.in_(key_ids), builder_keys.c.deleted_at_ms.is_not(None)
        )
    )
    return {row.key_id for row in rows}


async def delete_builder_key(tx: Transaction, key_id: str, now_ms: int) -> bool:
    """Delete a key permanently; return whether it was active."""
    changed = await tx.execute(
        builder_keys.update()
        .where(builder_keys.c.key_id == key_id, builder_keys.c.deleted_at_ms.is_(None))
        .values(deleted_at_ms=now_ms)
    )
    await tx.announce(TOPIC)
    return changed == 1


def _key(row: sa.Row[tuple[object, ...]]) -> BuilderKey:
    return BuilderKey(
        row.key_id, Address(row.address), row.salt, row.created_at_ms, row.deleted_at_ms
    )
