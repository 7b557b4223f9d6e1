"""The rebuild of the sums by wallet: computed beside those that are read, in small steps, and then made live at once.

The next generation of sums follows the blocks as the live one does, by the same code, and a reorg unwinds both in its
own transaction. So at every commit the next generation is exact up to its cursors. The last step adds what is left, at
most what a step may have, and makes the generation live in the same transaction. Neither the rebuild nor those who wait
for it on PostgreSQL do so without end: a step that gets no lock in time is rolled back and taken again, so many times,
and the database ends a transaction whose process stops.
"""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeVar

from foretell.domain.errors.storage import RebuildOvertaken, RowsLocked, SumsHeld, SumsReplaced
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.periods import Period
from foretell.indexer.project import Changes, close_trades, load_volumes_of
from foretell.indexer.rankings import ROWS_PER_STEP_MAX, RankingContext, refresh_generation
from foretell.indexer.state import IndexState, TrackedValues, WalletTotals
from foretell.runtime.backoff import pauses_s
from foretell.store.database import Database, Transaction
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.generation_rows import count_rows, remove_unread, tables_with
from foretell.store.index.generations import (
    NextGeneration,
    RunningSum,
    begin_next,
    load_kept,
    load_next,
    make_live,
    record_next,
)
from foretell.store.index.rankings.advance import advance
from foretell.store.index.rankings.history import BlockRange, load_last_change
from foretell.store.index.rankings.progress import begin_cursors, forget_cursors
from foretell.store.index.supplies import (
    BEFORE_ALL_TOKENS,
    load_next_tokens,
    recount_supplies,
)
from foretell.store.index.trading_totals import (
    PlacedTrade,
    TradedMarket,
    load_next_trades,
    load_traded_markets,
    load_trading_totals,
    record_traded_markets,
    record_traded_volumes,
    record_trading_totals,
)
from foretell.store.trading.builder_recount import (
    SWAPS,
    TRADES_PER_STEP_MAX,
    begin_recount,
    count_trades,
    end_recount,
    remove_counted,
    swap_rows,
)

CATCH_UPS_MAX: Final = 100
"""An index that goes on meanwhile is followed; each round has fewer blocks than the one before."""
TOKENS_PER_STEP_MAX: Final = 50
"""Fewer than rows of a step: a token has many balances."""
PAUSE_S_MIN: Final = 0.005
"""The pause after a step, at least: longer than SQLite's writers wait until they look again."""

LOCK_TRIES_MAX: Final = 10
"""How often a step is taken until it gets its locks."""
LOCK_PAUSE_S: Final = 1.0
LOCK_PAUSE_S_MAX: Final = 30.0

T = TypeVar("T")

Report = Callable[[str], None]
"""Takes a line on what is done."""


class Pacing:
    """The pauses between steps."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    async def pause(self) -> None:
        """Wait as long as the last step took."""
        await asyncio.sleep(max(PAUSE_S_MIN, time.monotonic() - self._began_s))
        self._began_s = time.monotonic()


@dataclass(frozen=True, slots=True)
class RebuildContext:
    """The tables, the clock, and how much one transaction changes.

    Between two steps is a pause as long as the step before, so that others may write half of the time at least.
    """

    database: Database
    now_ms: Callable[[], int]
    rows_per_step_max: int = ROWS_PER_STEP_MAX
    report: Report = lambda _: None
    pacing: Pacing = field(default_factory=Pacing)

    @property
    def ranking(self) -> RankingContext:
        """The context of the rounds of standings."""
        return RankingContext(self.database, self.now_ms, self.rows_per_step_max)


class RebuiltSums(NamedTuple):
    """The generation that is live now, the block of its totals, and the work that it took."""

    generation: int
    block_number: int
    trades: int
    rows: int
    removed_rows: int
    rounds: int


class _Swapped(NamedTuple):
    """Whether the generation is live; the block of its totals, and the trades that the last step added."""

    is_live: bool
    block_number: int
    trades: int


async def rebuild_sums(context: RebuildContext) -> RebuiltSums:
    """Compute the sums and totals of all wallets again, and make them those that are read.

    Readers have the sums from before until the last commit, and all sums of the new generation from then on.

    Raises RebuildOvertaken when the index grows faster, SumsReplaced when another rebuild has begun, and SumsHeld when
    others held the live sums for too long.
    """
    generation = await _locked(context, partial(_begin, context))
    removed = await _remove_unread(context)
    if removed:
        context.report(f"removed {removed} rows that an unfinished rebuild had left")
    await _locked(context, partial(_begin_sums, context, generation))
    trades = 0
    for round_number in range(1, CATCH_UPS_MAX + 1):
        trades += await _follow_trades(context, generation)
        refresh = partial(refresh_generation, context.ranking, generation, context.pacing.pause)
        await _locked(context, refresh)
        context.report(f"round {round_number}: {trades} trades of wallets are added up")
        swapped = await _locked(context, partial(_swap, context, generation))
        trades += swapped.trades
        if swapped.is_live:
            rows = await _count_rows(context, generation)
            removed = await _remove_unread(context)
            return RebuiltSums(
                generation, swapped.block_number, trades, rows, removed, round_number
            )
    raise RebuildOvertaken(CATCH_UPS_MAX)


async def rebuild_supplies(context: RebuildContext) -> int:
    """Add up the supplies of all tokens again, some tokens at a time, and return their number.

    A step has the row of the live sums alone, so that no block changes the balances it adds up.

    Raises SumsHeld when others hold the sums for too long.
    """
    counted = 0
    tokens: Sequence[AssetId] = [BEFORE_ALL_TOKENS]
    while tokens:
        tokens = await _locked(context, partial(_recount_next, context, tokens[-1]))
        counted += len(tokens)
        await context.pacing.pause()
    return counted


async def rebuild_builders(context: RebuildContext) -> int:
    """Add up the volumes of builders again while engines go on, and return the number of builders.

    Each row is as before until it is exact. A rebuild that ends earlier leaves rows that nobody reads.

    Raises SumsHeld when others hold the sums for too long, and RebuildRunning when another process has begun.
    """
    rows_max = context.rows_per_step_max
    remove = partial(remove_counted, rows_max=rows_max)
    await take_step(context, end_recount)
    await _until_none(context, remove)
    await take_step(context, begin_recount)
    trades_max = min(rows_max, TRADES_PER_STEP_MAX)
    await _until_none(context, partial(count_trades, trades_max=trades_max))
    builders = 0
    for tables in SWAPS:
        builders, after = 0, None
        while keys := await take_step(
            context, partial(swap_rows, tables=tables, after=after, rows_max=rows_max)
        ):
            builders, after = builders + len(keys), keys[-1]
    await take_step(context, end_recount)
    await _until_none(context, remove)
    return builders


async def _until_none(
    context: RebuildContext, work: Callable[[Transaction], Awaitable[int]]
) -> None:
    while await take_step(context, work):
        """Take the next step."""


async def take_step(context: RebuildContext, work: Callable[[Transaction], Awaitable[T]]) -> T:
    """Do a part of the work in a transaction of its own, and rest.

    Raises SumsHeld when others hold what it locks for too long.
    """

    async def take() -> T:
        async with context.database.writing() as tx:
            return await work(tx)

    done = await _locked(context, take)
    await context.pacing.pause()
    return done


async def _recount_next(context: RebuildContext, after: AssetId) -> Sequence[AssetId]:
    async with context.database.writing() as tx:
        await load_kept(tx)
        tokens = await load_next_tokens(tx, after, TOKENS_PER_STEP_MAX)
        await recount_supplies(tx, tokens)
        return tokens


async def _locked(context: RebuildContext, step: Callable[[], Awaitable[T]]) -> T:
    """Take a step, again after a pause while it does not get its locks.

    Raises SumsHeld when it has not got them `LOCK_TRIES_MAX` times.
    """
    for pause_s in itertools.islice(pauses_s(LOCK_PAUSE_S, LOCK_PAUSE_S_MAX), LOCK_TRIES_MAX - 1):
        try:
            return await step()
        except RowsLocked:
            context.report(f"others hold the sums; the step is taken again in {pause_s:.1f} s")
            await asyncio.sleep(pause_s)
    try:
        return await step()
    except RowsLocked as error:
        raise SumsHeld(LOCK_TRIES_MAX) from error


async def _begin(context: RebuildContext) -> int:
    async with context.database.writing() as tx:
        return await begin_next(tx)


async def _begin_sums(context: RebuildContext, generation: int) -> None:
    async with context.database.writing() as tx:
        await _own(tx, generation)
        await record_next(tx, NextGeneration(generation, BEFORE_ALL_BLOCKS))
        await begin_cursors(tx, generation)


async def _remove_unread(context: RebuildContext) -> int:
    async def remove() -> int:
        async with context.database.writing() as tx:
            return await remove_unread(tx, context.rows_per_step_max)

    removed = 0
    while True:
        rows = await _locked(context, remove)
        await context.pacing.pause()
        removed += rows
        if not rows:
            return removed


async def _count_rows(context: RebuildContext, generation: int) -> int:
    rows = 0
    for table in tables_with(generation):
        async with context.database.reading() as tx:
            rows += await count_rows(tx, table, generation)
    return rows


async def _follow_trades(context: RebuildContext, generation: int) -> int:
    """Bring the totals of wallets to the block that is the last now; return how many trades that are."""
    async with context.database.reading() as tx:
        last = await load_last_change(tx)

    async def add() -> _Added:
        async with context.database.writing() as tx:
            return await _add_trades(tx, generation, context.rows_per_step_max)

    trades, is_behind = 0, True
    while is_behind:
        added = await _locked(context, add)
        await context.pacing.pause()
        trades += added.trades
        is_behind = added.is_behind and added.block_number < last
    return trades


class _Added(NamedTuple):
    """What a step added to the totals of wallets."""

    trades: int
    block_number: int
    is_behind: bool


async def _add_trades(tx: Transaction, generation: int, rows_max: int) -> _Added:
    """Add the trades of the next blocks to the totals of the next generation, as the indexer adds them."""
    following = await _own(tx, generation)
    newest = max(await load_last_change(tx), following.block_number)
    ahead = BlockRange(following.block_number, newest)
    trades, bound = await load_next_trades(tx, ahead, rows_max)
    totals = await load_trading_totals(tx, {trade.wallet for trade in trades}, generation)
    state = IndexState(
        totals=TrackedValues(
            WalletTotals(),
            {row.wallet: WalletTotals(row.trades, row.markets, row.volume_units) for row in totals},
        )
    )
    keys = {(trade.wallet, trade.condition_id) for trade in trades}
    state.traded.update(await load_traded_markets(tx, keys, generation))
    await load_volumes_of(tx, state, keys, generation)
    first, changes = _applied(state, trades)
    await record_trading_totals(tx, changes.totals, generation)
    await record_traded_markets(tx, first, generation)
    await record_traded_volumes(tx, changes.volumes, generation)
    await record_next(tx, NextGeneration(generation, bound))
    return _Added(len(trades), bound, bound < newest)


def _applied(
    state: IndexState, trades: Sequence[PlacedTrade]
) -> tuple[list[TradedMarket], Changes]:
    """Add trades to the state; return the first ones, and the totals and volumes after each block."""
    first: list[TradedMarket] = []
    changes = Changes()
    for number, of_block in itertools.groupby(trades, key=lambda trade: trade.block_number):
        first.extend(
            trade.as_first
            for trade in of_block
            if state.add_trade(
                trade.wallet, trade.condition_id, trade.cost_units, trade.timestamp_s
            )
        )
        close_trades(state, number, changes)
    return first, changes


async def _swap(context: RebuildContext, generation: int) -> _Swapped:
    """Add what has been indexed since, and make the generation live if that was all; a short transaction."""
    rows_max = context.rows_per_step_max
    async with context.database.writing() as tx:
        live = (await load_kept(tx)).live
        added = await _add_trades(tx, generation, rows_max)
        is_behind = await advance(tx, RunningSum(generation, Period.ALL), None, rows_max)
        if not added.is_behind and not is_behind:
            await make_live(tx, generation)
            await forget_cursors(tx, live)
            return _Swapped(is_live=True, block_number=added.block_number, trades=added.trades)
    await context.pacing.pause()
    return _Swapped(is_live=False, block_number=added.block_number, trades=added.trades)


async def _own(tx: Transaction, generation: int) -> NextGeneration:
    """Return the state of the next generation; refuse if another rebuild has taken its place."""
    following = await load_next(tx)
    if following is None or following.generation != generation:
        raise SumsReplaced(generation)
    return following
