"""Unwinding all indexed tables to a block; written by the indexer."""

from typing import Final

from foretell.store.database import Transaction
from foretell.store.index.history_tables import VERSIONED_TABLES, restore_states
from foretell.store.tables import (
    activities,
    answers,
    blocks,
    canceled_orders,
    conditions,
    exchange_fills,
    payouts,
    raised_nonces,
)

ONCE: Final = (
    blocks,
    conditions,
    payouts,
    exchange_fills,
    canceled_orders,
    raised_nonces,
    answers,
    activities,
)
"""Tables whose rows are written once, with their block."""


async def unwind(tx: Transaction, block_number: int) -> None:
    """Restore every table as it was after this block."""
    for table in ONCE:
        await tx.execute(table.delete().where(table.c.block_number > block_number))
    for versioned in VERSIONED_TABLES:
        await restore_states(tx, versioned, block_number)
