"""The volumes of wallets by exchange, added up from the trades of the chain's logs.

The exchange of a trade is that of its market, as the catalogue has it.
"""

from typing import Final

import sqlalchemy as sa

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.store.database import Transaction
from foretell.store.index.traded_volumes import UNLISTED
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import markets
from foretell.store.wide_sums import HALF_BITS

ACT_TIME: Final = 8
"""The place of the time in a counted act."""


async def count_volumes(
    figures: ChainFigures, tx: Transaction, spill: SpillFile, unlisted: SpilledRows[str, bool]
) -> SpilledRows[tuple[str, str, int], tuple[int, int, int]]:
    """Return the time and the halves of each wallet's volume on each exchange after each block in which it traded there.

    Wallets that the table has with a trade on no known exchange are left out: reads do not use their volumes.
    """
    exchanges: SpilledRows[str, str] = spill.mapping("exchanges", 1, str)
    async for page in load_pages(tx, markets):
        for row in page:
            exchanges[row.condition_id] = row.exchange
    volumes: SpilledRows[tuple[str, str], str] = spill.mapping("volumes", 2, str, "0")
    counted = spill.mapping("counted_volumes", 3, tuple[int, int, int])
    for place, (wallet, condition, cost) in figures.trades.items():
        if wallet not in unlisted:
            exchange = exchanges.get(condition, UNLISTED)
            units = int(volumes[wallet, exchange]) + cost
            volumes[wallet, exchange] = str(units)
            at_s = figures.acts[place][ACT_TIME]
            counted[wallet, exchange, place[0]] = at_s, *divmod(units, 1 << HALF_BITS)
    return counted


async def load_unlisted(
    tx: Transaction, spill: SpillFile, table: sa.Table
) -> SpilledRows[str, bool]:
    """Return the wallets that have a volume on no known exchange."""
    unlisted: SpilledRows[str, bool] = spill.mapping("unlisted", 1, bool)
    async for page in load_pages(tx, table, table.c.exchange == UNLISTED):
        for row in page:
            unlisted[row.wallet] = True
    return unlisted
