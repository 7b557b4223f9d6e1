"""All tables that are projected from the journal; written by the engine."""

from collections.abc import Mapping
from typing import Final, NamedTuple

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
    projection_ends,
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


class ProjectionEnd(NamedTuple):
    """A command that a reader of the journal has projected, the last one, and the digest of its payload."""

    sequence: int
    digest: str


async def load_ends(tx: Transaction) -> Mapping[str, ProjectionEnd]:
    """Return the last projected command of each reader, by its name; an earlier release has kept none."""
    rows = await tx.all(sa.select(projection_ends))
    return {row.name: ProjectionEnd(row.sequence, row.digest) for row in rows}


async def record_end(tx: Transaction, name: str, end: ProjectionEnd) -> None:
    """Store the last projected command of a reader, in the transaction of its rows."""
    await tx.upsert_rows(projection_ends, [(name, *end)])


async def forget_projected(tx: Transaction) -> int:
    """Empty the tables and reset every reader of the journal; return how many rows were deleted."""
    rows = 0
    for table in PROJECTED:
        rows += await tx.execute(table.delete())
    await tx.execute(projections.delete())
    await tx.execute(projection_ends.delete())
    return rows
