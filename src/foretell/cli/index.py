"""`foretell index rebuild`: the sums by wallet, the totals of markets and the volumes of builders, computed again while the exchange runs."""

import time

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import now_ms
from foretell.domain.errors.storage import FolderInUse
from foretell.indexer.listings import rebuild_listings
from foretell.indexer.rebuild import (
    RebuildContext,
    rebuild_builders,
    rebuild_sums,
    rebuild_supplies,
)
from foretell.journal.files.folder_lock import lock_folder, unlock_folder
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.migrations import is_current, upgrade
from foretell.store.rebuild_lock import rebuild_lock


def run_rebuild_index(settings: Settings, console: Console) -> None:
    """Compute the sums again beside those that are read, and have them read then; print how it goes."""
    uvloop.run(_rebuild(settings, console))


async def _rebuild(settings: Settings, console: Console) -> None:
    def report(line: str) -> None:
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    async with Database(settings.database) as database:
        await _upgrade_unused(settings, database)
        async with rebuild_lock(database):
            began_s = time.monotonic()
            context = RebuildContext(database, now_ms, report=report)
            report("computing the sums of wallets beside those that are read")
            sums = await rebuild_sums(context)
            report(
                f"swapped at block {sums.block_number}: {sums.trades} trades of wallets,"
                f" {sums.rows} rows; generation {sums.generation} is read from now on"
            )
            report(f"removed {sums.removed_rows} rows of the sums from before")
            tokens = await rebuild_supplies(context)
            report(f"added up the supplies of {tokens} tokens")
            markets = await rebuild_listings(context)
            report(f"computed the totals of {markets} markets")
            builders = await rebuild_builders(context)
            report(f"added up the volumes of {builders} builders")
            took_s = time.monotonic() - began_s
    report(f"the sums of the index are rebuilt ({took_s:.1f} s)")


async def _upgrade_unused(settings: Settings, database: Database) -> None:
    """Bring a database that is not in use to today's schema; refuse one that an older version uses."""
    try:
        lock = lock_folder(settings.data)
    except FolderInUse:
        if not await is_current(database):
            raise
        return
    try:
        await upgrade(database)
    finally:
        unlock_folder(lock)
