"""Tables of current values, each with a table of its history.

Both have the same columns. The history has one row for each block that changed a value, as it was after
that block; the current table repeats the newest row of each key. So going back to a block is deleting
the history above it and repeating the newest rows again. Written by the indexer.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.many_rows import insert_many, upsert_many
from foretell.store.tables import (
    allowance_changes,
    allowances,
    balance_changes,
    balances,
    locked_collateral,
    locked_collateral_changes,
    odd_trading_total_changes,
    odd_trading_totals,
    position_changes,
    positions,
    released_collateral,
    released_collateral_changes,
    trading_total_changes,
    trading_totals,
)


class VersionedTable(NamedTuple):
    """A table of current values, and the table of its history."""

    current: sa.Table
    history: sa.Table


BALANCES: Final = VersionedTable(balances, balance_changes)
ALLOWANCES: Final = VersionedTable(allowances, allowance_changes)
POSITIONS: Final = VersionedTable(positions, position_changes)
LOCKED_COLLATERAL: Final = VersionedTable(locked_collateral, locked_collateral_changes)
RELEASED_COLLATERAL: Final = VersionedTable(released_collateral, released_collateral_changes)
TRADING_TOTALS: Final = VersionedTable(trading_totals, trading_total_changes)
ODD_TRADING_TOTALS: Final = VersionedTable(odd_trading_totals, odd_trading_total_changes)
VERSIONED_TABLES: Final = (
    BALANCES,
    ALLOWANCES,
    POSITIONS,
    LOCKED_COLLATERAL,
    RELEASED_COLLATERAL,
    TRADING_TOTALS,
    ODD_TRADING_TOTALS,
)


async def record_states(
    tx: Transaction, table: VersionedTable, rows: Sequence[tuple[Any, ...]]
) -> None:
    """Store values after blocks, in the order of the blocks; the last of each key is current.

    A row has a value for each column, in the table's order, and begins with its key. Rows are written in the
    order of their keys: those of one page of an index follow each other, so each page is read and changed once.
    """
    if not rows:
        return
    keys = len(table.current.primary_key.columns)
    ordered = sorted(rows, key=lambda row: row[:keys])
    await insert_many(tx, table.history, ordered)
    current = {row[:keys]: row for row in ordered}
    await upsert_many(tx, table.current, list(current.values()))


async def restore_states(tx: Transaction, table: VersionedTable, block_number: int) -> None:
    """Restore the values as they were after this block."""
    current, history = table
    await tx.execute(history.delete().where(history.c.block_number > block_number))
    newest = history.alias()
    touched = [newest.c[column.name] == column for column in current.primary_key]
    latest = sa.select(sa.func.max(newest.c.block_number)).where(*touched).scalar_subquery()
    kept = [history.c[column.name] == column for column in current.primary_key]
    rows = await tx.all(
        sa.select(history)
        .join(current, sa.and_(*kept))
        .where(current.c.block_number > block_number, history.c.block_number == latest)
    )
    await tx.execute(current.delete().where(current.c.block_number > block_number))
    if rows:
        names = [column.name for column in history.columns]
        await tx.execute(current.insert(), [dict(zip(names, row, strict=True)) for row in rows])
