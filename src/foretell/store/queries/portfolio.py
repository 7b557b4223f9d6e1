"""A wallet's holdings, each with its market, the top of the book and the payout."""

import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.positions import Payout, Position
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.folding import folded
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Transaction
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
TITLES_PER_PART: Final = 500


class MarketCaption(NamedTuple):
    """The names of a market and its event."""

    title: str
    slug: str
    icon: str
    event_slug: str
    event_id: int
    outcome_yes: str
    outcome_no: str
    ends_at_ms: int
    is_neg_risk: bool

    def outcome(self, *, is_yes: bool) -> str:
        """Return the name of an outcome."""
        return self.outcome_yes if is_yes else self.outcome_no


LISTED: Final = (
    markets.c.question.label("title"),
    markets.c.slug,
    markets.c.icon,
    events.c.slug.label("event_slug"),
    events.c.event_id,
    markets.c.outcome_yes,
    markets.c.outcome_no,
    events.c.ends_at_ms,
    markets.c.is_neg_risk,
)


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


def in_markets(
    column: sa.ColumnElement[Any], condition_ids: Collection[Bytes32], event_ids: Collection[int]
) -> list[sa.ColumnElement[bool]]:
    """Return the clauses that a condition is one of these, or of these events; empty matches all."""
    clauses: list[sa.ColumnElement[bool]] = []
    if condition_ids:
        clauses.append(column.in_(sorted(condition_ids)))
    if event_ids:
        of_events = sa.select(markets.c.condition_id).where(
            markets.c.event_id.in_(sorted(event_ids))
        )
        clauses.append(column.in_(of_events))
    return clauses


async def load_titled_conditions(
    tx: Transaction, chosen: HoldingFilter, folded_text: str
) -> Sequence[Bytes32]:
    """Return the conditions of a wallet's holdings whose title contains the folded text.

    The rows come in parts, in the order of their key, and are compared here: databases fold letters differently.
    """
    found: dict[Bytes32, None] = {}
    after, is_last = "", False
    while not is_last:
        rows = await tx.all(
            sa.select(positions.c.token_id, positions.c.condition_id, markets.c.question)
            .select_from(_valued())
            .where(
                *_clauses(chosen),
                markets.c.condition_id.is_not(None),
                positions.c.token_id > after,
            )
            .order_by(positions.c.token_id)
            .limit(TITLES_PER_PART)
        )
        for row in rows:
            if folded_text in folded(row.question):
                found[Bytes32(row.condition_id)] = None
        is_last = len(rows) < TITLES_PER_PART
        after = rows[-1].token_id if rows else after
    return list(found)


async def load_holdings(
    tx: Transaction, chosen: HoldingFilter, page: HoldingPage
) -> Sequence[Holding]:
    """Return one page of a wallet's holdings."""
    key = _sort_key(page.order, is_closed=chosen.is_closed)
    rows = await tx.all(
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
        .where(*_clauses(chosen))
        .order_by(
            (key.desc() if page.is_descending else key.asc()).nulls_last(),
            positions.c.condition_id,
            positions.c.token_id,
        )
        .limit(page.limit)
        .offset(page.offset)
    )
    return [_holding(row) for row in rows]


async def load_holdings_sums(
    tx: Transaction, wallet: Address, condition_ids: Collection[Bytes32] = ()
) -> Sequence[HoldingsSum]:
    """Return the sums of a wallet's holdings, grouped by what the price is computed from."""
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
            *in_markets(positions.c.condition_id, condition_ids, ()),
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


async def load_conditions_of_events(
    tx: Transaction, event_ids: Collection[int]
) -> Sequence[Bytes32]:
    """Return the conditions of these events."""
    rows = await tx.all(
        sa.select(markets.c.condition_id)
        .where(markets.c.event_id.in_(sorted(event_ids)))
        .order_by(markets.c.market_id)
    )
    return [Bytes32(row.condition_id) for row in rows]


async def load_volumes(
    tx: Transaction, condition_ids: Collection[Bytes32]
) -> Mapping[Bytes32, int]:
    """Return the total volume of these conditions; those without a quote are left out."""
    rows = await tx.all(
        sa.select(quotes.c.condition_id, quotes.c.volume_units).where(
            quotes.c.condition_id.in_(sorted(condition_ids))
        )
    )
    return {Bytes32(row.condition_id): row.volume_units for row in rows}


async def load_market_captions(
    tx: Transaction, condition_ids: Collection[Bytes32]
) -> Mapping[Bytes32, tuple[AssetId, MarketCaption | None]]:
    """Return the Yes token of conditions, and the caption of those that have a market."""
    rows = await tx.all(
        sa.select(conditions.c.condition_id, conditions.c.token_yes, *LISTED)
        .select_from(
            conditions.outerjoin(
                markets, markets.c.condition_id == conditions.c.condition_id
            ).outerjoin(events, events.c.event_id == markets.c.event_id)
        )
        .where(conditions.c.condition_id.in_(sorted(condition_ids)))
    )
    return {Bytes32(row.condition_id): (AssetId(row.token_yes), _caption(row)) for row in rows}


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


def _clauses(chosen: HoldingFilter) -> list[sa.ColumnElement[bool]]:
    clauses = [
        positions.c.wallet == chosen.wallet,
        *in_markets(positions.c.condition_id, chosen.condition_ids, chosen.event_ids),
    ]
    if chosen.is_closed:
        clauses.append(positions.c.size_units == 0)
    else:
        clauses.append(positions.c.size_units >= max(1, chosen.size_units_min))
    if chosen.only_redeemable:
        clauses.append(payouts.c.condition_id.is_not(None))
    if chosen.only_mergeable:
        clauses.append(_opposite.c.size_units > 0)
    return clauses


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
        listing=_caption(row),
    )


def _caption(row: Any) -> MarketCaption | None:
    """Return the caption in a row whose last columns are `LISTED`, or None without a market."""
    return None if row.title is None else MarketCaption._make(row[-len(LISTED) :])
