"""The history of one position: its figures after each block that changed it, and what the wallet did there."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from foretell.domain.contracts.neg_risk import market_of_question
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import NO_POSITION, Position
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind, ActivityRow, activity_row
from foretell.store.index.conditions import load_conditions
from foretell.store.tables import activities, position_changes, positions


class PositionAt(NamedTuple):
    """A position after a block."""

    block_number: int
    at_s: int
    condition_id: Bytes32
    position: Position


NEVER_HELD = PositionAt(-1, 0, Bytes32(""), NO_POSITION)


async def load_position_now(tx: Transaction, wallet: Address, token: AssetId) -> PositionAt:
    """Return a position as it is now; one that never was has nothing."""
    held = positions.c
    row = await tx.first(sa.select(positions).where(held.wallet == wallet, held.token_id == token))
    return NEVER_HELD if row is None else _at(row)


async def load_position_history(
    tx: Transaction, wallet: Address, token: AssetId, after_block: int, limit: int
) -> tuple[PositionAt, Sequence[PositionAt]]:
    """Return a position as it was after a block, and after each of the next blocks that changed it."""
    changed = position_changes.c
    of_position = changed.wallet == wallet, changed.token_id == token
    before = await tx.first(
        sa.select(position_changes)
        .where(*of_position, changed.block_number <= after_block)
        .order_by(changed.block_number.desc())
        .limit(1)
    )
    rows = await tx.all(
        sa.select(position_changes)
        .where(*of_position, changed.block_number > after_block)
        .order_by(changed.block_number)
        .limit(limit)
    )
    return NEVER_HELD if before is None else _at(before), [_at(row) for row in rows]


async def load_acts_at(
    tx: Transaction, wallet: Address, token: AssetId, history: Sequence[PositionAt]
) -> Sequence[ActivityRow]:
    """Return what the wallet did with a token or its condition in the blocks of a history, conversions in its event too.

    A conversion is listed under one condition of an event, and changes positions in the others.
    """
    act, blocks = activities.c, {each.block_number for each in history}
    rows = await tx.all(
        sa.select(activities)
        .where(
            act.wallet == wallet,
            act.timestamp_s.in_(sorted({each.at_s for each in history})),
            sa.or_(act.token_id == token, act.token_id.is_(None)),
        )
        .order_by(act.block_number, act.log_index)
    )
    acts = [activity_row(row) for row in rows if row.block_number in blocks]
    own = {each.condition_id for each in history}
    others = {each.condition_id for each in acts if each.kind is ActivityKind.CONVERSION} - own
    if others:
        own |= await _of_same_event(tx, own, others)
    return [each for each in acts if each.condition_id in own]


async def _of_same_event(tx: Transaction, own: set[Bytes32], others: set[Bytes32]) -> set[Bytes32]:
    """Return the other conditions whose questions are of the event of one's own."""
    event_by_condition = {
        each.condition_id: (each.oracle, market_of_question(each.question_id))
        for each in await load_conditions(tx, own | others)
    }
    events = {event_by_condition[each] for each in own & event_by_condition.keys()}
    return {each for each in others if event_by_condition.get(each) in events}


def _at(row: Any) -> PositionAt:
    figures = (row.size_units, row.cost_units, row.bought_units, row.spent_units)
    position = Position(*figures, row.realized_units)
    return PositionAt(row.block_number, row.changed_at_s, Bytes32(row.condition_id), position)
