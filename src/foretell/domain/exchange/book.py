"""Order books with price-time priority in integer ticks, one per condition.

A book holds orders for both tokens at prices of the first outcome ("yes"): buying yes at p and
selling no at 1-p are bids at p, selling yes and buying no are asks. So the book never holds two
orders that could trade, whatever their tokens.

A price is an index into a flat array of levels. An integer per side has a bit set for each level
with orders, which gives the best price without a search. The orders of a level are a linked list,
so the time of a cancel does not grow with the book.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from foretell.domain.exchange.order import OrderType, Side
from foretell.domain.values.hexadecimal import Address, Bytes32


class LiveOrder(msgspec.Struct, eq=False):
    """An order that rests in a book, with its links in the queue of its level.

    Two orders are equal only if they are the same object: comparing fields would follow the links.
    """

    order_id: Bytes32
    condition_id: Bytes32
    maker: Address
    signer: Address
    owner: str
    side: Side
    is_yes: bool
    is_bid: bool
    price_ticks: int
    yes_price_ticks: int
    size_units: int
    remaining_units: int
    order_type: OrderType
    leaves_at_s: int | None
    placed_at_ms: int
    nonce: int
    trade_ids: tuple[str, ...] = ()
    previous: "LiveOrder | None" = None
    next: "LiveOrder | None" = None


class Level:
    """The orders at one price of one side, oldest first."""

    __slots__ = ("head", "size_units", "tail")

    def __init__(self) -> None:
        self.head: LiveOrder | None = None
        self.tail: LiveOrder | None = None
        self.size_units = 0


# A module's own name is read several times faster than a member of an enum: `Side.BUY` searches the
# class and its metaclass on each access. So the modules of the fast path bind the members that they
# compare with to names of their own.
_BUY: Final = Side.BUY


class LevelSize(msgspec.Struct, frozen=True, array_like=True):
    """A price and the total size of its orders."""

    price_ticks: int
    size_units: int


def is_bid(side: Side, *, is_yes: bool) -> bool:
    """Return whether the order is a bid for yes: it buys yes or sells no."""
    return (side is _BUY) == is_yes


def price_in_yes(price_ticks: int, ticks_per_one: int, *, is_yes: bool) -> int:
    """Return a price of either token as a price of yes; the same call converts it back."""
    return price_ticks if is_yes else ticks_per_one - price_ticks


class Book:
    """The resting orders of one condition."""

    __slots__ = ("_ask_mask", "_asks", "_bid_mask", "_bids", "ticks_per_one")

    def __init__(self, ticks_per_one: int) -> None:
        self.ticks_per_one = ticks_per_one
        self._bids: list[Level | None] = [None] * ticks_per_one
        self._asks: list[Level | None] = [None] * ticks_per_one
        self._bid_mask = 0
        self._ask_mask = 0

    def best_bid(self) -> int | None:
        """Return the highest bid in ticks of yes."""
        return self._bid_mask.bit_length() - 1 if self._bid_mask else None

    def best_ask(self) -> int | None:
        """Return the lowest ask in ticks of yes."""
        mask = self._ask_mask
        return (mask & -mask).bit_length() - 1 if mask else None

    def add(self, order: LiveOrder) -> None:
        """Append the order to the queue of its level.

        It must not cross the book. Only a new level can, so that is where it is asserted.
        """
        price = order.yes_price_ticks
        levels = self._bids if order.is_bid else self._asks
        level = levels[price]
        if level is None:
            level = levels[price] = Level()
        last = level.tail
        if last is None:
            level.head = order
            if order.is_bid:
                assert not self._ask_mask & ((2 << price) - 1), "no ask is at or below a bid"
                self._bid_mask |= 1 << price
            else:
                assert not self._bid_mask >> price, "no bid is at or above an ask"
                self._ask_mask |= 1 << price
        else:
            last.next = order
            order.previous = last
        level.tail = order
        level.size_units += order.remaining_units

    def remove(self, order: LiveOrder) -> None:
        """Remove the order from anywhere in its queue."""
        level = self._level(order)
        previous, following = order.previous, order.next
        assert (level.head if previous is None else previous.next) is order, "it is in the book"
        if previous is None:
            level.head = following
        else:
            previous.next = following
            order.previous = None
        if following is None:
            level.tail = previous
        else:
            following.previous = previous
            order.next = None
        level.size_units -= order.remaining_units
        if level.head is None:
            assert level.size_units == 0
            bit = 1 << order.yes_price_ticks
            if order.is_bid:
                self._bid_mask ^= bit
            else:
                self._ask_mask ^= bit

    def reduce(self, order: LiveOrder, units: int) -> None:
        """Subtract a fill from the order, which keeps its place in the queue."""
        assert 0 < units < order.remaining_units
        order.remaining_units -= units
        self._level(order).size_units -= units

    def _level(self, order: LiveOrder) -> Level:
        level = (self._bids if order.is_bid else self._asks)[order.yes_price_ticks]
        assert level is not None
        return level

    def is_met(self, limit_ticks: int, *, taker_is_bid: bool) -> bool:
        """Return whether an order with this limit would cross a resting one."""
        if taker_is_bid:
            mask = self._ask_mask
            return mask != 0 and (mask & -mask).bit_length() - 1 <= limit_ticks
        return self._bid_mask.bit_length() - 1 >= limit_ticks

    def opposite(self, limit_ticks: int, *, taker_is_bid: bool) -> Iterator[LiveOrder]:
        """Yield the orders that a taker with this limit crosses, best price first, then oldest."""
        levels, mask = self._bids, self._bid_mask
        if taker_is_bid:
            levels, mask = self._asks, self._ask_mask
        while mask:
            bit = mask & -mask if taker_is_bid else 1 << (mask.bit_length() - 1)
            price = bit.bit_length() - 1
            if price > limit_ticks if taker_is_bid else price < limit_ticks:
                return
            level = levels[price]
            assert level is not None
            order = level.head
            while order is not None:
                yield order
                order = order.next
            mask ^= bit

    def _prices(self, *, taker_is_bid: bool) -> Iterator[int]:
        mask = self._ask_mask if taker_is_bid else self._bid_mask
        while mask:
            bit = mask & -mask if taker_is_bid else 1 << (mask.bit_length() - 1)
            yield bit.bit_length() - 1
            mask ^= bit

    def change_tick(self, ticks_per_one: int) -> None:
        """Count all prices in finer ticks; no order changes its price or its place."""
        factor, rest = divmod(ticks_per_one, self.ticks_per_one)
        assert rest == 0, "a tick only becomes finer"
        for order in self.orders():
            order.price_ticks *= factor
            order.yes_price_ticks *= factor
        self._bids, self._bid_mask = _spread(self._bids, factor)
        self._asks, self._ask_mask = _spread(self._asks, factor)
        self.ticks_per_one = ticks_per_one

    def size_at(self, yes_price_ticks: int, *, is_bid: bool) -> int:
        """Return the total size at a price of yes on one side."""
        level = (self._bids if is_bid else self._asks)[yes_price_ticks]
        return 0 if level is None else level.size_units

    def levels(self, *, is_bid: bool) -> list[LevelSize]:
        """Return the levels of one side in prices of yes, the best first."""
        levels = self._bids if is_bid else self._asks
        return [
            LevelSize(price, level.size_units)
            for price in self._prices(taker_is_bid=not is_bid)
            if (level := levels[price]) is not None
        ]

    def orders(self) -> Iterator[LiveOrder]:
        """Yield all resting orders: bids then asks, best price first, then oldest."""
        yield from self.opposite(0, taker_is_bid=False)
        yield from self.opposite(self.ticks_per_one, taker_is_bid=True)


def _spread(levels: list[Level | None], factor: int) -> tuple[list[Level | None], int]:
    """Return one side's levels at their index times the factor, and the mask of those with orders."""
    spread: list[Level | None] = [None] * (len(levels) * factor)
    spread[::factor] = levels
    used = (price for price, level in enumerate(spread) if level is not None and level.head)
    return spread, sum(1 << price for price in used)
