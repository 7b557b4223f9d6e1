"""Which API keys live by heartbeats: their orders are canceled when the beats stop."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.tables import heartbeats


class Beating(NamedTuple):
    """A key that began to send beats, and has not stopped."""

    key_id: str
    address: Address
    started_at_ms: int


async def record_beating(tx: Transaction, beating: Beating) -> None:
    """Store that a key began to send beats."""
    await record_stopped(tx, beating.key_id)
    await tx.execute(heartbeats.insert().values(beating._asdict()))


async def record_stopped(tx: Transaction, key_id: str) -> None:
    """Store that a key sends beats no more."""
    await tx.execute(heartbeats.delete().where(heartbeats.c.key_id == key_id))


async def load_beatings(tx: Transaction) -> Sequence[Beating]:
    """Return every key that sent beats when it was last heard of."""
    rows = await tx.all(sa.select(heartbeats).order_by(heartbeats.c.started_at_ms))
    return [Beating(row.key_id, Address(row.address), row.started_at_ms) for row in rows]
