"""The loop that keeps the standings of leaderboards: blocks first, then prices.

A round brings every running sum to its time. Its transactions are small, and each of them leaves the sums and
their cursors consistent, so a round that ends early goes on with the next one.
"""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from foretell.domain.portfolio.periods import Period
from foretell.indexer.rounds import run_rounds
from foretell.store.database import Database, Transaction
from foretell.store.index.rankings.advance import advance
from foretell.store.index.rankings.prices import load_changed_conditions, load_last_market
from foretell.store.index.rankings.progress import load_cursors, record_cursor
from foretell.store.index.rankings.revalue import begin_changes, revalue
from foretell.store.index.rankings.sums import empty_rankings
from foretell.store.index.trading_totals import rebuild_trading_totals

ROUND_INTERVAL_S: Final = 5.0
ROWS_PER_STEP_MAX: Final = 1_000
CONDITIONS_PER_STEP_MAX: Final = 500
CONDITIONS_PER_ROUND_MAX: Final = 50_000


Writing = Callable[[], contextlib.AbstractAsyncContextManager[Transaction]]
"""Opens a transaction for one step."""


@dataclass(frozen=True, slots=True)
class RankingContext:
    """The tables, the clock, and how much one transaction changes."""

    database: Database
    now_ms: Callable[[], int]
    rows_per_step_max: int = ROWS_PER_STEP_MAX


async def run(context: RankingContext) -> None:
    """Keep the standings until cancelled."""
    await run_rounds("rankings", ROUND_INTERVAL_S, lambda: refresh_rankings(context))


async def refresh_rankings(context: RankingContext) -> None:
    """Bring the standings of every period to now."""
    for period in Period:
        await _refresh(context.database.writing, period, context)


async def rebuild_sums(context: RankingContext) -> None:
    """Compute all sums by wallet from the other tables again, in one transaction.

    Readers have the sums from before until it commits.
    """
    async with context.database.writing() as tx:
        await rebuild_trading_totals(tx)
        await empty_rankings(tx)
        for period in Period:
            await _refresh(lambda: contextlib.nullcontext(tx), period, context)


async def _refresh(writing: Writing, period: Period, context: RankingContext) -> None:
    limit, now_s = context.rows_per_step_max, context.now_ms() // 1000
    until_s = now_s if period is Period.ALL else now_s - period.seconds
    is_behind = True
    while is_behind:
        async with writing() as tx:
            is_behind = await advance(tx, period, None if period is Period.ALL else until_s, limit)
    await _revalue(writing, period, limit)
    async with writing() as tx:
        last_market = await load_last_market(tx)
        cursor = (await load_cursors(tx))[period]
        changed = await load_changed_conditions(tx, cursor, until_s, CONDITIONS_PER_ROUND_MAX)
    for start in range(0, len(changed), CONDITIONS_PER_STEP_MAX):
        async with writing() as tx:
            part = changed[start : start + CONDITIONS_PER_STEP_MAX]
            await begin_changes(tx, period, part, until_s)
        await _revalue(writing, period, limit)
    async with writing() as tx:
        cursor = (await load_cursors(tx))[period]
        await record_cursor(tx, cursor._replace(at_s=until_s, market_id=last_market))


async def _revalue(writing: Writing, period: Period, holders_max: int) -> None:
    is_changing = True
    while is_changing:
        async with writing() as tx:
            is_changing = await revalue(tx, period, holders_max)
