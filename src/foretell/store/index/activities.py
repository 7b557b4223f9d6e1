"""Activities of wallets on the chain (trades, splits, merges, redemptions), and the exchange's fills.

Written by the indexer.
"""

import enum
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.positions import TradePrice
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.index.activity_roles import role_of
from foretell.store.index.amount_classes import class_of
from foretell.store.lookups import load_last
from foretell.store.many_rows import insert_many
from foretell.store.tables import activities, exchange_fills


class ActivityKind(enum.StrEnum):
    """The kind of a wallet's activity."""

    TRADE = "TRADE"
    SPLIT = "SPLIT"
    MERGE = "MERGE"
    REDEEM = "REDEEM"
    CONVERSION = "CONVERSION"


class ActivityRow(NamedTuple):
    """One activity of a wallet; only a trade has a token, a side, and a part in its match."""

    block_number: int
    log_index: int
    part: int
    wallet: Address
    kind: ActivityKind
    condition_id: Bytes32
    token_id: AssetId | None
    side: Side | None
    size_units: int
    cost_units: int
    is_taker: bool
    timestamp_s: int
    tx_hash: Bytes32


_KIND, _SIDE = (ActivityRow._fields.index(name) for name in ("kind", "side"))
_KINDS: Final = {kind.value: kind for kind in ActivityKind}
_SIDES: Final[Mapping[str | None, Side | None]] = {None: None} | {side.name: side for side in Side}


class ExchangeFill(NamedTuple):
    """A fill of one order in one match; the amounts are before the fee, which is taken of the proceeds."""

    block_number: int
    log_index: int
    part: int
    order_id: Bytes32
    wallet: Address
    counterparty: Address
    side: Side
    token_id: AssetId
    size_units: int
    cost_units: int
    fee_units: int
    is_taker: bool
    tx_hash: Bytes32


class ActivityOrder(enum.Enum):
    """Sort keys of activities, by their columns."""

    TIME = "timestamp_s"
    SIZE = "size_units"
    COST = "cost_units"


class ActivityFilter(NamedTuple):
    """A filter for activities; None matches every value, and both ends of the time are included."""

    wallet: Address | None = None
    condition_ids: Collection[Bytes32] | None = None
    kinds: Collection[ActivityKind] | None = None
    side: Side | None = None
    start_s: int | None = None
    end_s: int | None = None
    takers_only: bool = False
    size_units_min: int | None = None
    cost_units_min: int | None = None


class ActivityPage(NamedTuple):
    """One page of a sorted list."""

    limit: int
    offset: int = 0
    order: ActivityOrder = ActivityOrder.TIME
    is_descending: bool = True


async def record_activities(tx: Transaction, acts: Sequence[ActivityRow]) -> None:
    """Store activities of wallets."""
    rows = [(*act[:4], act.kind.value, *act[5:7], _name(act.side), *act[8:]) for act in acts]
    await insert_many(
        tx,
        activities,
        [
            (*row, class_of(act.cost_units), role_of(row[4], row[7], is_taker=act.is_taker))
            for row, act in zip(rows, acts, strict=True)
        ],
    )


async def record_exchange_fills(tx: Transaction, fills: Sequence[ExchangeFill]) -> None:
    """Store fills of the exchange."""
    await insert_many(
        tx, exchange_fills, [(*fill[:6], fill.side.name, *fill[7:]) for fill in fills]
    )


ACTIVITY: Final = [activities.c[name] for name in ActivityRow._fields]
"""The columns of an activity."""


async def load_last_prices(
    tx: Transaction, token_ids: Collection[AssetId]
) -> Mapping[AssetId, TradePrice]:
    """Return the price of each token's newest fill, all in one statement; tokens before their first trade are left out."""
    fill = exchange_fills.c
    newest = fill.block_number, fill.log_index, fill.part
    keys = [(token_id,) for token_id in token_ids]
    rows = await load_last(tx, exchange_fills, (fill.token_id,), newest, keys)
    return {AssetId(row.token_id): TradePrice(row.cost_units, row.size_units) for row in rows}


def _name(side: Side | None) -> str | None:
    return None if side is None else side.name


def activity_row(row: sa.Row[Any]) -> ActivityRow:
    """Return the activity in a row of its table."""
    values = list(row)
    values[_KIND] = _KINDS[values[_KIND]]
    values[_SIDE] = _SIDES[values[_SIDE]]
    return ActivityRow._make(values)
