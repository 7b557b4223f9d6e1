"""The history of one position: its figures after each block that changed it, and what the wallet did there."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import NO_POSITION, Position
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ACTIVITY, ActivityKind, ActivityRow, activity_row
from foretell.store.lookups import one_of, rows_with
from foretell.store.tables import conditions, position_changes, positions


class PositionAt(NamedTuple):
    """A position after a block."""

    block_number: int
    at_s: int
    condition_id: Bytes32
    position: Position


NEVER_HELD = PositionAt(-1, 0, Bytes32(""), NO_POSITION)
BLOCKS_PER_READ: Final = 100
"""Blocks whose activities are read by one statement, those of a usual page: so few blocks are read in vain at most."""


class ActsOfBlocks(NamedTuple):
    """The first blocks of a history, and what the wallet did in them, by block."""

    history: Sequence[PositionAt]
    acts: Mapping[int, Sequence[ActivityRow]]


_WALLET: Final = sa.bindparam("wallet", type_=sa.Text)
_TOKEN: Final = sa.bindparam("token", type_=sa.Text)
_CONDITION: Final = sa.bindparam("condition", type_=sa.Text)
_BLOCK: Final = sa.bindparam("block", type_=sa.BigInteger)
_NOW: Final = sa.select(positions).where(
    positions.c.wallet == _WALLET, positions.c.token_id == _TOKEN
)
_CHANGES: Final = sa.select(position_changes).where(
    position_changes.c.wallet == _WALLET, position_changes.c.token_id == _TOKEN
)
_BEFORE: Final = (
    _CHANGES.where(position_changes.c.block_number <= _BLOCK)
    .order_by(position_changes.c.block_number.desc())
    .limit(1)
)
_AFTER: Final = (
    _CHANGES.where(position_changes.c.block_number > _BLOCK)
    .order_by(position_changes.c.block_number)
    .limit(sa.bindparam("rows", type_=sa.BigInteger))
)
_ACTIVITY: Final = sa.table("activities", *(sa.column(each.name, each.type) for each in ACTIVITY))
_AT_TIMES: Final = (_ACTIVITY.c.wallet, _ACTIVITY.c.timestamp_s)
_BLOCKS: Final = "blocks"
_EVENT_CHARACTERS: Final = 64
"""Characters of a question id that its event's questions share: `0x` and 31 bytes (`market_of_question`)."""


def _event_of(condition_id: sa.ColumnElement[str]) -> sa.ScalarSelect[str]:
    """Return a condition's oracle and its question id without the last byte, which together name its event.

    It is one value, so that PostgreSQL looks it up by the id for each row. For a join or an EXISTS it may hash all conditions.
    """
    held = conditions.alias()
    event = held.c.oracle + sa.func.substr(held.c.question_id, 1, _EVENT_CHARACTERS)
    return sa.select(event).where(held.c.condition_id == condition_id).scalar_subquery()


@cache
def _acts_in(dialect: str) -> sa.Select[Any]:
    """Return the query for what a wallet did with a token or its condition in some blocks, first for each time apart.

    As one condition, a plan for any wallet would have PostgreSQL walk all of it: most wallets have few activities.
    The limit counts only what changes the position.
    """
    at_times, _ = rows_with(dialect, _ACTIVITY, _AT_TIMES, [])
    act = at_times.subquery("acts").c
    in_event = sa.and_(
        act.kind == ActivityKind.CONVERSION.value,
        _event_of(act.condition_id) == _event_of(_CONDITION),
    )
    of_condition = sa.or_(act.condition_id == _CONDITION, in_event)
    return (
        sa.select(*act)
        .where(one_of(act.block_number, _BLOCKS))
        .where(sa.or_(act.token_id == _TOKEN, sa.and_(act.token_id.is_(None), of_condition)))
        .order_by(act.block_number, act.log_index)
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
    )


async def load_position_now(tx: Transaction, wallet: Address, token: AssetId) -> PositionAt:
    """Return a position as it is now; one that never was has nothing."""
    rows = await tx.all(_NOW, {"wallet": wallet, "token": token})
    return _at(rows[0]) if rows else NEVER_HELD


async def load_position_history(
    tx: Transaction, wallet: Address, token: AssetId, after_block: int, limit: int
) -> tuple[PositionAt, Sequence[PositionAt]]:
    """Return a position as it was after a block, and after each of the next blocks that changed it."""
    place = {"wallet": wallet, "token": token, "block": after_block}
    is_later = after_block > NEVER_HELD.block_number
    before = await tx.all(_BEFORE, place) if is_later else []
    rows = await tx.all(_AFTER, {**place, "rows": limit})
    return _at(before[0]) if before else NEVER_HELD, [_at(row) for row in rows]


async def load_acts_at(
    tx: Transaction,
    wallet: Address,
    token: AssetId,
    history: Sequence[PositionAt],
    acts_max: int,
) -> ActsOfBlocks:
    """Return what the wallet did with a token or its condition in the blocks of a history, conversions in its event too.

    A conversion is listed under one condition of an event, and changes positions in the others. The blocks end before
    the one with which the activities would be more than `acts_max`; the first block has that many then.
    """
    acts: list[ActivityRow] = []
    for start in range(0, len(history), BLOCKS_PER_READ):
        part = history[start : start + BLOCKS_PER_READ]
        acts += await _load_acts(tx, wallet, token, part, acts_max + 1 - len(acts))
        if len(acts) > acts_max:
            cut = acts.pop()
            whole = [each for each in history if each.block_number < cut.block_number]
            history = whole or history[:1]
            break
    by_block: dict[int, list[ActivityRow]] = {each.block_number: [] for each in history}
    for act in acts:
        if act.block_number in by_block:
            by_block[act.block_number].append(act)
    return ActsOfBlocks(history, by_block)


async def _load_acts(
    tx: Transaction, wallet: Address, token: AssetId, history: Sequence[PositionAt], most: int
) -> Sequence[ActivityRow]:
    places = sorted({(wallet, each.at_s) for each in history})
    _, keys = rows_with(tx.dialect, _ACTIVITY, _AT_TIMES, places)
    asked = {
        "token": token,
        "condition": history[0].condition_id,
        _BLOCKS: [each.block_number for each in history],
        "rows": most,
    }
    return [activity_row(row) for row in await tx.all(_acts_in(tx.dialect), {**keys, **asked})]


def _at(row: Any) -> PositionAt:
    figures = (row.size_units, row.cost_units, row.bought_units, row.spent_units)
    position = Position(*figures, row.realized_units)
    return PositionAt(row.block_number, row.changed_at_s, Bytes32(row.condition_id), position)
