"""The running volume of a wallet on each exchange, after every block in which it traded there; written by the indexer.

The volume since a time is the newest one less the last one before, whatever the time is. A referral names a time that the
indexer does not know, so no sum by referrer is kept that a later referral would make wrong. The exchange of a trade
is that of its market when the trade is added up.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import load_newest, load_rows
from foretell.store.many_rows import insert_many
from foretell.store.tables import markets
from foretell.store.wide_sums import HALF_BITS, HALF_MASK

UNLISTED: Final = Address("")
"""The exchange of trades in a condition that had no market. A wallet that has any is added up trade by trade."""

VolumeKey = tuple[Address, Address]
"""A wallet and an exchange."""


class RunningVolume(NamedTuple):
    """The collateral of all trades so far, in base units without a bound, and the time of the last one."""

    units: int = 0
    traded_at_s: int = 0


class VolumeChange(NamedTuple):
    """A volume after a block."""

    wallet: Address
    exchange: Address
    block_number: int
    volume: RunningVolume


async def record_volumes(tx: Transaction, table: sa.Table, changes: Sequence[VolumeChange]) -> None:
    """Store volumes after blocks in a generation's table."""
    rows = [
        (wallet, exchange, number, at_s, units >> HALF_BITS, units & HALF_MASK)
        for wallet, exchange, number, (units, at_s) in changes
    ]
    if rows:
        await insert_many(tx, table, sorted(rows))


async def load_volumes(
    tx: Transaction, table: sa.Table, keys: Iterable[VolumeKey]
) -> Mapping[VolumeKey, RunningVolume]:
    """Return the newest of these volumes in a generation's table; one without a trade is left out."""
    rows = await load_newest(tx, table, keys)
    return {
        (Address(row.wallet), Address(row.exchange)): RunningVolume(
            (row.volume_high << HALF_BITS) + row.volume_low, row.traded_at_s
        )
        for row in rows
    }


async def load_exchanges(
    tx: Transaction, condition_ids: Collection[Bytes32]
) -> Mapping[Bytes32, Address]:
    """Return the exchange of the market of each of these conditions; one without a market is left out."""
    keys = [(each,) for each in condition_ids]
    rows = await load_rows(tx, markets, (markets.c.condition_id,), keys)
    return {Bytes32(row.condition_id): Address(row.exchange) for row in rows}
