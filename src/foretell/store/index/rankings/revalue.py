"""Positions are valued again when a price or a category changes: the holders of a condition by pages."""

from collections.abc import Collection

from foretell.domain.portfolio.gains import gain_units
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.index.rankings.history import load_holders_at, load_volumes_at
from foretell.store.index.rankings.prices import load_current_marks, load_marks_at
from foretell.store.index.rankings.progress import (
    MarkState,
    PriceMark,
    RankingCursor,
    load_changing_marks,
    load_cursors,
    load_marks,
    record_marks,
)
from foretell.store.index.rankings.sums import Sums
from foretell.store.index.rankings.wins import refresh_wins

CONDITIONS_PER_STEP: int = 50


async def begin_changes(
    tx: Transaction, period: Period, condition_ids: Collection[Bytes32], at_s: int
) -> None:
    """Have the marks of these conditions change to those of now, or of a time."""
    cursor = (await load_cursors(tx))[period]
    known = await load_marks(tx, period, condition_ids)
    if period is Period.ALL:
        wanted = await load_current_marks(tx, condition_ids)
    else:
        wanted = await load_marks_at(tx, condition_ids, at_s)
    states: list[MarkState] = []
    sums = Sums()
    for condition_id, mark in wanted.items():
        state = known.get(condition_id, MarkState(condition_id, mark))
        if state.following is None:
            states.append(_changing(state, mark))
            if state.mark.category != mark.category:
                await _move_volumes(tx, cursor, state, mark, sums)
    await sums.record(tx, period)
    await record_marks(tx, period, states)


async def revalue(tx: Transaction, period: Period, holders_max: int) -> bool:
    """Value the next holders at the marks that change; return whether there were any."""
    cursor = (await load_cursors(tx))[period]
    changing = await load_changing_marks(tx, period, CONDITIONS_PER_STEP)
    left = holders_max
    for state in changing:
        if left <= 0:
            break
        left -= await _revalue_page(tx, cursor, state, max(2, left))
    return bool(changing)


def _changing(state: MarkState, mark: PriceMark) -> MarkState:
    """Return the state that leads to a mark: at once if the sums do not differ."""
    is_same = (state.mark.price, state.mark.category) == (mark.price, mark.category)
    return state._replace(mark=mark) if is_same else state._replace(following=mark)


async def _move_volumes(
    tx: Transaction, cursor: RankingCursor, state: MarkState, mark: PriceMark, sums: Sums
) -> None:
    categories = state.mark.category, mark.category
    for wallet, units in await load_volumes_at(tx, state.condition_id, cursor.block_number):
        sums.move_volume(wallet, categories, units)


async def _revalue_page(
    tx: Transaction, cursor: RankingCursor, state: MarkState, holders_max: int
) -> int:
    """Value holders of a condition again, and return how many positions that were."""
    assert state.following is not None
    found = await load_holders_at(
        tx, state.condition_id, cursor.block_number, state.done_wallet, holders_max + 1
    )
    is_last = len(found) <= holders_max
    page = found if is_last else [row for row in found if row.wallet < found[-1].wallet]
    sums = Sums()
    was, now = state.mark, state.following
    for row in page:
        units = (
            gain_units(row.held, was.price, is_yes=row.is_yes),
            gain_units(row.held, now.price, is_yes=row.is_yes),
        )
        sums.move_gain(row.wallet, (was.category, now.category), units)
    await sums.record(tx, cursor.period)
    done = MarkState(state.condition_id, now)
    if not is_last:
        done = state._replace(done_wallet=page[-1].wallet)
    await record_marks(tx, cursor.period, [done])
    if was.category != now.category:
        await refresh_wins(tx, {(row.wallet, row.token_id) for row in page})
    return len(page) + 1
