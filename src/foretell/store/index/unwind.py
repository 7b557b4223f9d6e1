"""Unwinding all indexed tables to a block; written by the indexer."""

from typing import Final

from foretell.store.database import Transaction
from foretell.store.index.blocks import count_unwind
from foretell.store.index.generations import load_kept, unwind_next
from foretell.store.index.history_tables import VERSIONED_TABLES, restore_states
from foretell.store.index.rankings.advance import unwind_rankings
from foretell.store.index.rankings.wins import refresh_wins
from foretell.store.index.supplies import load_tokens_changed, recount_supplies
from foretell.store.index.wallet_readings import unwind_readings
from foretell.store.tables import (
    activities,
    answers,
    blocks,
    canceled_orders,
    conditions,
    exchange_fills,
    odd_traded_markets,
    odd_traded_volumes,
    payouts,
    raised_nonces,
    traded_markets,
    traded_volumes,
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
    traded_markets,
    odd_traded_markets,
    traded_volumes,
    odd_traded_volumes,
)
"""Tables whose rows are written once, with their block."""


async def unwind(tx: Transaction, block_number: int) -> None:
    """Restore every table as it was after this block.

    The sums of the rankings subtract what the rows above it have added, so they come first: those that are read, and
    those that a rebuild computes beside them.
    """
    await count_unwind(tx)
    kept = (await load_kept(tx)).numbers
    unwound = {each: await unwind_rankings(tx, each, block_number) for each in kept}
    for table in ONCE:
        await tx.execute(table.delete().where(table.c.block_number > block_number))
    changed_tokens = await load_tokens_changed(tx, block_number)
    for versioned in VERSIONED_TABLES:
        await restore_states(tx, versioned, block_number)
    await recount_supplies(tx, changed_tokens)
    await unwind_readings(tx, block_number)
    await unwind_next(tx, block_number)
    for generation, holdings in unwound.items():
        await refresh_wins(tx, generation, holdings)
