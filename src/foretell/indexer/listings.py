"""The loop that keeps the totals by which markets and events are listed.

A round computes the totals of the markets that have changed, in small transactions, and then stores the time at which
the windows of all totals end. A round that ends early begins again.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from foretell.indexer.rounds import run_rounds
from foretell.store.database import Database, Transaction
from foretell.store.index.listing_totals import (
    empty_listings,
    load_changed_markets,
    load_listed_until,
    load_market_totals,
    record_listed_until,
    record_market_totals,
)
from foretell.store.valuation import MINUTE_MS

ROUND_INTERVAL_S: Final = 2.0
MARKETS_PER_STEP_MAX: Final = 200

Opening = Callable[[], contextlib.AbstractAsyncContextManager[Transaction]]
"""Opens a transaction for one step."""


@dataclass(frozen=True, slots=True)
class ListingContext:
    """The tables, and the clock."""

    database: Database
    now_ms: Callable[[], int]


async def run(context: ListingContext) -> None:
    """Keep the totals until cancelled."""
    await run_rounds("listings", ROUND_INTERVAL_S, lambda: refresh_listings(context))


async def refresh_listings(context: ListingContext) -> None:
    """Bring all totals to now."""
    database = context.database
    await _refresh(database.reading, database.writing, context.now_ms())


async def rebuild_listings(context: ListingContext) -> None:
    """Compute all totals again, in one transaction: readers have those from before until it commits."""
    async with context.database.writing() as tx:
        await empty_listings(tx)

        def same() -> contextlib.AbstractAsyncContextManager[Transaction]:
            return contextlib.nullcontext(tx)

        await _refresh(same, same, context.now_ms())


async def _refresh(reading: Opening, writing: Opening, now_ms: int) -> None:
    async with reading() as tx:
        was_ms = await load_listed_until(tx)
        changed = await load_changed_markets(tx, was_ms, now_ms)
    for start in range(0, len(changed), MARKETS_PER_STEP_MAX):
        async with reading() as tx:
            part = changed[start : start + MARKETS_PER_STEP_MAX]
            totals = await load_market_totals(tx, part, now_ms)
        async with writing() as tx:
            await record_market_totals(tx, totals)
    if was_ms is None or was_ms // MINUTE_MS != now_ms // MINUTE_MS:
        async with writing() as tx:
            await record_listed_until(tx, now_ms)
