"""Operations on one book in terms of any matching engine, the same in every run.

Orders rest on both sides until the book has the wanted depth. Then each round of six operations keeps the
depth: twice an order somewhere in the book is canceled and another one rests, an order becomes the best of
its side, and a taker meets it. So one in four of the placed orders crosses; a best order is filled in part
first, and its remainder together with all of the next one.
"""

from collections.abc import Iterator
from itertools import count
from typing import Final, NamedTuple

ROUND: Final = 6
BEST_BID: Final = 41
BEST_ASK: Final = 59
_SCATTER: Final = 2_654_435_761
"""A prime that maps consecutive numbers far from each other."""


class BookOperation(NamedTuple):
    """An order that is placed, or the cancellation of a resting one; whole lots, prices in ticks."""

    number: int
    is_cancel: bool
    is_bid: bool
    price_ticks: int
    lots: int

    @property
    def is_taker(self) -> bool:
        """Return whether the order meets the best one of the other side."""
        best = BEST_ASK if self.is_bid else BEST_BID
        return not self.is_cancel and self.price_ticks == best


def operations(depth: int) -> Iterator[BookOperation]:
    """Yield the operations that fill a book to a depth, then rounds without end."""
    numbers = count()
    resting: list[BookOperation] = []
    for _ in range(depth):
        resting.append(_resting(next(numbers)))
        yield resting[-1]
    for turn in count():
        for _ in range(2):
            number = next(numbers)
            chosen = number * _SCATTER % len(resting)
            resting[chosen], placed = _resting(number), resting[chosen]
            yield placed._replace(is_cancel=True)
            yield resting[chosen]
        is_bid, is_first = turn // 2 % 2 == 0, turn % 2 == 0
        price = BEST_BID if is_bid else BEST_ASK
        yield BookOperation(next(numbers), False, is_bid, price, 2)  # noqa: FBT003 - fields of a row
        yield BookOperation(next(numbers), False, not is_bid, price, 1 if is_first else 3)  # noqa: FBT003 - the same


def _resting(number: int) -> BookOperation:
    """Return an order that meets no other, on either side in turn."""
    is_bid = number % 2 == 0
    distance = 1 + number * 7 % (BEST_BID - 1)
    price = BEST_BID - distance if is_bid else BEST_ASK + distance
    return BookOperation(number, False, is_bid, price, 1)  # noqa: FBT003 - fields of a row
