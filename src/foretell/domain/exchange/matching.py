"""Matching: the resting orders that an arriving order meets, and what each side pays.

A plan is made without changing the book, so that an order which must be filled whole, or must not
match, is checked before anything changes. A fill is at the resting order's price, in whole lots. A
remainder below a lot can never trade and is called dust. No dust rests: it would block the prices
that cross it.
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
    """The way in which two orders are matched on the chain."""

    COMPLEMENTARY = "COMPLEMENTARY"
    MINT = "MINT"
    MERGE = "MERGE"


_BUY: Final = Side.BUY
_COMPLEMENTARY: Final = MatchType.COMPLEMENTARY


class Taker(msgspec.Struct, frozen=True):
    """The arriving order.

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
    """A part of a resting order that the taker receives, at that order's price."""

    order: LiveOrder
    size_units: int


class MatchPlan(msgspec.Struct, frozen=True):
    """The outcome of matching a taker now.

    `is_exhausted` means that the taker has less than a lot left at the last price that it met, so
    that the taker and not the book ended the match. `own_orders` are crossed orders of the same
    wallet, `dust_orders` those that the fills leave with less than a lot; both leave the book when
    the plan is executed.
    """

    fills: list[PlannedFill]
    size_units: int
    is_exhausted: bool
    own_orders: list[LiveOrder]
    dust_orders: list[LiveOrder]

    @property
    def crosses(self) -> bool:
        """Whether the taker meets any resting order."""
        return bool(self.fills or self.own_orders)


def plan_match(book: Book, taker: Taker) -> MatchPlan:
    """Return the plan of an arriving order against the present book."""
    fills: list[PlannedFill] = []
    own_orders: list[LiveOrder] = []
    dust_orders: list[LiveOrder] = []
    maker, is_yes, ticks_per_one = taker.maker, taker.is_yes, book.ticks_per_one
    size_left, budget_left, filled, is_exhausted = taker.size_units, taker.budget_units, 0, False
    for order in book.opposite(taker.yes_limit_ticks, taker_is_bid=taker.is_bid):
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
    assert budget_left is None or budget_left >= 0, "a taker spends no more than its budget"
    assert taker.size_units is None or filled <= taker.size_units, "no fill beyond the size"
    return MatchPlan(fills, filled, is_exhausted, own_orders, dust_orders)


def _wanted_units(
    size_left: int | None, budget_left: int | None, price_ticks: int, ticks_per_one: int
) -> int:
    """Return the size that a taker still takes at a price, in whole lots."""
    if budget_left is not None:
        wanted = affordable_size_units(budget_left, price_ticks, ticks_per_one)
    else:
        assert size_left is not None
        wanted = size_left
    return whole_lots_units(wanted, price_ticks, ticks_per_one)


class Fill(msgspec.Struct, frozen=True, array_like=True):
    """The part of one maker order in a trade, in base units.

    The maker gives `making_units` and receives `taking_units` of the assets that its order names;
    `price_ticks` is a price of the maker's own token.
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
    """Return the match type of two orders that cross, by their sides."""
    if taker_side is not maker_side:
        return _COMPLEMENTARY
    return MatchType.MINT if taker_side is _BUY else MatchType.MERGE


def fill_of(planned: PlannedFill, taker_side: Side, ticks_per_one: int) -> Fill:
    """Return a planned fill with the amounts that its maker gives and receives."""
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
    """Return the collateral that the taker pays (as a buyer) or receives (as a seller) for a fill.

    It is the maker's amount when both trade one token. When they mint or merge, both amounts add up
    to one collateral a token.
    """
    cost = fill.making_units if fill.side is _BUY else fill.taking_units
    return cost if fill.match_type is _COMPLEMENTARY else fill.size_units - cost


def is_dust(units: int, price_ticks: int, ticks_per_one: int) -> bool:
    """Return whether the size is below a lot at this price, so that it can never trade."""
    return units < lots_by_price(ticks_per_one)[price_ticks]
