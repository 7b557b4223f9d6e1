"""The loop that keeps the standings of leaderboards: blocks first, then prices.

A round brings every running sum to its time. Its transactions are small, and each of them leaves the sums and
their cursors consistent, so a round that ends early goes on with the next one.
"""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Final

from foretell.domain.errors.storage import SumsReplaced
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Bytes32
from foretell.indexer.rounds import run_rounds
from foretell.store.database import Database, Transaction
from foretell.store.index.generations import RunningSum, hold_generation, load_live, sums_of
from foretell.store.index.rankings.advance import advance
from foretell.store.index.rankings.history import load_last_change
from foretell.store.index.rankings.prices import (
    BEFORE_ALL_CONDITIONS,
    load_changed_conditions,
    load_changed_quotes,
    load_last_market,
)
from foretell.store.index.rankings.progress import load_cursors, record_cursor
from foretell.store.index.rankings.revalue import begin_changes, revalue

ROUND_INTERVAL_S: Final = 5.0
ROWS_PER_STEP_MAX: Final = 1_000
CONDITIONS_PER_STEP_MAX: Final = 500
CONDITIONS_PER_ROUND_MAX: Final = 50_000
"""Stale marks that a round looks up; those beyond it are still stale in the next one."""

Pause = Callable[[], Awaitable[None]]
"""Waits after a step, so that others may write."""


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
    """Bring the standings of every period to now; those that are replaced meanwhile are left to the next round."""
    async with context.database.reading() as tx:
        generation = await load_live(tx)
    with contextlib.suppress(SumsReplaced):
        await refresh_generation(context, generation)


async def refresh_generation(
    context: RankingContext, generation: int, pause: Pause | None = None
) -> None:
    """Bring the sums of a generation to now.

    Raises SumsReplaced when it is neither live nor computed any more.
    """
    for each in sums_of(generation).values():
        await _Refresh(context, each, pause).run()


@dataclass(frozen=True, slots=True)
class _Refresh:
    """One round of a running sum."""

    context: RankingContext
    sum: RunningSum
    pause: Pause | None

    async def run(self) -> None:
        """Add the changes of blocks, and value again what has other prices than before."""
        period, limit = self.sum.period, self.context.rows_per_step_max
        now_s = self.context.now_ms() // 1000
        until_s = now_s if period is Period.ALL else now_s - period.seconds
        async with self.context.database.reading() as tx:
            last = await load_last_change(tx)  # later blocks are for the next round, however many
        is_behind = True
        while is_behind:
            async with self._step() as tx:
                bound_s = None if period is Period.ALL else until_s
                is_behind = await advance(tx, self.sum, bound_s, limit, last)
        await self._revalue()
        async with self.context.database.reading() as tx:
            last_market = await load_last_market(tx)
            cursor = (await load_cursors(tx, self.sum.generation, is_changing=False))[period]
            found = await load_changed_conditions(tx, cursor, until_s, CONDITIONS_PER_ROUND_MAX)
        await self._change(found, until_s)
        if period is Period.ALL:
            await self._change_quoted(found, cursor.at_s, until_s)
        async with self._step() as tx:
            cursor = (await load_cursors(tx, self.sum.generation))[period]
            await record_cursor(tx, cursor._replace(at_s=until_s, market_id=last_market))

    async def _change_quoted(self, done: set[Bytes32], compared_s: int, until_s: int) -> None:
        """Compare every quote with its mark, once and to the last one; value what differs part by part.

        The cursor's time is that of such a comparison: a quote that was settled by then counts as looked up.
        """
        changed: set[Bytes32] = set()
        after: str | None = BEFORE_ALL_CONDITIONS
        while after is not None:
            async with self.context.database.reading() as tx:
                condition_ids, after = await load_changed_quotes(tx, self.sum, after, compared_s)
            changed |= set(condition_ids) - done
            if len(changed) >= CONDITIONS_PER_STEP_MAX or after is None:
                await self._change(changed, until_s)
                changed.clear()

    async def _change(self, condition_ids: Collection[Bytes32], at_s: int) -> None:
        """Have the marks of these conditions change, and value their holders."""
        changed = sorted(condition_ids)
        for start in range(0, len(changed), CONDITIONS_PER_STEP_MAX):
            async with self._step() as tx:
                part = changed[start : start + CONDITIONS_PER_STEP_MAX]
                await begin_changes(tx, self.sum, part, at_s)
            await self._revalue()

    async def _revalue(self) -> None:
        is_changing = True
        while is_changing:
            async with self._step() as tx:
                is_changing = await revalue(tx, self.sum, self.context.rows_per_step_max)

    @contextlib.asynccontextmanager
    async def _step(self) -> AsyncIterator[Transaction]:
        async with self.context.database.writing() as tx:
            await hold_generation(tx, self.sum.generation)
            yield tx
        if self.pause is not None:
            await self.pause()
