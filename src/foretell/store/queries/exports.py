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
    """Return the next trades of a wallet with their fees, by time, block and place in it.

    The trades are chosen before their fills are looked up: each has one, of the same place. PostgreSQL's planner does
    not know that, takes the joined rows for very few, and would look up the fills of all trades of the wallet first.
    """
    act = activities.c
    chosen = (
        sa.select(activities)
        .where(
            act.wallet == wallet,
            act.timestamp_s >= after[0],
            sa.tuple_(*_trade_key(act)) > sa.tuple_(*map(sa.literal, after)),
            act.kind == ActivityKind.TRADE.value,
        )
        .order_by(*_trade_key(act))
        .limit(limit)
        .subquery("chosen")
    )
    fill = exchange_fills.c
    of_chosen = sa.and_(
        fill.block_number == chosen.c.block_number,
        fill.log_index == chosen.c.log_index,
        fill.part == chosen.c.part,
    )
    return await tx.all(
        sa.select(chosen, fill.fee_units, fill.order_id)
        .join(exchange_fills, of_chosen)
        .order_by(*_trade_key(chosen.c))
    )


def _trade_key(act: Any) -> tuple[sa.ColumnElement[int], ...]:
    return act.timestamp_s, act.block_number, act.log_index


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
