"""The sums by wallet that readers see, whichever generation they are."""

from typing import Any, Final

import sqlalchemy as sa

from foretell.indexer.rebuild import RebuildContext, RebuiltSums, rebuild_sums
from foretell.store.database import Database
from foretell.store.index.generation_rows import BY_PERIOD
from foretell.store.index.generations import days_of, load_live, of_generation
from foretell.store.index.trading_totals import tables_of
from foretell.store.tables import rank_counts, standings, wins
from foretell.store.tables.indexing import ODD

STANDINGS: Final = (standings, rank_counts, wins)

Dump = dict[str, list[Any]]


async def dump_sums(database: Database) -> Dump:
    """Return the standings, counts, wins and totals of wallets that are live."""
    async with database.reading() as tx:
        live = await load_live(tx)
        found: Dump = {}
        for table in (*STANDINGS, *tables_of(live).all):
            rows = await tx.all(sa.select(table).where(of_generation(table, live)))
            has_period = table in STANDINGS
            found[table.name.removeprefix(ODD)] = sorted(
                (days_of(row[0]), *row[1:]) if has_period else tuple(row) for row in rows
            )
    return found


async def empty_rankings(database: Database) -> None:
    """Delete the standings and wins of every generation, so that sums begin before the first block."""
    async with database.writing() as tx:
        for table in BY_PERIOD:
            await tx.execute(table.delete())


async def rebuild(database: Database, now_ms: int, rows_max: int = 1_000) -> RebuiltSums:
    """Compute the sums again as of a time, in steps of so many rows."""
    return await rebuild_sums(RebuildContext(database, lambda: now_ms, rows_max))
