"""Going back to a block: one rule for everything that was read off the chain."""

from typing import Final

from foretell.store.database import Transaction
from foretell.store.index.history_tables import ALL_TWINS, restore_states
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
"""Tables whose rows are written once, by the block that they bear."""


async def unwind(tx: Transaction, block_number: int) -> None:
    """Leave every table as it was after this block."""
    for table in ONCE:
        await tx.execute(table.delete().where(table.c.block_number > block_number))
    for twins in ALL_TWINS:
        await restore_states(tx, twins, block_number)
