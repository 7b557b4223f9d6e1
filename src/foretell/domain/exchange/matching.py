"""Whom an arriving order meets, and what each side pays.

The plan is made without touching the book, so that an order which must fill whole, or must not
fill at all, is judged before anything has changed. A fill happens at the resting order's price, in
whole lots; what is left below a lot can never trade and is called dust. No dust ever rests: an order
that rested below a lot would stand in the way of prices that cross it.
"""

import enum
from typing import Final, NamedTuple

import msgspec

from foretell.domain.exchange.book import Book, LiveOrder, price_in_yes
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import (
    affordable_size_units,
    exact_cost_units,
    lots_by_price,
    whole_lots_units,
)
from foretell.domain.values.hexadecimal import Address, Bytes32


class MatchType(enum.StrEnum):
    """How two orders come together on the chain."""

    COMPLEMENTARY = "COMPLEMENTARY"
    MINT = "MINT"
    MERGE = "MERGE"


_BUY: Final = Side.BUY
_COMPLEMENTARY: Final = MatchType.COMPLEMENTARY


class Taker(NamedTuple):
    """What matching needs to know of an arriving order.

    Exactly one of `size_units` (tokens to trade) and `budget_units` (collateral to spend) is set.
    """

    maker: Address
    side: Side
    is_yes: bool
    is_bid: bool
    yes_limit_ticks: int
    size_units: int | None
    budget_units: int | None


class PlannedFill(NamedTuple):
    """A part of one resting order that the taker gets, at that order's price."""

    order: LiveOrder
    size_units: int


class MatchPlan(NamedTuple):
    """What would happen if the taker were matched now.

    `is_exhausted` says that the taker, not the book, ended it: what is left of it is less than a
    lot at the last price that it met. `own_orders` are resting orders of the same wallet in its
    way, `dust_orders` those that its fills leave with less than a lot; both leave the book when
    the plan is carried out.
    """

    fills: list[PlannedFill]
    size_units: int
    is_exhausted: bool
    own_orders: list[LiveOrder]
    dust_orders: list[LiveOrder]

    @property
    def crosses(self) -> bool:
        """Whether the taker meets anybody at all."""
        return bool(self.fills or self.own_orders)


def plan_match(book: Book, taker: Taker) -> MatchPlan:
    """Return the fills of an arriving order against the book as it stands."""
    fills: list[PlannedFill] = []
    own_orders: list[LiveOrder] = []
    dust_orders: list[LiveOrder] = []
    maker, _, is_yes, taker_is_bid, limit_ticks, size_left, budget_left = taker
    ticks_per_one, filled, is_exhausted = book.ticks_per_one, 0, False
    for order in book.opposite(limit_ticks, taker_is_bid=taker_is_bid):
        price = price_in_yes(order.yes_price_ticks, ticks_per_one, is_yes=is_yes)
        wanted = _wanted_units(size_left, budget_left, price, ticks_per_one)
        if wanted == 0:
            is_exhausted = True
            break
        if order.maker == maker:
            own_orders.append(order)
            continue
        available = whole_lots_units(order.remaining_units, price, ticks_per_one)
        assert available > 0, "no dust rests"
        units = min(wanted, available)
        fills.append(PlannedFill(order, units))
        filled += units
        if budget_left is not None:
            budget_left -= exact_cost_units(units, price, ticks_per_one)
        else:
            size_left = (size_left or 0) - units
        is_exhausted = units == wanted
        if units < available:
            break
        if units < order.remaining_units:
            dust_orders.append(order)
    return MatchPlan(fills, filled, is_exhausted, own_orders, dust_orders)


def _wanted_units(
    size_left: int | None, budget_left: int | None, price_ticks: int, ticks_per_one: int
) -> int:
    """Return how much a taker would still take at a price, in whole lots."""
    if budget_left is not None:
        wanted = affordable_size_units(budget_left, price_ticks, ticks_per_one)
    else:
        assert size_left is not None
        wanted = size_left
    return whole_lots_units(wanted, price_ticks, ticks_per_one)


class Fill(msgspec.Struct, frozen=True, array_like=True):
    """One maker order's part of a trade, in base units.

    `making_units` is what the maker gave and `taking_units` what it got, of the assets that its
    own order names; `price_ticks` is a price of the maker's own token.
    """

    maker_order_id: Bytes32
    maker: Address
    owner: str
    side: Side
    is_yes: bool
    price_ticks: int
    size_units: int
    making_units: int
    taking_units: int
    match_type: MatchType


def match_type_of(taker_side: Side, maker_side: Side) -> MatchType:
    """Return how a taker and a maker whose prices cross come together."""
    if taker_side is not maker_side:
        return _COMPLEMENTARY
    return MatchType.MINT if taker_side is _BUY else MatchType.MERGE


def fill_of(planned: PlannedFill, taker_side: Side, ticks_per_one: int) -> Fill:
    """Return a planned fill with what its maker gives and gets."""
    order, units = planned
    cost = exact_cost_units(units, order.price_ticks, ticks_per_one)
    is_buy = order.side is _BUY
    return Fill(
        maker_order_id=order.order_id,
        maker=order.maker,
        owner=order.owner,
        side=order.side,
        is_yes=order.is_yes,
        price_ticks=order.price_ticks,
        size_units=units,
        making_units=cost if is_buy else units,
        taking_units=units if is_buy else cost,
        match_type=match_type_of(taker_side, order.side),
    )


def taker_cost_units(fill: Fill) -> int:
    """Return the collateral that the taker pays (as a buyer) or gets (as a seller) for a fill.

    Whatever the maker pays or gets for its token, the taker has the rest of one collateral a
    token when they mint or merge, and the same amount when they trade one token.
    """
    cost = fill.making_units if fill.side is _BUY else fill.taking_units
    return cost if fill.match_type is _COMPLEMENTARY else fill.size_units - cost


def is_dust(units: int, price_ticks: int, ticks_per_one: int) -> bool:
    """Return whether so little can never trade at this price."""
    return units < lots_by_price(ticks_per_one)[price_ticks]
