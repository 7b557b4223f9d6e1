"""A wallet's holdings, each with its market, the top of the book and the payout."""

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout, Position
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.folding import folded
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
from foretell.store.lookups import among
from foretell.store.queries.captions import LISTED, MarketCaption, caption_of
from foretell.store.quoted_columns import QUOTED, REPORTED, book_top, payout
from foretell.store.tables import conditions, events, markets, payouts, positions, quotes
from foretell.store.text_order import by_code_points
from foretell.store.valuation import (
    IS_YES,
    current_price_of_yes,
    of_token,
    real,
)

_opposite: Final = positions.alias("opposite")
TITLES_PER_PART: Final = 2_000
SHAPES_KEPT_MAX: Final = 256
_CONDITIONS: Final = "conditions"


class Holding(NamedTuple):
    """A position and everything that its value is computed from.

    `listing` is None when the condition has no market here, `top` before its first quote, and
    `payout` before it is resolved.
    """

    wallet: Address
    token_id: AssetId
    opposite_token_id: AssetId
    condition_id: Bytes32
    is_yes: bool
    position: Position
    changed_at_s: int
    is_mergeable: bool
    top: BookTop | None
    payout: Payout | None
    listing: MarketCaption | None


class HoldingOrder(enum.Enum):
    """Sort keys of holdings."""

    VALUE = enum.auto()
    COST = enum.auto()
    SIZE = enum.auto()
    GAIN = enum.auto()
    GAIN_RATE = enum.auto()
    TITLE = enum.auto()
    END = enum.auto()
    PRICE = enum.auto()
    AVERAGE_PRICE = enum.auto()
    REALIZED_GAIN = enum.auto()
    CHANGE = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingFilter:
    """A filter for a wallet's holdings: open ones of a least size, or closed ones."""

    wallet: Address
    is_closed: bool = False
    size_units_min: int = 1
    condition_ids: Collection[Bytes32] = ()
    event_ids: Collection[int] = ()
    only_redeemable: bool = False
    only_mergeable: bool = False


class HoldingPage(NamedTuple):
    """One page of a sorted list."""

    limit: int
    offset: int
    order: HoldingOrder
    is_descending: bool


class HoldingsSum(NamedTuple):
    """The sum of a wallet's holdings that have the same price."""

    is_yes: bool
    size_units: int
    top: BookTop | None
    payout: Payout | None


async def load_titled_conditions(
    tx: Transaction, chosen: HoldingFilter, folded_text: str
) -> Sequence[Bytes32]:
    """Return the conditions of a wallet's holdings whose title contains the folded text.

    The rows come in parts, in the order of their key, and are compared here: databases fold letters differently.
    """
    found: dict[Bytes32, None] = {}
    query, values = _titles_of(_Shape.of(chosen)), _values(chosen)
    after, is_last = "", False
    while not is_last:
        rows = await tx.all(query, {**values, "after": after, "rows": TITLES_PER_PART})
        for row in rows:
            if folded_text in folded(row.question):
                found[Bytes32(row.condition_id)] = None
        is_last = len(rows) < TITLES_PER_PART
        after = rows[-1].token_id if rows else after
    return list(found)


@lru_cache(maxsize=SHAPES_KEPT_MAX)
def _titles_of(shape: "_Shape") -> sa.Select[Any]:
    """Return the query for a part of the titles, which joins only what the filter needs."""
    is_market = markets.c.condition_id == positions.c.condition_id
    joined: sa.FromClause = positions.join(markets, is_market)
    if shape.only_redeemable or shape.only_mergeable:
        joined = _valued()
    return (
        sa.select(positions.c.token_id, positions.c.condition_id, markets.c.question)
        .select_from(joined)
        .where(
            *_clauses(shape),
            markets.c.condition_id.is_not(None),
            positions.c.token_id > sa.bindparam("after", type_=sa.Text),
        )
        .order_by(positions.c.token_id)
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
    )


async def load_holdings(
    tx: Transaction, chosen: HoldingFilter, page: HoldingPage
) -> Sequence[Holding]:
    """Return one page of a wallet's holdings."""
    query = _page_of(_Shape.of(chosen), page.order, is_descending=page.is_descending)
    place = {"rows": page.limit, "skipped": page.offset}
    return [_holding(row) for row in await tx.all(query, {**_values(chosen), **place})]


class _Shape(NamedTuple):
    """What a filter for holdings asks, without its values: a query is built once for each shape."""

    is_closed: bool
    has_conditions: bool
    has_events: bool
    only_redeemable: bool
    only_mergeable: bool

    @classmethod
    def of(cls, chosen: HoldingFilter) -> "_Shape":
        """Return the shape of a filter."""
        return cls(
            chosen.is_closed,
            bool(chosen.condition_ids),
            bool(chosen.event_ids),
            chosen.only_redeemable,
            chosen.only_mergeable,
        )


@lru_cache(maxsize=SHAPES_KEPT_MAX)
def _page_of(shape: _Shape, order: HoldingOrder, *, is_descending: bool) -> sa.Select[Any]:
    key = _sort_key(order, is_closed=shape.is_closed)
    return (
        sa.select(
            positions,
            conditions.c.token_yes,
            conditions.c.token_no,
            _opposite.c.size_units.label("opposite_units"),
            *QUOTED,
            *REPORTED,
            *LISTED,
        )
        .select_from(_valued())
        .where(*_clauses(shape))
        .order_by(
            (key.desc() if is_descending else key.asc()).nulls_last(),
            positions.c.condition_id,
            positions.c.token_id,
        )
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
        .offset(sa.bindparam("skipped", type_=sa.BigInteger))
    )


async def load_holdings_sums(
    tx: Transaction, wallet: Address, condition_ids: Collection[Bytes32] = ()
) -> Sequence[HoldingsSum]:
    """Return the sums of a wallet's holdings, grouped by what the price is computed from."""
    among_these = [positions.c.condition_id.in_(condition_ids)] if condition_ids else []
    rows = await tx.all(
        sa.select(positions.c.size_units, IS_YES, *QUOTED, *REPORTED)
        .select_from(
            positions.join(conditions, conditions.c.condition_id == positions.c.condition_id)
            .outerjoin(quotes, quotes.c.condition_id == positions.c.condition_id)
            .outerjoin(payouts, payouts.c.condition_id == positions.c.condition_id)
        )
        .where(
            positions.c.wallet == wallet,
            positions.c.size_units > 0,
            *among_these,
        )
    )
    # Added up here: SQLite refuses a sum of integers beyond 63 bits.
    units_by_price: dict[tuple[Any, ...], int] = {}
    for row in rows:
        price: tuple[Any, ...] = tuple(row[1:])
        units_by_price[price] = units_by_price.get(price, 0) + row.size_units
    return [_holdings_sum(units, *price) for price, units in units_by_price.items()]


def _holdings_sum(units: int, is_yes: bool, *price: Any) -> HoldingsSum:  # noqa: FBT001 - a column
    """Return the sum of holdings whose price is in the columns of `QUOTED` and `REPORTED`."""
    top, paid = price[: len(QUOTED)], price[len(QUOTED) :]
    return HoldingsSum(
        bool(is_yes),
        units,
        None if top[0] is None else BookTop(*top),
        None if paid[0] is None else Payout(*paid),
    )


def _valued() -> sa.FromClause:
    """Return positions joined with all that is known about their conditions.

    The opposite position is named by its whole key: by its condition, the database would search all
    holders of that.
    """
    return (
        positions.join(conditions, conditions.c.condition_id == positions.c.condition_id)
        .outerjoin(markets, markets.c.condition_id == positions.c.condition_id)
        .outerjoin(events, events.c.event_id == markets.c.event_id)
        .outerjoin(quotes, quotes.c.condition_id == positions.c.condition_id)
        .outerjoin(payouts, payouts.c.condition_id == positions.c.condition_id)
        .outerjoin(
            _opposite,
            sa.and_(
                _opposite.c.wallet == positions.c.wallet,
                _opposite.c.token_id
                == sa.case((IS_YES, conditions.c.token_no), else_=conditions.c.token_yes),
            ),
        )
    )


def _clauses(shape: _Shape) -> list[sa.ColumnElement[bool]]:
    of_events = sa.select(markets.c.condition_id).where(
        markets.c.event_id.in_(among("events", sa.BigInteger))
    )
    size = positions.c.size_units
    least = sa.bindparam("least", type_=sa.BigInteger)
    asked = (
        (True, positions.c.wallet == sa.bindparam("wallet", type_=sa.Text)),
        (shape.has_conditions, positions.c.condition_id.in_(among(_CONDITIONS))),
        (shape.has_events, positions.c.condition_id.in_(of_events)),
        (True, size == 0 if shape.is_closed else size >= least),
        (shape.only_redeemable, payouts.c.condition_id.is_not(None)),
        (shape.only_mergeable, _opposite.c.size_units > 0),
    )
    return [clause for is_asked, clause in asked if is_asked]


def _values(chosen: HoldingFilter) -> dict[str, Any]:
    """Return the values of the parameters in the clauses of a filter's shape."""
    values: dict[str, Any] = {"wallet": chosen.wallet}
    if not chosen.is_closed:
        values["least"] = max(1, chosen.size_units_min)
    if chosen.condition_ids:
        values[_CONDITIONS] = list(chosen.condition_ids)
    if chosen.event_ids:
        values["events"] = list(chosen.event_ids)
    return values


def _sort_key(order: HoldingOrder, *, is_closed: bool) -> sa.ColumnElement[Any]:
    held = positions.c
    price = of_token(current_price_of_yes(), IS_YES)
    worth = real(held.size_units) * price
    gain = worth - real(held.cost_units)
    cost, size = held.cost_units, held.size_units
    if is_closed:
        cost, size = held.spent_units, held.bought_units
    keys = {
        HoldingOrder.VALUE: worth,
        HoldingOrder.COST: held.cost_units,
        HoldingOrder.SIZE: held.size_units,
        HoldingOrder.GAIN: gain,
        HoldingOrder.GAIN_RATE: sa.func.coalesce(gain / real(sa.func.nullif(cost, 0)), 0),
        HoldingOrder.TITLE: by_code_points(markets.c.question),
        HoldingOrder.END: events.c.ends_at_ms,
        HoldingOrder.PRICE: price,
        HoldingOrder.AVERAGE_PRICE: sa.func.coalesce(real(cost) / real(sa.func.nullif(size, 0)), 0),
        HoldingOrder.REALIZED_GAIN: held.realized_units,
        HoldingOrder.CHANGE: held.changed_at_s,
    }
    return keys[order]


def _holding(row: Any) -> Holding:
    is_yes = row.token_id == row.token_yes
    return Holding(
        wallet=Address(row.wallet),
        token_id=AssetId(row.token_id),
        opposite_token_id=AssetId(row.token_no if is_yes else row.token_yes),
        condition_id=Bytes32(row.condition_id),
        is_yes=is_yes,
        position=Position(
            row.size_units,
            row.cost_units,
            row.bought_units,
            row.spent_units,
            row.realized_units,
        ),
        changed_at_s=row.changed_at_s,
        is_mergeable=row.size_units > 0 and bool(row.opposite_units),
        top=book_top(row),
        payout=payout(row),
        listing=caption_of(row),
    )
