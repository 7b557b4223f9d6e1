"""The number of trades and markets of a wallet, and its volume, as of the last indexed block.

Written by the indexer.
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.history_tables import TRADING_TOTALS, record_states
from foretell.store.lookups import load_rows
from foretell.store.many_rows import insert_many
from foretell.store.tables import traded_markets, trading_total_changes, trading_totals

_FIRST_TRADES: Final = sa.text("""
    INSERT INTO traded_markets (block_number, log_index, part, wallet, condition_id)
    SELECT block_number, log_index, part, wallet, condition_id FROM (
        SELECT block_number, log_index, part, wallet, condition_id, row_number() OVER (
            PARTITION BY wallet, condition_id ORDER BY block_number, log_index, part
        ) AS place FROM activities WHERE kind = 'TRADE'
    ) AS placed WHERE place = 1
""")
_HISTORY: Final = sa.text("""
    INSERT INTO trading_total_changes (wallet, trades, markets, volume_units, block_number)
    SELECT wallet, trades, markets,
        CASE WHEN high + (low >> 32) >= 2147483648 THEN 9223372036854775807
        ELSE (high + (low >> 32)) * 4294967296 + (low & 4294967295) END,
        block_number
    FROM (
        SELECT wallet, block_number,
            CAST(sum(trades) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS trades,
            CAST(sum(markets) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS markets,
            CAST(sum(high) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS high,
            CAST(sum(low) OVER (PARTITION BY wallet ORDER BY block_number) AS BIGINT) AS low
        FROM (
            SELECT a.wallet, a.block_number, count(*) AS trades, count(first.wallet) AS markets,
                sum(a.cost_units >> 32) AS high, sum(a.cost_units & 4294967295) AS low
            FROM activities AS a LEFT JOIN traded_markets AS first
                ON first.block_number = a.block_number AND first.log_index = a.log_index
                AND first.part = a.part
            WHERE a.kind = 'TRADE' GROUP BY a.wallet, a.block_number
        ) AS by_block
    ) AS summed
""")
"""A volume is at most what a column holds, as the indexer's; SQLite has no wider sums, so halves are added up."""
_TOTALS: Final = sa.text("""
    INSERT INTO trading_totals (wallet, trades, markets, volume_units, block_number)
    SELECT wallet, trades, markets, volume_units, block_number FROM (
        SELECT wallet, trades, markets, volume_units, block_number, row_number() OVER (
            PARTITION BY wallet ORDER BY block_number DESC
        ) AS place FROM trading_total_changes
    ) AS placed WHERE place = 1
""")


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
    await record_states(tx, TRADING_TOTALS, changes)


async def record_traded_markets(tx: Transaction, first: Sequence[TradedMarket]) -> None:
    """Store first trades."""
    await insert_many(tx, traded_markets, first)


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


async def rebuild_trading_totals(tx: Transaction) -> None:
    """Compute first trades, totals and their history from all trades again."""
    for table in (traded_markets, trading_total_changes, trading_totals):
        await tx.execute(table.delete())
    for statement in (_FIRST_TRADES, _HISTORY, _TOTALS):
        await tx.execute(statement)
