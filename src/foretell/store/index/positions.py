"""Positions of wallets in tokens: size, cost and realized gain; written by the indexer."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Position
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.history_tables import POSITIONS, record_states
from foretell.store.lookups import load_rows
from foretell.store.tables import positions


class PositionRow(NamedTuple):
    """A position since a block; `domain/portfolio/positions.py` defines the amounts."""

    wallet: Address
    token_id: AssetId
    condition_id: Bytes32
    size_units: int
    cost_units: int
    bought_units: int
    spent_units: int
    realized_units: int
    changed_at_s: int
    block_number: int

    @property
    def position(self) -> Position:
        """The amounts of the position."""
        return Position(
            self.size_units,
            self.cost_units,
            self.bought_units,
            self.spent_units,
            self.realized_units,
        )


async def record_positions(tx: Transaction, changes: Sequence[PositionRow]) -> None:
    """Store positions after blocks, in the order of the blocks."""
    await record_states(tx, POSITIONS, changes)


async def load_positions(
    tx: Transaction, keys: Iterable[tuple[Address, AssetId]]
) -> Sequence[PositionRow]:
    """Return the positions of these wallets in these tokens; missing ones are left out."""
    rows = await load_rows(tx, positions, positions.primary_key, keys)
    return [PositionRow._make(row) for row in rows]
