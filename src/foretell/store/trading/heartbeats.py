"""API keys that send heartbeats: their orders are canceled when the heartbeats stop.

Written by the engine.
"""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import heartbeats


class HeartbeatRow(NamedTuple):
    """A key that has started to send heartbeats and has not stopped."""

    key_id: str
    address: Address
    started_at_ms: int


async def record_heartbeats(tx: Transaction, started: HeartbeatRow) -> None:
    """Store that a key started to send heartbeats."""
    await remove_heartbeats(tx, started.key_id)
    await tx.execute(heartbeats.insert().values(started._asdict()))


async def remove_heartbeats(tx: Transaction, key_id: str) -> None:
    """Store that a key has stopped sending heartbeats."""
    await tx.execute(heartbeats.delete().where(heartbeats.c.key_id == key_id))


async def load_heartbeats(tx: Transaction) -> Sequence[HeartbeatRow]:
    """Return every key that sends heartbeats, the earliest start first."""
    rows = await tx.all(sa.select(heartbeats).order_by(heartbeats.c.started_at_ms))
    return [HeartbeatRow(row.key_id, Address(row.address), row.started_at_ms) for row in rows]
