"""Sums of a wallet, of events and of series that a column may not hold, added up when they are read.

A kept sum ends at the largest amount of a column. One that has come to it is added up again, exactly, from amounts that
are kept for its parts. All others are read as they are, and cost nothing more.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

import sqlalchemy as sa

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.generations import load_live
from foretell.store.index.trading_totals import (
    load_traded_volumes,
    load_trading_totals,
    tables_of,
)
from foretell.store.lookups import one_of
from foretell.store.tables import market_totals, sports_events
from foretell.store.tables.listings import AMOUNTS
from foretell.store.wide_sums import read_wide, wide_sum

_IDS: Final = "ids"
_WALLET: Final = sa.bindparam("wallet", type_=sa.Text)
_EVENTS: Final = (
    sa.select(
        market_totals.c.event_id,
        *(wide_sum(market_totals.c[name]).label(name) for name in AMOUNTS),
    )
    .where(one_of(market_totals.c.event_id, _IDS))
    .group_by(market_totals.c.event_id)
)
_SERIES: Final = (
    sa.select(
        sports_events.c.series_id, wide_sum(market_totals.c.volume_units).label("volume_units")
    )
    .join(market_totals, market_totals.c.event_id == sports_events.c.event_id)
    .where(one_of(sports_events.c.series_id, _IDS))
    .group_by(sports_events.c.series_id)
)


async def load_wallet_volume(tx: Transaction, wallet: Address) -> int:
    """Return the collateral of all trades of a wallet, as maker and as taker."""
    kept = sum(known.volume_units for known in await load_trading_totals(tx, [wallet]))
    if kept < AMOUNT_UNITS_MAX:
        return kept
    generation = await load_live(tx)
    own = tables_of(generation).volumes.c
    first = sa.select(sa.func.min(own.exchange)).where(own.wallet == _WALLET)
    following = first.where(own.exchange > sa.bindparam("after", type_=sa.Text))
    exchanges: list[Address] = []
    found = await tx.scalar(first, {"wallet": wallet})
    while found is not None:
        exchanges.append(Address(found))
        found = await tx.scalar(following, {"wallet": wallet, "after": found})
    volumes = await load_traded_volumes(
        tx, [(wallet, exchange) for exchange in exchanges], generation
    )
    return sum(volume.units for volume in volumes.values())


async def load_event_sums(
    tx: Transaction, event_ids: Collection[int]
) -> Mapping[int, Sequence[int]]:
    """Return the exact amounts of these events, in the order of their columns."""
    rows = await tx.all(_EVENTS, {_IDS: list(event_ids)})
    return {row.event_id: [read_wide(getattr(row, name)) for name in AMOUNTS] for row in rows}


async def load_series_volumes(tx: Transaction, series_ids: Collection[int]) -> Mapping[int, int]:
    """Return the exact volumes of these series."""
    rows = await tx.all(_SERIES, {_IDS: list(series_ids)})
    return {row.series_id: read_wide(row.volume_units) for row in rows}
