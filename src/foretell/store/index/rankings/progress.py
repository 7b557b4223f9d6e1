"""The place of each running sum, and the price and the category at which it counts a condition."""

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.prices import ONE_HALF
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.index.generations import RunningSum, sums_of
from foretell.store.lookups import load_rows
from foretell.store.tables import ranking_cursors, ranking_marks

ALL_CATEGORIES: Final = ""
"""The category of the standings over all markets; a condition without a market has this one too."""
NEVER_SEEN: Final = 0
STALE: Final = -1


class RankingCursor(NamedTuple):
    """The place of a running sum: it has all changes up to a block, and the prices of a time.

    Markets up to `market_id` count in their categories.
    """

    sum: RunningSum
    block_number: int = BEFORE_ALL_BLOCKS
    at_s: int = 0
    market_id: int = 0


class PriceMark(NamedTuple):
    """A price of Yes, the category of its market, and when the quote that it is from was written."""

    price: Fraction = ONE_HALF
    category: str = ALL_CATEGORIES
    seen_ms: int = NEVER_SEEN


class MarkState(NamedTuple):
    """The mark of a condition; while it changes, wallets up to `done_wallet` count at the next one."""

    condition_id: Bytes32
    mark: PriceMark = PriceMark()
    following: PriceMark | None = None
    done_wallet: str = ""

    def of(self, wallet: Address) -> PriceMark:
        """Return the mark that a wallet's positions count at."""
        has_changed = self.following is not None and wallet <= self.done_wallet
        return self.following if has_changed and self.following else self.mark

    @property
    def volume_category(self) -> str:
        """The category of trades; it changes for all wallets at once."""
        return (self.following or self.mark).category


async def load_cursors(
    tx: Transaction, generation: int, *, is_changing: bool = True
) -> dict[Period, RankingCursor]:
    """Return the cursors of a generation; who changes them keeps others from it until the commit."""
    sums = sums_of(generation)
    keys = [each.key for each in sums.values()]
    query = (
        sa.select(ranking_cursors)
        .where(ranking_cursors.c.period.in_(keys))
        .order_by(ranking_cursors.c.period)
    )
    rows = await tx.all(query.with_for_update() if is_changing else query)
    known = {row.period: row[1:] for row in rows}
    return {period: RankingCursor(each, *known.get(each.key, ())) for period, each in sums.items()}


async def begin_cursors(tx: Transaction, generation: int) -> None:
    """Have all sums of a generation begin before the first block."""
    for each in sums_of(generation).values():
        await record_cursor(tx, RankingCursor(each))


async def forget_cursors(tx: Transaction, generation: int) -> None:
    """Delete the cursors of a generation: no reorg subtracts from its sums any more."""
    keys = [each.key for each in sums_of(generation).values()]
    await tx.execute(ranking_cursors.delete().where(ranking_cursors.c.period.in_(keys)))


async def record_cursor(tx: Transaction, cursor: RankingCursor) -> None:
    """Store a cursor."""
    await tx.upsert_rows(ranking_cursors, [(cursor.sum.key, *cursor[1:])])


async def load_marks(
    tx: Transaction, of_sum: RunningSum, condition_ids: Iterable[Bytes32]
) -> dict[Bytes32, MarkState]:
    """Return the marks of these conditions; those without one are left out."""
    keys = [(of_sum.key, each) for each in condition_ids]
    rows = await load_rows(tx, ranking_marks, ranking_marks.primary_key, keys)
    return {Bytes32(row.condition_id): _state(row) for row in rows}


async def load_changing_marks(
    tx: Transaction, of_sum: RunningSum, limit: int
) -> Sequence[MarkState]:
    """Return marks that change to others."""
    rows = await tx.all(
        sa.select(ranking_marks)
        .where(ranking_marks.c.period == of_sum.key, ranking_marks.c.next_price.is_not(None))
        .limit(limit)
    )
    return [_state(row) for row in rows]


async def load_stale_conditions(
    tx: Transaction, of_sum: RunningSum, limit: int
) -> Collection[Bytes32]:
    """Return conditions whose price may differ from their mark."""
    rows = await tx.all(
        sa.select(ranking_marks.c.condition_id)
        .where(
            ranking_marks.c.period == of_sum.key,
            ranking_marks.c.seen_ms == STALE,
            ranking_marks.c.next_price.is_(None),
        )
        .limit(limit)
    )
    return [Bytes32(row.condition_id) for row in rows]


async def mark_stale(
    tx: Transaction, of_sum: RunningSum, condition_ids: Collection[Bytes32]
) -> None:
    """Have the prices of these conditions looked up again."""
    known = await load_marks(tx, of_sum, condition_ids)
    states = [known.get(each, MarkState(each)) for each in sorted(condition_ids)]
    await record_marks(tx, of_sum, [_stale(state) for state in states])


async def record_marks(tx: Transaction, of_sum: RunningSum, states: Sequence[MarkState]) -> None:
    """Store marks."""
    await tx.upsert_rows(ranking_marks, [_cells(of_sum, state) for state in states])


def _stale(state: MarkState) -> MarkState:
    if state.following is not None:
        return state._replace(following=state.following._replace(seen_ms=STALE))
    return state._replace(mark=state.mark._replace(seen_ms=STALE))


def _cells(of_sum: RunningSum, state: MarkState) -> tuple[Any, ...]:
    following: tuple[Any, ...] = (None, None, None, None)
    if state.following is not None:
        following = (*_mark_cells(state.following), state.done_wallet)
    return (of_sum.key, state.condition_id, *_mark_cells(state.mark), *following)


def _mark_cells(mark: PriceMark) -> tuple[str, str, int]:
    """Return the columns of a mark; the price is text, as a payout may have 64 bits in each part."""
    return f"{mark.price.numerator}/{mark.price.denominator}", mark.category, mark.seen_ms


def _state(row: Any) -> MarkState:
    following = None
    if row.next_price is not None:
        following = PriceMark(Fraction(row.next_price), row.next_category, row.next_seen_ms)
    mark = PriceMark(Fraction(row.price), row.category, row.seen_ms)
    return MarkState(Bytes32(row.condition_id), mark, following, row.done_wallet or "")
