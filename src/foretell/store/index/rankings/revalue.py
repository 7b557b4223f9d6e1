"""Positions are valued again when a price or a category changes: the holders of a condition by pages."""

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.gains import gain_units
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.history import (
    HeldToken,
    load_all_holders_at,
    load_holders_at,
    load_volumes_at,
)
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

CONDITIONS_PER_STEP: Final = 200


class _Page(NamedTuple):
    """Some holders of a condition, and the state of its mark once they are valued again."""

    holders: Sequence[HeldToken]
    state: MarkState


async def begin_changes(
    tx: Transaction, of_sum: RunningSum, condition_ids: Collection[Bytes32], at_s: int
) -> None:
    """Have the marks of these conditions change to those of now, or of a time."""
    cursor = (await load_cursors(tx, of_sum.generation))[of_sum.period]
    known = await load_marks(tx, of_sum, condition_ids)
    if of_sum.period is Period.ALL:
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
    await sums.record(tx, of_sum)
    await record_marks(tx, of_sum, states)


async def revalue(tx: Transaction, of_sum: RunningSum, holders_max: int) -> bool:
    """Value the next holders at the marks that change; return whether there were any."""
    cursor = (await load_cursors(tx, of_sum.generation))[of_sum.period]
    changing = await load_changing_marks(tx, of_sum, CONDITIONS_PER_STEP)
    if not changing:
        return False
    sums, closed, states = Sums(), set[tuple[Address, AssetId]](), list[MarkState]()
    for was, page in await _load_pages(tx, cursor, changing, holders_max):
        states.append(page.state)
        closed |= _value_again(was, page.holders, sums)
    await sums.record(tx, of_sum)
    await record_marks(tx, of_sum, states)
    await refresh_wins(tx, of_sum.generation, closed)
    return True


async def _load_pages(
    tx: Transaction, cursor: RankingCursor, changing: Sequence[MarkState], holders_max: int
) -> Sequence[tuple[MarkState, _Page]]:
    """Return the marks whose holders fit, each with all of them; or else some holders of one mark.

    One query for many conditions: most have few holders, and a query for each costs more than its rows.
    """
    begins = [state for state in changing if not state.done_wallet]
    block = cursor.block_number
    ids = [state.condition_id for state in begins]
    found = await load_all_holders_at(tx, ids, block, holders_max) if ids else {}
    whole = [(state, found[state.condition_id]) for state in begins if state.condition_id in found]
    if not whole:
        return [(changing[0], await _load_page(tx, cursor, changing[0], max(2, holders_max)))]
    return [(state, _Page(holders, _done(state))) for state, holders in whole]


def _done(state: MarkState) -> MarkState:
    assert state.following is not None
    return MarkState(state.condition_id, state.following)


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


async def _load_page(
    tx: Transaction, cursor: RankingCursor, state: MarkState, holders_max: int
) -> _Page:
    """Return the next holders of a condition, each with all its tokens."""
    assert state.following is not None
    found = await load_holders_at(
        tx, state.condition_id, cursor.block_number, state.done_wallet, holders_max + 1
    )
    if len(found) <= holders_max:
        return _Page(found, _done(state))
    page = [row for row in found if row.wallet < found[-1].wallet]
    return _Page(page, state._replace(done_wallet=page[-1].wallet))


def _value_again(
    state: MarkState, holders: Sequence[HeldToken], sums: Sums
) -> set[tuple[Address, AssetId]]:
    """Add the difference of two marks to the sums; return the wins whose category changes."""
    was, now = state.mark, state.following
    assert now is not None
    for row in holders:
        units = (
            gain_units(row.held, was.price, is_yes=row.is_yes),
            gain_units(row.held, now.price, is_yes=row.is_yes),
        )
        sums.move_gain(row.wallet, (was.category, now.category), units)
    if was.category == now.category:
        return set()
    return {(row.wallet, row.token_id) for row in holders if row.held.is_win}
