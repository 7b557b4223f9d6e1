"""Rows of a wallet in the order of a key, part by part, for exports that can be resumed after any row."""

from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.tables import activities, exchange_fills, position_changes, positions

TRADES_BEGIN: Final = (-1, -1, -1)
POSITIONS_BEGIN: Final = ("",)
LEDGER_BEGIN: Final = ("", -1)


async def load_trades_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next trades of a wallet with their fees, by time, block and place in it."""
    act, fill = activities.c, exchange_fills.c
    key = sa.tuple_(act.timestamp_s, act.block_number, act.log_index)
    of_act = sa.and_(
        fill.block_number == act.block_number,
        fill.log_index == act.log_index,
        fill.part == act.part,
    )
    return await tx.all(
        sa.select(activities, fill.fee_units, fill.order_id)
        .join(exchange_fills, of_act)
        .where(
            act.wallet == wallet,
            act.timestamp_s >= after[0],
            key > sa.tuple_(*map(sa.literal, after)),
            act.kind == ActivityKind.TRADE.value,
        )
        .order_by(act.timestamp_s, act.block_number, act.log_index)
        .limit(limit)
    )


async def load_positions_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next positions of a wallet, open and closed, by token."""
    held = positions.c
    return await tx.all(
        sa.select(positions)
        .where(held.wallet == wallet, held.token_id > after[0])
        .order_by(held.token_id)
        .limit(limit)
    )


async def load_changes_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next changes of a wallet's positions, by token and block, each with what was before."""
    now, before, older = (
        position_changes,
        position_changes.alias("before"),
        position_changes.alias(),
    )
    newest = (
        sa.select(sa.func.max(older.c.block_number))
        .where(
            older.c.wallet == now.c.wallet,
            older.c.token_id == now.c.token_id,
            older.c.block_number < now.c.block_number,
        )
        .correlate(now)
        .scalar_subquery()
    )
    is_before = sa.and_(
        before.c.wallet == now.c.wallet,
        before.c.token_id == now.c.token_id,
        before.c.block_number == newest,
    )
    was = [
        sa.func.coalesce(before.c[name], 0).label(f"{name}_before")
        for name in ("size_units", "cost_units", "bought_units", "spent_units", "realized_units")
    ]
    return await tx.all(
        sa.select(now, *was)
        .select_from(now.outerjoin(before, is_before))
        .where(
            now.c.wallet == wallet,
            now.c.token_id >= after[0],
            sa.tuple_(now.c.token_id, now.c.block_number) > sa.tuple_(*map(sa.literal, after)),
        )
        .order_by(now.c.token_id, now.c.block_number)
        .limit(limit)
    )
