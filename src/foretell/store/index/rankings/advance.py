"""The running sums follow the indexed blocks, and go back with them.

A step adds what some blocks changed, at the marks of the sum. Going back subtracts the same.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.gains import gain_units
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.history import (
    BlockRange,
    HeldChange,
    ReportedCondition,
    WalletTrade,
    load_first_blocks,
    load_held_changes,
    load_last_change,
    load_resolutions,
    load_resolutions_after,
    load_trades,
)
from foretell.store.index.rankings.prices import load_current_marks, load_marks_at
from foretell.store.index.rankings.progress import (
    MarkState,
    RankingCursor,
    load_cursors,
    load_marks,
    mark_stale,
    record_cursor,
    record_marks,
)
from foretell.store.index.rankings.sums import Sums
from foretell.store.index.rankings.wins import refresh_wins

Row = HeldChange | WalletTrade | ReportedCondition


class _Rows(NamedTuple):
    """What some blocks changed."""

    held: Sequence[HeldChange]
    trades: Sequence[WalletTrade]
    resolutions: Sequence[ReportedCondition]

    def up_to(self, block_number: int) -> "_Rows":
        """Return the rows of the blocks up to this one."""
        return _Rows(
            [row for row in self.held if row.block_number <= block_number],
            [row for row in self.trades if row.block_number <= block_number],
            [row for row in self.resolutions if row.block_number <= block_number],
        )

    @property
    def kinds(self) -> tuple[Sequence[Row], ...]:
        """The rows of each kind."""
        return self.held, self.trades, self.resolutions

    @property
    def condition_ids(self) -> set[Bytes32]:
        """The conditions of positions and trades."""
        held = {row.condition_id for row in self.held}
        return held | {trade.condition_id for trade in self.trades}

    @property
    def closed(self) -> set[tuple[Address, AssetId]]:
        """The positions that were a win before or after."""
        return {
            (row.wallet, row.token_id) for row in self.held if row.before.is_win or row.after.is_win
        }


async def advance(
    tx: Transaction,
    of_sum: RunningSum,
    until_s: int | None,
    rows_max: int,
    last: int | None = None,
) -> bool:
    """Add the changes of the next blocks, those before a time or up to a block if there is one.

    Return whether more is to be added. A step has at most `rows_max` changes of a kind, or one block, and passes over
    few activities that are no trades.
    """
    cursor = (await load_cursors(tx, of_sum.generation))[of_sum.period]
    newest = await load_last_change(tx)
    wanted = BlockRange(cursor.block_number, newest if last is None else min(newest, last))
    ahead = await load_first_blocks(tx, wanted, rows_max)
    rows = await _load(tx, ahead, rows_max)
    bound = min(_bound(each, rows_max, until_s, ahead.last) for each in rows.kinds)
    if bound <= ahead.after and any(len(each) == rows_max for each in rows.kinds):
        bound = min(each[0].block_number for each in rows.kinds if each)
        rows = await _load(tx, BlockRange(ahead.after, bound), None)
        if any(_is_late(each, until_s) for each in rows.kinds):
            bound = ahead.after
    if bound <= ahead.after:
        return False
    added = rows.up_to(bound)
    await _mark_new(tx, cursor, added.condition_ids)
    marks = await load_marks(tx, of_sum, added.condition_ids)
    await _sum_of(marks, added, 1).record(tx, of_sum)
    await mark_stale(tx, of_sum, {row.condition_id for row in added.resolutions})
    await record_cursor(tx, cursor._replace(block_number=bound))
    await refresh_wins(tx, of_sum.generation, added.closed)
    return bound < wanted.last


async def unwind_rankings(
    tx: Transaction, generation: int, block_number: int
) -> Collection[tuple[Address, AssetId]]:
    """Subtract what blocks above this one have added to a generation; return the wins that they changed.

    A mark may be from a payout above it that the sum has not come to: prices are looked up as of now.
    """
    holdings: set[tuple[Address, AssetId]] = set()
    undone = await load_resolutions_after(tx, block_number)
    for cursor in (await load_cursors(tx, generation)).values():
        known = await load_marks(tx, cursor.sum, undone)
        await mark_stale(tx, cursor.sum, known)
        if cursor.block_number <= block_number:
            continue
        rows = await _load(tx, BlockRange(block_number, cursor.block_number), None)
        marks = await load_marks(tx, cursor.sum, rows.condition_ids)
        await _sum_of(marks, rows, -1).record(tx, cursor.sum)
        await record_cursor(tx, cursor._replace(block_number=block_number))
        holdings |= rows.closed
    return holdings


async def _load(tx: Transaction, blocks: BlockRange, limit: int | None) -> _Rows:
    return _Rows(
        await load_held_changes(tx, blocks, limit),
        await load_trades(tx, blocks, limit),
        await load_resolutions(tx, blocks, limit),
    )


def _bound(rows: Sequence[Row], rows_max: int, until_s: int | None, last: int) -> int:
    """Return the last block of which these rows have everything, and in time."""
    for row in rows:
        if until_s is not None and row.at_s >= until_s:
            return row.block_number - 1
    return rows[-1].block_number - 1 if len(rows) == rows_max else last


def _is_late(rows: Iterable[Row], until_s: int | None) -> bool:
    return until_s is not None and any(row.at_s >= until_s for row in rows)


async def _mark_new(
    tx: Transaction, cursor: RankingCursor, condition_ids: Collection[Bytes32]
) -> None:
    """Mark conditions that had no position until now."""
    known = await load_marks(tx, cursor.sum, condition_ids)
    missing = set(condition_ids) - known.keys()
    if cursor.sum.period is Period.ALL:
        marks = await load_current_marks(tx, missing)
    else:
        marks = await load_marks_at(tx, missing, cursor.at_s)
    states = [MarkState(condition_id, mark) for condition_id, mark in marks.items()]
    await record_marks(tx, cursor.sum, states)


def _sum_of(marks: dict[Bytes32, MarkState], rows: _Rows, sign: int) -> Sums:
    """Return what the changes add to the standings, or with -1 take off them."""
    sums = Sums()
    for row in rows.held:
        mark = marks[row.condition_id].of(row.wallet)
        after = gain_units(row.after, mark.price, is_yes=row.is_yes)
        before = gain_units(row.before, mark.price, is_yes=row.is_yes)
        sums.add_gain(row.wallet, mark.category, sign * (after - before))
    for trade in rows.trades:
        category = marks[trade.condition_id].volume_category
        sums.add_volume(trade.wallet, category, sign * trade.cost_units)
    return sums
