"""All tables that are projected from the journal; written by the engine."""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import (
    builder_days,
    builder_recounts,
    builder_totals,
    builder_users,
    failed_volumes,
    fills,
    next_builder_days,
    next_builder_totals,
    next_builder_users,
    orders,
    projections,
    quote_points,
    quotes,
    trades,
)

PROJECTED: Final = (
    *(orders, trades, fills, quotes, quote_points, failed_volumes),
    *(builder_days, builder_users, builder_totals),
    *(builder_recounts, next_builder_days, next_builder_users, next_builder_totals),
)


async def load_sequences(tx: Transaction) -> dict[str, int]:
    """Return the last projected sequence of each reader of a journal, by its name."""
    return {row.name: row.sequence for row in await tx.all(sa.select(projections))}


async def forget_projected(tx: Transaction) -> int:
    """Empty the tables and reset every reader of the journal; return how many rows were deleted."""
    rows = 0
    for table in PROJECTED:
        rows += await tx.execute(table.delete())
    await tx.execute(projections.delete())
    return rows
