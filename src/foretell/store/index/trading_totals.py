"""The number of trades and markets of a wallet, and its volumes, as of the last indexed block.

Totals of an even generation of sums and of an odd one are in tables of their own, so that a rebuild writes others than
those that are read. Without a generation, functions take the live one. Written by the indexer.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activities import ActivityKind
from foretell.store.index.generations import load_live
from foretell.store.index.history_tables import (
    ODD_TRADING_TOTALS,
    TRADING_TOTALS,
    VersionedTable,
    record_states,
)
from foretell.store.index.rankings.history import BlockRange, load_first_blocks
from foretell.store.index.traded_volumes import (
    RunningVolume,
    VolumeChange,
    VolumeKey,
    load_volumes,
    record_volumes,
)
from foretell.store.lookups import load_rows
from foretell.store.many_rows import insert_many
from foretell.store.tables import (
    activities,
    odd_traded_markets,
    odd_traded_volumes,
    traded_markets,
    traded_volumes,
)


class TradingTables(NamedTuple):
    """The tables of first trades, of totals with their history, and of volumes by exchange."""

    markets: sa.Table
    totals: VersionedTable
    volumes: sa.Table

    @property
    def all(self) -> tuple[sa.Table, ...]:
        """Each of the tables."""
        return self.markets, *self.totals, self.volumes


EVEN: Final = TradingTables(traded_markets, TRADING_TOTALS, traded_volumes)
ODD: Final = TradingTables(odd_traded_markets, ODD_TRADING_TOTALS, odd_traded_volumes)


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


class PlacedTrade(NamedTuple):
    """A trade of a wallet, and its place on the chain."""

    block_number: int
    log_index: int
    part: int
    wallet: Address
    condition_id: Bytes32
    cost_units: int
    timestamp_s: int

    @property
    def as_first(self) -> TradedMarket:
        """The trade as the first of its wallet in the condition."""
        return TradedMarket._make(self[: len(TradedMarket._fields)])


def tables_of(generation: int) -> TradingTables:
    """Return the tables of a generation."""
    return ODD if generation % 2 else EVEN


async def record_trading_totals(
    tx: Transaction, changes: Sequence[TradingTotals], generation: int | None = None
) -> None:
    """Store totals after blocks, in the order of the blocks."""
    if changes:
        await record_states(tx, (await _tables(tx, generation)).totals, changes)


async def record_traded_markets(
    tx: Transaction, first: Sequence[TradedMarket], generation: int | None = None
) -> None:
    """Store first trades."""
    if first:
        await insert_many(tx, (await _tables(tx, generation)).markets, first)


async def load_trading_totals(
    tx: Transaction, wallets: Iterable[Address], generation: int | None = None
) -> Sequence[TradingTotals]:
    """Return the totals of these wallets; one that never traded is left out."""
    keys = [(wallet,) for wallet in wallets]
    if not keys:
        return []
    table = (await _tables(tx, generation)).totals.current
    rows = await load_rows(tx, table, table.primary_key, keys)
    return [TradingTotals._make(row) for row in rows]


async def load_traded_markets(
    tx: Transaction, keys: Iterable[tuple[Address, Bytes32]], generation: int | None = None
) -> set[tuple[Address, Bytes32]]:
    """Return those of these wallets and conditions that have traded."""
    wanted = list(keys)
    if not wanted:
        return set()
    table = (await _tables(tx, generation)).markets
    rows = await load_rows(tx, table, (table.c.wallet, table.c.condition_id), wanted)
    return {(Address(row.wallet), Bytes32(row.condition_id)) for row in rows}


async def record_traded_volumes(
    tx: Transaction, changes: Sequence[VolumeChange], generation: int | None = None
) -> None:
    """Store volumes by exchange after blocks."""
    if changes:
        await record_volumes(tx, (await _tables(tx, generation)).volumes, changes)


async def load_traded_volumes(
    tx: Transaction, keys: Iterable[VolumeKey], generation: int | None = None
) -> Mapping[VolumeKey, RunningVolume]:
    """Return the newest volumes of these wallets and exchanges; one without a trade is left out."""
    wanted = list(keys)
    return await load_volumes(tx, (await _tables(tx, generation)).volumes, wanted) if wanted else {}


class NextTrades(NamedTuple):
    """The trades of the next blocks, all of each block; and the last block that they are of."""

    trades: Sequence[PlacedTrade]
    last: int


async def load_next_trades(tx: Transaction, blocks: BlockRange, rows_max: int) -> NextTrades:
    """Return the trades of the first of these blocks, in the order of the chain.

    They are at most `rows_max`, or all of one block that has as many. Where most activities are no trades, they are of
    fewer blocks.
    """
    act = activities.c
    blocks = await load_first_blocks(tx, blocks, rows_max)
    trades = (
        sa.select(*(act[name] for name in PlacedTrade._fields))
        .where(act.kind == ActivityKind.TRADE.value)
        .order_by(act.block_number, act.log_index, act.part)
    )
    in_blocks = act.block_number > blocks.after, act.block_number <= blocks.last
    rows = [
        PlacedTrade._make(row) for row in await tx.all(trades.where(*in_blocks).limit(rows_max))
    ]
    if len(rows) < rows_max:
        return NextTrades(rows, blocks.last)
    first, last = rows[0].block_number, rows[-1].block_number
    if first < last:
        return NextTrades([row for row in rows if row.block_number < last], last - 1)
    whole = await tx.all(trades.where(act.block_number == first))
    return NextTrades([PlacedTrade._make(row) for row in whole], first)


async def _tables(tx: Transaction, generation: int | None) -> TradingTables:
    return tables_of(await load_live(tx) if generation is None else generation)
