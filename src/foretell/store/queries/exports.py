"""Rows of a wallet in the order of a key, part by part, for exports that can be resumed after any row.

The statements are built once: building one for each part would take longer than the database, and leave cycles of
objects whose search stops the process for a while.
"""

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

_WALLET: Final = sa.bindparam("wallet", type_=sa.Text)
_ROWS: Final = sa.bindparam("rows", type_=sa.BigInteger)


def _key_of(table: Any) -> tuple[sa.ColumnElement[int], ...]:
    return table.timestamp_s, table.block_number, table.log_index


def _after(*columns: sa.ColumnElement[Any]) -> tuple[sa.BindParameter[Any], ...]:
    """Return the parameters of the last key, named by their places in it."""
    return tuple(
        sa.bindparam(f"after_{place}", type_=column.type) for place, column in enumerate(columns)
    )


def _trades_after() -> sa.Select[Any]:
    """Return the query for the next trades of a wallet with their fees.

    The trades are chosen before their fills are looked up: each has one, of the same place. PostgreSQL's planner does
    not know that, takes the joined rows for very few, and would look up the fills of all trades of the wallet first.
    """
    act = activities.c
    key = _key_of(act)
    after = _after(*key)
    chosen = (
        sa.select(activities)
        .where(
            act.wallet == _WALLET,
            act.timestamp_s >= after[0],
            sa.tuple_(*key) > sa.tuple_(*after),
            act.kind == ActivityKind.TRADE.value,
        )
        .order_by(*key)
        .limit(_ROWS)
        .subquery("chosen")
    )
    fill = exchange_fills.c
    of_chosen = sa.and_(
        fill.block_number == chosen.c.block_number,
        fill.log_index == chosen.c.log_index,
        fill.part == chosen.c.part,
    )
    return (
        sa.select(chosen, fill.fee_units, fill.order_id)
        .join(exchange_fills, of_chosen)
        .order_by(*_key_of(chosen.c))
    )


def _positions_after() -> sa.Select[Any]:
    held = positions.c
    [after] = _after(held.token_id)
    return (
        sa.select(positions)
        .where(held.wallet == _WALLET, held.token_id > after)
        .order_by(held.token_id)
        .limit(_ROWS)
    )


def _changes_after() -> sa.Select[Any]:
    """Return the query for the next changes of a wallet's positions, each with what was before."""
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
    key = now.c.token_id, now.c.block_number
    after = _after(*key)
    return (
        sa.select(now, *was)
        .select_from(now.outerjoin(before, is_before))
        .where(
            now.c.wallet == _WALLET,
            now.c.token_id >= after[0],
            sa.tuple_(*key) > sa.tuple_(*after),
        )
        .order_by(*key)
        .limit(_ROWS)
    )


_TRADES_AFTER: Final = _trades_after()
_POSITIONS_AFTER: Final = _positions_after()
_CHANGES_AFTER: Final = _changes_after()


async def load_trades_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next trades of a wallet with their fees, by time, block and place in it."""
    return await tx.all(_TRADES_AFTER, _values(wallet, after, limit))


async def load_positions_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next positions of a wallet, open and closed, by token."""
    return await tx.all(_POSITIONS_AFTER, _values(wallet, after, limit))


async def load_changes_after(
    tx: Transaction, wallet: Address, after: tuple[Any, ...], limit: int
) -> Sequence[sa.Row[Any]]:
    """Return the next changes of a wallet's positions, by token and block, each with what was before."""
    return await tx.all(_CHANGES_AFTER, _values(wallet, after, limit))


def _values(wallet: Address, after: tuple[Any, ...], limit: int) -> dict[str, Any]:
    last = {f"after_{place}": each for place, each in enumerate(after)}
    return {"wallet": wallet, "rows": limit, **last}
