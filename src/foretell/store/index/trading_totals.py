"""The number of trades and markets of a wallet, and its volume, as of the last indexed block.

Written by the indexer.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.history_tables import TRADING_TOTALS, record_states
from foretell.store.lookups import load_rows
from foretell.store.tables import traded_markets, trading_totals


class TradingTotals(NamedTuple):
    """The trades of a wallet since a block, as maker and as taker, added up."""

    wallet: Address
    trades: int
    markets: int
    volume_units: int
    block_number: int


class TradedMarket(NamedTuple):
    """The first trade of a wallet in a condition."""

    block_number: int
    log_index: int
    part: int
    wallet: Address
    condition_id: Bytes32


async def record_trading_totals(tx: Transaction, changes: Sequence[TradingTotals]) -> None:
    """Store totals after blocks, in the order of the blocks."""
    await record_states(tx, TRADING_TOTALS, [change._asdict() for change in changes])


async def record_traded_markets(tx: Transaction, first: Sequence[TradedMarket]) -> None:
    """Store first trades."""
    if first:
        await tx.execute(traded_markets.insert(), [each._asdict() for each in first])


async def load_trading_totals(
    tx: Transaction, wallets: Iterable[Address]
) -> Sequence[TradingTotals]:
    """Return the totals of these wallets; one that never traded is left out."""
    keys = [(wallet,) for wallet in wallets]
    rows = await load_rows(tx, trading_totals, trading_totals.primary_key, keys)
    return [TradingTotals._make(row) for row in rows]


async def load_traded_markets(
    tx: Transaction, keys: Iterable[tuple[Address, Bytes32]]
) -> set[tuple[Address, Bytes32]]:
    """Return those of these wallets and conditions that have traded."""
    columns: list[sa.Column[str]] = [traded_markets.c.wallet, traded_markets.c.condition_id]
    rows = await load_rows(tx, traded_markets, columns, keys)
    return {(Address(row.wallet), Bytes32(row.condition_id)) for row in rows}
