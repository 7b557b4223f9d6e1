"""Ids that creation assigns: dense numbers, continued inside the transaction that opens an event."""

from typing import Any

import sqlalchemy as sa

from foretell.store.database import Transaction


async def next_id(tx: Transaction, column: sa.Column[Any]) -> int:
    """Return the number after the last one in a column."""
    return int(await tx.scalar(sa.select(sa.func.coalesce(sa.func.max(column), 0)))) + 1
