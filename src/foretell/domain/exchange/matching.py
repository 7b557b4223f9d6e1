"""Matching: the resting orders that an arriving order meets, and what each side pays.

A fill is at the resting order's price, in whole lots. A remainder below a lot can never trade and is
called dust. No dust rests: it would block the prices that cross it. An order that only takes is
planned without changing the book, because it may be refused; one that may rest is matched by
`BookSide.take` at once.
"""

import enum
from typing import Final

import msgspec

from foretell.domain.exchange.book import BookSide, Match, Order
from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import (
    affordable_size_units,
    exact_cost_units,
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
    """The arriving order, in terms of the side of the book that it meets.

    Exactly one of `size_units` (tokens to trade) and `budget_units` (collateral to spend) is set.
    """

    wallet: object
    is_buy: bool
    limit_rank: int
    size_units: int | None
    budget_units: int | None


def plan_match(side: BookSide[Order], taker: Taker) -> Match[Order]:
    """Return what a taker of this side would meet now, without changing the book."""
    fills: list[tuple[Order, int]] = []
    own_orders: list[Order] = []
    dust_orders: list[Order] = []
    ticks_per_one, has_budget, is_exhausted = side.ticks_per_one, taker.size_units is None, False
    left_units = taker.budget_units if taker.size_units is None else taker.size_units
    assert left_units is not None
    for order in side.walk(taker.limit_rank):
        rank = order.level.rank
        price = ticks_per_one - rank if taker.is_buy else rank
        wanted = (
            affordable_size_units(left_units, price, ticks_per_one) if has_budget else left_units
        )
        wanted = whole_lots_units(wanted, price, ticks_per_one)
        if wanted == 0:
            is_exhausted = True
            break
        if order.wallet is taker.wallet:
            own_orders.append(order)
            continue
        available = whole_lots_units(order.remaining_units, price, ticks_per_one)
        assert available > 0, "no dust rests"
        units = min(wanted, available)
        fills.append((order, units))
        left_units -= exact_cost_units(units, price, ticks_per_one) if has_budget else units
        is_exhausted = units == wanted
        if units < available:
            break
        if units < order.remaining_units:
            dust_orders.append(order)
    assert left_units >= 0, "a taker gets no more than its size, and spends no more than its budget"
    return Match(fills, left_units, is_exhausted, own_orders, dust_orders)


def carry_out(side: BookSide[Order], plan: Match[Order]) -> None:
    """Make the changes of a plan in the book that it was made for.

    An order that a fill leaves with less than a lot leaves the book: it is filled, or dust.
    """
    for own in plan.own_orders:
        side.remove(own)
    for order, units in plan.fills:
        if order.remaining_units - units < order.level.lot_units:
            side.remove(order)
            order.remaining_units -= units
        else:
            side.reduce(order, units)


class Fill(msgspec.Struct, frozen=True, array_like=True, gc=False):
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


def taker_cost_units(fill: Fill) -> int:
    """Return the collateral that the taker pays (as a buyer) or receives (as a seller) for a fill.

    It is the maker's amount when both trade one token. When they mint or merge, both amounts add up
    to one collateral a token.
    """
    cost = fill.making_units if fill.side is _BUY else fill.taking_units
    return cost if fill.match_type is _COMPLEMENTARY else fill.size_units - cost
