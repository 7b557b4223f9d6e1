"""The loop that keeps the totals by which markets and events are listed.

A round computes the totals of the markets that have changed, in small transactions, and then stores the time at which
the windows of all totals end. A round that ends early begins again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from foretell.indexer.rebuild import RebuildContext, take_step
from foretell.indexer.rounds import run_rounds
from foretell.store.database import Database, Transaction
from foretell.store.index.listing_recount import (
    BEFORE_ALL_IDS,
    OF_MARKETS,
    recount_markets,
    recount_series,
    remove_orphans,
)
from foretell.store.index.listing_totals import (
    load_changed_markets,
    load_listed_until,
    load_market_totals,
    record_listed_until,
    record_market_totals,
)
from foretell.store.valuation import MINUTE_MS

ROUND_INTERVAL_S: Final = 2.0
MARKETS_PER_STEP_MAX: Final = 200

ROWS_PER_REBUILD_STEP_MAX: Final = 50
"""Fewer than in a round: a step of a rebuild also reads in the transaction that writes."""


class _Recount(Protocol):
    """Computes the totals of the next ids again, and returns these."""

    def __call__(self, tx: Transaction, /, *, after_id: int) -> Awaitable[Sequence[int]]: ...


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
    await _refresh(context.database, context.now_ms())


async def rebuild_listings(context: RebuildContext) -> int:
    """Compute all totals again, a few rows at a time, as of the time that the loop has come to; return the markets.

    The row of a market is as before until it is exact; events and series have the sums of what is below them. The loop may
    run meanwhile, and computes what this has written once more.

    Raises SumsHeld when others hold the totals for too long.
    """
    rows_max = min(context.rows_per_step_max, ROWS_PER_REBUILD_STEP_MAX)
    for totals in OF_MARKETS:
        remove = partial(remove_orphans, totals=totals, rows_max=rows_max)
        await _recount_all(context, remove)
    counted = await _recount_all(context, partial(_recount_markets, context, rows_max=rows_max))
    await _recount_all(context, partial(recount_series, rows_max=rows_max))
    return counted


async def _recount_all(context: RebuildContext, recount: _Recount) -> int:
    """Take a step for the next ids until there are none, and return how many there were."""
    counted, after_id = 0, BEFORE_ALL_IDS
    while ids := await take_step(context, partial(recount, after_id=after_id)):
        counted, after_id = counted + len(ids), ids[-1]
    return counted


async def _recount_markets(
    context: RebuildContext, tx: Transaction, after_id: int, rows_max: int
) -> Sequence[int]:
    at_ms = await load_listed_until(tx)
    if at_ms is None:
        at_ms = context.now_ms()
        await record_listed_until(tx, at_ms)
    return await recount_markets(tx, after_id, at_ms, rows_max)


async def _refresh(database: Database, now_ms: int) -> None:
    async with database.reading() as tx:
        was_ms = await load_listed_until(tx)
        changed = await load_changed_markets(tx, was_ms, now_ms)
    for start in range(0, len(changed), MARKETS_PER_STEP_MAX):
        async with database.reading() as tx:
            part = changed[start : start + MARKETS_PER_STEP_MAX]
            totals = await load_market_totals(tx, part, now_ms)
        async with database.writing() as tx:
            await record_market_totals(tx, totals)
    if was_ms is None or was_ms // MINUTE_MS != now_ms // MINUTE_MS:
        async with database.writing() as tx:
            await record_listed_until(tx, now_ms)
