"""The tables that are made from the journal, all of them together."""

from typing import Final

from foretell.store.database import Transaction
from foretell.store.tables import fills, orders, projections, quote_points, quotes, trades

PROJECTED: Final = (orders, trades, fills, quotes, quote_points)


async def forget_projected(tx: Transaction) -> int:
    """Empty the tables and let every reader of the journal begin anew; return how many rows went."""
    rows = 0
    for table in PROJECTED:
        rows += await tx.execute(table.delete())
    await tx.execute(projections.delete())
    return rows
