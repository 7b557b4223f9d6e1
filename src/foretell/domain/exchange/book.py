"""The book of a condition: both outcome tokens in one, with price-time priority and matching.

A bid wants yes to rise: BUY yes at 60, or SELL no at 40. An ask wants no to rise: BUY no at 40, or
SELL yes at 60. So the *rank* of a price is the price of yes on the bid side and the price of no on
the ask side. A higher rank is the better price on both sides, and a bid and an ask cross when their
ranks add up to one or more: two buyers then pay for a complete set together.

Levels are objects that stay when they are empty, one for each rank that was ever used. The orders of
a level are a linked list, so the time of a cancel does not grow with the book.
"""

from collections.abc import Iterator, Sequence
from typing import Final, Generic, Self, TypeVar

import msgspec

from foretell.domain.exchange.order import Side
from foretell.domain.values.amounts import lots_by_price

# A module's own name is read several times faster than a member of an enum: `Side.BUY` searches the
# class and its metaclass on each access. So the modules of the fast path bind the members that they
# compare with to names of their own.
_BUY: Final = Side.BUY


class RestingOrder:
    """An order in the queue of its level; orders of one `wallet` never trade with each other.

    Who makes it sets its `wallet`, `remaining_units` and `level`: objects without `__init__` are made
    in a third of the time. `previous` and `next` are set when it is added. It keeps its level when
    it leaves the book.
    """

    __slots__ = ("level", "next", "previous", "remaining_units", "wallet")
    wallet: object
    remaining_units: int
    level: "Level[Self]"
    previous: Self | None
    next: Self | None


Order = TypeVar("Order", bound=RestingOrder)

_EXHAUSTED: Final = True


class LevelSize(msgspec.Struct, frozen=True, array_like=True):
    """A price and the total size of its orders."""

    price_ticks: int
    size_units: int


class Match(msgspec.Struct, Generic[Order], frozen=True, gc=False):
    """The resting orders that a taker meets, and how many units of each it receives.

    `left_units` is what the taker still wants, of its size or of its budget. `is_exhausted` means
    that this is less than a lot at the last price that it met, so that the taker and not the book
    ended the match. `own_orders` are crossed orders of the same wallet, `dust_orders` those that the
    fills leave with less than a lot: both leave the book.
    """

    fills: list[tuple[Order, int]]
    left_units: int
    is_exhausted: bool
    own_orders: Sequence[Order] = ()
    dust_orders: Sequence[Order] = ()

    @property
    def crosses(self) -> bool:
        """Whether the taker meets any resting order."""
        return bool(self.fills or self.own_orders)


class Level(Generic[Order]):
    """The orders at one price of one side, oldest first; `is_marked` says whether its mask bit is set.

    `size_units` is the sum of its orders' sizes, and `dust_units` of what each has beyond whole lots: the rest of
    the size can be matched.
    """

    __slots__ = (
        "dust_units",
        "head",
        "is_marked",
        "lot_units",
        "rank",
        "side",
        "size_units",
        "tail",
    )

    def __init__(self, side: "BookSide[Order]", rank: int, lot_units: int) -> None:
        self.side = side
        self.rank = rank
        self.lot_units = lot_units
        self.head: Order | None = None
        self.tail: Order | None = None
        self.size_units = self.dust_units = 0
        self.is_marked = False

    @property
    def yes_price_ticks(self) -> int:
        """The price of yes at which the orders of this level rest."""
        return self.rank if self.side.is_bid else self.side.ticks_per_one - self.rank


class BookSide(Generic[Order]):
    """The bids or the asks of a book; `best_rank` is zero when there are none.

    Bit r of the mask is set if the level of rank r may have orders. The bit of a level that empties
    stays set until it would be the best one, since most levels soon have orders again; each bit that
    is set is cleared at most once, so finding the next best level costs no more than adding did.
    """

    __slots__ = ("_mask", "best_rank", "is_bid", "levels", "opposite", "ticks_per_one")
    opposite: "BookSide[Order]"

    def __init__(self, ticks_per_one: int, *, is_bid: bool) -> None:
        self.ticks_per_one = ticks_per_one
        self.is_bid = is_bid
        self.best_rank = 0
        self.levels: list[Level[Order] | None] = [None] * ticks_per_one
        self._mask = 0

    def level(self, rank: int) -> Level[Order]:
        """Return the level of a rank, a new one if it was never used."""
        level = self.levels[rank]
        if level is None:
            lots = lots_by_price(self.ticks_per_one)
            level = self.levels[rank] = Level(self, rank, lots[rank])
        return level

    def add(self, order: Order) -> None:
        """Append the order to the queue of its level; it must not cross the other side."""
        level = order.level
        last = level.tail
        order.previous = last
        order.next = None
        if last is None:
            level.head = order
            rank = level.rank
            if rank > self.best_rank:
                assert rank + self.opposite.best_rank < self.ticks_per_one, "no bid crosses an ask"
                self.best_rank = rank
            if not level.is_marked:
                level.is_marked = True
                self._mask |= 1 << rank
        else:
            last.next = order
        level.tail = order
        units = order.remaining_units
        level.size_units += units
        level.dust_units += units % level.lot_units

    def insert(self, order: Order, older: Order | None) -> None:
        """Add the order to its level behind an older one there, or first of all."""
        level = order.level
        following = level.head if older is None else older.next
        if following is None:
            self.add(order)
            return
        order.previous, order.next, following.previous = older, following, order
        if older is None:
            level.head = order
        else:
            older.next = order
        level.size_units += order.remaining_units
        level.dust_units += order.remaining_units % level.lot_units

    def remove(self, order: Order) -> None:
        """Remove the order from anywhere in its queue."""
        level, previous, following = order.level, order.previous, order.next
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
        units = order.remaining_units
        level.size_units -= units
        level.dust_units -= units % level.lot_units
        if level.head is None and level.rank == self.best_rank:
            self._find_best()

    def reduce(self, order: Order, units: int) -> None:
        """Subtract a fill, which is whole lots, from the order, which keeps its place in the queue."""
        assert 0 < units < order.remaining_units
        assert units % order.level.lot_units == 0
        order.remaining_units -= units
        order.level.size_units -= units

    def enlarge(self, order: Order, units: int) -> None:
        """Add units to the order, which keeps its place in the queue."""
        level, before_units = order.level, order.remaining_units
        order.remaining_units += units
        level.size_units += units
        lot_units = level.lot_units
        level.dust_units += order.remaining_units % lot_units - before_units % lot_units

    def take(  # noqa: PLR0915 - one pass instead of a plan and its execution, see below
        self, limit_rank: int, wallet: object, left_units: int
    ) -> Match[Order]:
        """Match a taker from the other side with these orders, and remove what it fills.

        The taker wants `left_units` tokens from orders of this rank or a better one. Nothing is
        refused here: an order that must be filled whole, or must not match, is planned first.
        """
        fills: list[tuple[Order, int]] = []
        own_orders: list[Order] = []
        dust_orders: list[Order] = []
        is_exhausted, rank = False, self.best_rank
        # One pass matches and removes: a level is walked once, and an order that leaves it is not
        # unlinked from its neighbours, which leave too. What `plan_match` does in two steps takes
        # half of the time here; tests hold the two to the same matches.
        while rank >= limit_rank:
            level = self.levels[rank]
            assert level is not None
            lot_units = level.lot_units
            met_units = left_units
            wanted = left_units - left_units % lot_units
            order = level.head
            while order is not None:
                if wanted == 0:
                    order.previous, level.head = None, order
                    return Match(fills, left_units, _EXHAUSTED, own_orders, dust_orders)
                held, following = order.remaining_units, order.next
                if order.wallet is wallet:
                    own_orders.append(order)
                    level.dust_units -= held % lot_units
                else:
                    units = held - held % lot_units
                    assert units > 0, "no dust rests"
                    if wanted < units:
                        order.remaining_units = held - wanted
                        level.size_units -= wanted
                        fills.append((order, wanted))
                        order.previous, level.head = None, order
                        left_units -= wanted
                        return Match(fills, left_units, _EXHAUSTED, own_orders, dust_orders)
                    fills.append((order, units))
                    if units < held:
                        dust_orders.append(order)
                        level.dust_units -= held - units
                    order.remaining_units = held - units
                    left_units -= units
                    wanted -= units
                level.size_units -= held
                order.previous = order.next = None
                order = following
            level.head = level.tail = None
            rank = self._find_best()
            if left_units < met_units:
                is_exhausted = wanted == 0
        return Match(fills, left_units, is_exhausted, own_orders, dust_orders)

    def walk(self, limit_rank: int) -> Iterator[Order]:
        """Yield the orders of a rank or a better one, best first, then oldest."""
        for level in self.usedlevels(limit_rank):
            order = level.head
            while order is not None:
                yield order
                order = order.next

    def usedlevels(self, limit_rank: int = 1) -> Iterator[Level[Order]]:
        """Yield the levels with orders of a rank or a better one, the best first."""
        # Its digits are searched by one call for each level: arithmetic on a mask copies all of it.
        bits = bin(self._mask >> limit_rank)
        last_rank, place = limit_rank + len(bits) - 1, bits.find("1")
        while place >= 0:
            level = self.levels[last_rank - place]
            assert level is not None
            if level.head is not None:
                yield level
            place = bits.find("1", place + 1)

    def change_tick(self, ticks_per_one: int, factor: int) -> None:
        """Count all ranks in finer ticks; no order changes its price or its place."""
        lots, used = (
            lots_by_price(ticks_per_one),
            [each for each in self.levels if each is not None],
        )
        self.ticks_per_one = ticks_per_one
        self.best_rank *= factor
        self.levels = [None] * ticks_per_one
        self._mask = 0
        for level in used:
            level.rank *= factor
            assert level.lot_units == lots[level.rank], "a price has the same lot at any tick"
            level.is_marked = level.head is not None
            self._mask |= level.is_marked << level.rank
            self.levels[level.rank] = level

    def _find_best(self) -> int:
        """Return the best rank, which is lower than before, and clear the bits above it."""
        mask, levels, rank = self._mask, self.levels, self.best_rank
        while rank > 0:
            level = levels[rank]
            assert level is not None
            if level.head is not None:
                break
            level.is_marked = False
            mask ^= 1 << rank
            rank = mask.bit_length() - 1
        else:
            rank = 0
        self._mask = mask
        self.best_rank = rank
        return rank


class Book(Generic[Order]):
    """The resting orders of one condition."""

    __slots__ = ("asks", "bids", "ticks_per_one")

    def __init__(self, ticks_per_one: int) -> None:
        self.ticks_per_one = ticks_per_one
        self.bids: BookSide[Order] = BookSide(ticks_per_one, is_bid=True)
        self.asks: BookSide[Order] = BookSide(ticks_per_one, is_bid=False)
        self.bids.opposite, self.asks.opposite = self.asks, self.bids

    def side(self, *, is_bid: bool) -> BookSide[Order]:
        """Return one side of the book."""
        return self.bids if is_bid else self.asks

    def best_bid(self) -> int | None:
        """Return the highest bid in ticks of yes."""
        return self.bids.best_rank or None

    def best_ask(self) -> int | None:
        """Return the lowest ask in ticks of yes."""
        rank = self.asks.best_rank
        return self.ticks_per_one - rank if rank else None

    def change_tick(self, ticks_per_one: int) -> None:
        """Count all prices in finer ticks; no order changes its price or its place."""
        factor, rest = divmod(ticks_per_one, self.ticks_per_one)
        assert rest == 0, "a tick only becomes finer"
        self.ticks_per_one = ticks_per_one
        self.bids.change_tick(ticks_per_one, factor)
        self.asks.change_tick(ticks_per_one, factor)

    def levels(self, *, is_bid: bool) -> list[LevelSize]:
        """Return the levels of one side in prices of yes, the best first."""
        return [
            LevelSize(level.yes_price_ticks, level.size_units)
            for level in self.side(is_bid=is_bid).usedlevels()
        ]

    def orders(self) -> Iterator[Order]:
        """Yield all resting orders: bids then asks, best price first, then oldest."""
        yield from self.bids.walk(1)
        yield from self.asks.walk(1)


def is_bid(side: Side, *, is_yes: bool) -> bool:
    """Return whether the order is a bid for yes: it buys yes or sells no."""
    return (side is _BUY) == is_yes


def price_in_yes(price_ticks: int, ticks_per_one: int, *, is_yes: bool) -> int:
    """Return a price of either token as a price of yes; the same call converts it back."""
    return price_ticks if is_yes else ticks_per_one - price_ticks
