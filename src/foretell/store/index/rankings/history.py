"""Changes between two blocks, and holdings at one: positions, trades and payouts."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.gains import NOTHING, Held
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.index.blocks import BEFORE_ALL_BLOCKS
from foretell.store.tables import (
    activities,
    conditions,
    payouts,
    position_changes,
    positions,
)

ACTIVITIES_PER_TRADE_MAX: Final = 10
"""Activities of all kinds that a step passes over, for each trade that it may have."""


class BlockRange(NamedTuple):
    """The blocks after one, up to another."""

    after: int
    last: int


class HeldChange(NamedTuple):
    """A position after a block, and before it."""

    block_number: int
    at_s: int
    wallet: Address
    token_id: AssetId
    condition_id: Bytes32
    is_yes: bool
    before: Held
    after: Held


class WalletTrade(NamedTuple):
    """A trade of a wallet."""

    block_number: int
    at_s: int
    wallet: Address
    condition_id: Bytes32
    cost_units: int


class ReportedCondition(NamedTuple):
    """The payout of a condition was reported."""

    block_number: int
    at_s: int
    condition_id: Bytes32


class HeldToken(NamedTuple):
    """A position at a block."""

    wallet: Address
    token_id: AssetId
    is_yes: bool
    held: Held


async def load_last_change(tx: Transaction) -> int:
    """Return the newest block with a position, a trade or a payout."""
    newest = [
        await tx.scalar(sa.select(sa.func.max(table.c.block_number)))
        for table in (position_changes, activities, payouts)
    ]
    return max(BEFORE_ALL_BLOCKS if each is None else int(each) for each in newest)


async def load_first_blocks(tx: Transaction, blocks: BlockRange, trades_max: int) -> BlockRange:
    """Return the first of these blocks in which a step of so many trades passes over few activities, or one of them.

    It reads keys alone. Splits and merges are no trades, so without this bound a step would pass over all of them.
    """
    act = activities.c
    beyond = await tx.scalar(
        sa.select(act.block_number)
        .where(act.block_number > blocks.after, act.block_number <= blocks.last)
        .order_by(act.block_number, act.log_index, act.part)
        .offset(trades_max * ACTIVITIES_PER_TRADE_MAX)
        .limit(1)
    )
    return blocks if beyond is None else blocks._replace(last=max(beyond - 1, blocks.after + 1))


async def load_held_changes(
    tx: Transaction, blocks: BlockRange, limit: int | None = None
) -> Sequence[HeldChange]:
    """Return the changes of positions, by block."""
    changed, before = position_changes, position_changes.alias("before")
    query = (
        sa.select(
            changed,
            (changed.c.token_id == conditions.c.token_yes).label("is_yes"),
            before.c.size_units.label("size_before"),
            before.c.cost_units.label("cost_before"),
            before.c.realized_units.label("realized_before"),
        )
        .select_from(
            changed.join(conditions, conditions.c.condition_id == changed.c.condition_id).outerjoin(
                before, _is_newest(before, changed, changed.c.block_number - 1)
            )
        )
        .where(changed.c.block_number > blocks.after, changed.c.block_number <= blocks.last)
        .order_by(changed.c.block_number)
        .limit(limit)
    )
    return [_change(row) for row in await tx.all(query)]


async def load_trades(
    tx: Transaction, blocks: BlockRange, limit: int | None = None
) -> Sequence[WalletTrade]:
    """Return the trades of wallets, by block."""
    act = activities.c
    rows = await tx.all(
        sa.select(act.block_number, act.timestamp_s, act.wallet, act.condition_id, act.cost_units)
        .where(
            act.block_number > blocks.after,
            act.block_number <= blocks.last,
            act.kind == ActivityKind.TRADE.value,
        )
        .order_by(act.block_number)
        .limit(limit)
    )
    return [WalletTrade._make(row) for row in rows]


async def load_resolutions(
    tx: Transaction, blocks: BlockRange, limit: int | None = None
) -> Sequence[ReportedCondition]:
    """Return the payouts, by block."""
    rows = await tx.all(
        sa.select(payouts.c.block_number, payouts.c.timestamp_s, payouts.c.condition_id)
        .where(payouts.c.block_number > blocks.after, payouts.c.block_number <= blocks.last)
        .order_by(payouts.c.block_number)
        .limit(limit)
    )
    return [ReportedCondition._make(row) for row in rows]


async def load_resolutions_after(tx: Transaction, block_number: int) -> set[Bytes32]:
    """Return the conditions with a payout above a block, however far the sums have come."""
    rows = await tx.all(
        sa.select(payouts.c.condition_id).where(payouts.c.block_number > block_number)
    )
    return {Bytes32(row.condition_id) for row in rows}


async def load_holders_at(
    tx: Transaction, condition_id: Bytes32, block_number: int, after_wallet: str, limit: int
) -> Sequence[HeldToken]:
    """Return the positions in a condition as they were after a block, by wallet.

    Positions that begin later have nothing.
    """
    is_wanted = (positions.c.condition_id == condition_id, positions.c.wallet > after_wallet)
    query = _held_at(block_number).where(*is_wanted).order_by(positions.c.wallet)
    return [_held_token(row) for row in await tx.all(query.limit(limit))]


async def load_all_holders_at(
    tx: Transaction, condition_ids: Collection[Bytes32], block_number: int, limit: int
) -> Mapping[Bytes32, Sequence[HeldToken]]:
    """Return the positions in several conditions after a block, of each condition all or none.

    At most `limit` positions are returned. A condition without a position is there only if all are.
    """
    rows = await tx.all(
        _held_at(block_number)
        .where(positions.c.condition_id.in_(sorted(condition_ids)))
        .order_by(positions.c.condition_id, positions.c.wallet)
        .limit(limit + 1)
    )
    found: dict[Bytes32, list[HeldToken]] = {}
    if len(rows) <= limit:
        found = {condition_id: [] for condition_id in condition_ids}
    for row in rows:
        found.setdefault(Bytes32(row.condition_id), []).append(_held_token(row))
    if len(rows) > limit:
        del found[Bytes32(rows[-1].condition_id)]
    return found


def _held_at(block_number: int) -> sa.Select[Any]:
    then = position_changes.alias("at_block")
    return sa.select(
        positions.c.wallet,
        positions.c.token_id,
        (positions.c.token_id == conditions.c.token_yes).label("is_yes"),
        then.c.size_units,
        then.c.cost_units,
        then.c.realized_units,
        positions.c.condition_id,
    ).select_from(
        positions.join(conditions, conditions.c.condition_id == positions.c.condition_id).outerjoin(
            then, _is_newest(then, positions, sa.literal(block_number))
        )
    )


def _held_token(row: Any) -> HeldToken:
    return HeldToken(
        Address(row.wallet),
        AssetId(row.token_id),
        bool(row.is_yes),
        NOTHING
        if row.size_units is None
        else Held(row.size_units, row.cost_units, row.realized_units),
    )


async def load_volumes_at(
    tx: Transaction, condition_id: Bytes32, block_number: int
) -> Sequence[tuple[Address, int]]:
    """Return the collateral that each wallet had traded in a condition after a block."""
    act = activities.c
    rows = await tx.all(
        sa.select(act.wallet, act.cost_units).where(
            act.condition_id == condition_id,
            act.block_number <= block_number,
            act.kind == ActivityKind.TRADE.value,
        )
    )
    return [(Address(row.wallet), row.cost_units) for row in rows]


def _is_newest(
    table: sa.FromClause, of: sa.FromClause, block_number: sa.ColumnElement[Any]
) -> sa.ColumnElement[bool]:
    """Return the condition that a row is the newest of a position up to a block."""
    older = position_changes.alias()
    newest = (
        sa.select(sa.func.max(older.c.block_number))
        .where(
            older.c.wallet == of.c.wallet,
            older.c.token_id == of.c.token_id,
            older.c.block_number <= block_number,
        )
        .correlate(of)
        .scalar_subquery()
    )
    return sa.and_(
        table.c.wallet == of.c.wallet,
        table.c.token_id == of.c.token_id,
        table.c.block_number == newest,
    )


def _change(row: Any) -> HeldChange:
    before = NOTHING
    if row.size_before is not None:
        before = Held(row.size_before, row.cost_before, row.realized_before)
    return HeldChange(
        block_number=row.block_number,
        at_s=row.changed_at_s,
        wallet=Address(row.wallet),
        token_id=AssetId(row.token_id),
        condition_id=Bytes32(row.condition_id),
        is_yes=bool(row.is_yes),
        before=before,
        after=Held(row.size_units, row.cost_units, row.realized_units),
    )
