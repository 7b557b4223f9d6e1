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
from foretell.store.many_rows import insert_many
from foretell.store.tables import activities, exchange_fills

RARE_ROWS_MAX: Final = 10_000
"""So many activities are sorted; if more match, the newest are found by walking back in time."""


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
    await insert_many(
        tx,
        activities,
        [(*act[:4], act.kind.value, *act[5:7], _name(act.side), *act[8:]) for act in acts],
    )


async def record_exchange_fills(tx: Transaction, fills: Sequence[ExchangeFill]) -> None:
    """Store fills of the exchange."""
    await insert_many(
        tx, exchange_fills, [(*fill[:6], fill.side.name, *fill[7:]) for fill in fills]
    )


async def load_activities(
    tx: Transaction, chosen: ActivityFilter, page: ActivityPage
) -> Sequence[ActivityRow]:
    """Return one page of the activities that match the filter."""
    first: sa.ColumnElement[Any] = activities.c[page.order.value]
    # A sum is in no index: few rows are found by their amount and sorted, and of many the newest by their time.
    is_rare = await _is_rare(tx, chosen)
    if is_rare and page.order is ActivityOrder.TIME:
        first = first + 0
    columns: list[sa.ColumnElement[Any]] = [first]
    columns += [activities.c.block_number, activities.c.log_index, activities.c.part]
    rows = await tx.all(
        sa.select(activities)
        .where(*_conditions(chosen, is_rare=is_rare))
        .order_by(*(column.desc() if page.is_descending else column.asc() for column in columns))
        .limit(page.limit)
        .offset(page.offset)
    )
    return [activity_row(row) for row in rows]


async def _is_rare(tx: Transaction, chosen: ActivityFilter) -> bool:
    """Return whether few activities are so large that they are found faster by their amount than by their time."""
    least = chosen.size_units_min, chosen.cost_units_min
    if least == (None, None) or chosen.condition_ids is not None:
        return False
    wanted = ActivityFilter(wallet=chosen.wallet, size_units_min=least[0], cost_units_min=least[1])
    found = (
        sa.select(sa.literal(1)).where(*_conditions(wanted, is_rare=True)).limit(RARE_ROWS_MAX + 1)
    )
    count = await tx.scalar(
        sa.select(sa.func.count()).select_from(found.select_from(activities).subquery())
    )
    return bool(count <= RARE_ROWS_MAX)


async def load_last_price(tx: Transaction, token_id: AssetId) -> TradePrice | None:
    """Return the price of a token's newest fill, or None before its first trade."""
    row = await tx.first(
        sa.select(exchange_fills.c.cost_units, exchange_fills.c.size_units)
        .where(exchange_fills.c.token_id == token_id)
        .order_by(exchange_fills.c.block_number.desc(), exchange_fills.c.log_index.desc())
        .limit(1)
    )
    return None if row is None else TradePrice._make(row)


def _conditions(chosen: ActivityFilter, *, is_rare: bool) -> list[sa.ColumnElement[bool]]:
    column = activities.c
    size, cost = (each if is_rare else each + 0 for each in (column.size_units, column.cost_units))
    side = None if chosen.side is None else chosen.side.name
    # In other words than the index of what a wallet took, which SQLite would sort whole for the newest of all.
    took = column.is_taker if chosen.wallet else column.is_taker.is_(sa.true())
    asked = (
        (chosen.wallet, lambda: column.wallet == chosen.wallet),
        (chosen.condition_ids, lambda: column.condition_id.in_(sorted(chosen.condition_ids or ()))),
        (chosen.kinds, lambda: column.kind.in_(sorted(chosen.kinds or ()))),
        (side, lambda: column.side == side),
        (chosen.start_s, lambda: column.timestamp_s >= chosen.start_s),
        (chosen.end_s, lambda: column.timestamp_s <= chosen.end_s),
        (chosen.takers_only or None, lambda: took),
        (chosen.size_units_min, lambda: size >= chosen.size_units_min),
        (chosen.cost_units_min, lambda: cost >= chosen.cost_units_min),
    )
    return [clause() for wanted, clause in asked if wanted is not None]


def _name(side: Side | None) -> str | None:
    return None if side is None else side.name


def activity_row(row: sa.Row[Any]) -> ActivityRow:
    """Return the activity in a row of its table."""
    values = list(row)
    values[_KIND] = _KINDS[values[_KIND]]
    values[_SIDE] = _SIDES[values[_SIDE]]
    return ActivityRow._make(values)
