"""All rows of the index at one instant, for the comparison with the chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.store.database import Transaction
from foretell.store.tables import (
    activities,
    allowances,
    balances,
    blocks,
    canceled_orders,
    conditions,
    exchange_fills,
    locked_collateral,
    payouts,
    positions,
    raised_nonces,
    ranking_cursors,
    ranking_marks,
    standings,
    traded_markets,
    trading_totals,
    wallet_readings,
    wins,
)

_TABLES: Final = (
    activities,
    allowances,
    balances,
    canceled_orders,
    conditions,
    exchange_fills,
    locked_collateral,
    payouts,
    positions,
    raised_nonces,
    ranking_cursors,
    ranking_marks,
    standings,
    traded_markets,
    trading_totals,
    wallet_readings,
    wins,
)


class IndexedBlock(NamedTuple):
    """The block that the tables are of."""

    block_number: int
    block_hash: str


@dataclass(frozen=True, slots=True)
class IndexTables:
    """The rows of each table by its name, all of one block."""

    last: IndexedBlock | None
    rows: Mapping[str, Sequence[sa.Row[Any]]]


async def load_index_tables(tx: Transaction) -> IndexTables:
    """Return everything that the index keeps of the chain, without its history."""
    newest = await tx.first(
        sa.select(blocks.c.block_number, blocks.c.block_hash)
        .order_by(blocks.c.block_number.desc())
        .limit(1)
    )
    last = None if newest is None else IndexedBlock(newest.block_number, newest.block_hash)
    rows = {table.name: await tx.all(sa.select(table)) for table in _TABLES}
    return IndexTables(last, rows)
