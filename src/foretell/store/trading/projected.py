"""The tables that are made from the journal, all of them together."""

from typing import Final

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import fills, orders, projections, quote_points, quotes, trades

PROJECTED: Final = (orders, trades, fills, quotes, quote_points)


async def load_sequences(tx: Transaction) -> dict[str, int]:
    """Return up to where each reader of a journal has come, by its name."""
    return {row.name: row.sequence for row in await tx.all(sa.select(projections))}


async def forget_projected(tx: Transaction) -> int:
    """Empty the tables and let every reader of the journal begin anew; return how many rows went."""
    rows = 0
    for table in PROJECTED:
        rows += await tx.execute(table.delete())
    await tx.execute(projections.delete())
    return rows
