"""`foretell index rebuild`: the sums by wallet and the totals of markets, computed again from the tables."""

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import now_ms
from foretell.indexer.listings import ListingContext, rebuild_listings
from foretell.indexer.rankings import RankingContext, rebuild_sums
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import upgrade

ROWS_PER_STEP_MAX = 100_000


def run_rebuild_index(settings: Settings, console: Console) -> None:
    """Compute the sums again; refuse while the data folder is in use."""
    lock = lock_folder(settings.data)
    try:
        uvloop.run(_rebuild(settings))
    finally:
        unlock_folder(lock)
    console.print("the sums of the index are rebuilt", highlight=False)


async def _rebuild(settings: Settings) -> None:
    async with Database(settings.database) as database:
        await upgrade(database)
        await rebuild_sums(RankingContext(database, now_ms, ROWS_PER_STEP_MAX))
        await rebuild_listings(ListingContext(database, now_ms))
