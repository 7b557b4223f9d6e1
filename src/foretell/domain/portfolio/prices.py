"""Current prices of tokens, and values derived from them.

A price is an exact fraction of one collateral. A book's prices are those of the first outcome
("yes"); the other outcome's price is one minus that, so a complete set is always worth one. Prices
become decimals only when a response is encoded.
"""

from fractions import Fraction
from functools import lru_cache
from typing import Final, NamedTuple

from foretell.domain.portfolio.positions import Payout
from foretell.domain.values.amounts import nearest

ONE_HALF: Final = Fraction(1, 2)
"""The price of a token without orders and trades."""

NARROW_SPREAD_MAX: Final = Fraction(1, 10)
"""The widest spread at which the midpoint counts as the price."""

PRICES_KEPT_MAX: Final = 4_096
"""Prices that are kept: many tokens have the same, and fractions are computed slowly."""

LIQUIDITY_REACH: Final = Fraction(1, 10)
"""The distance from the price, as a part of it, within which orders count as liquidity."""


class BookTop(NamedTuple):
    """The best prices of yes and its last traded price, in ticks, or None."""

    ticks_per_one: int
    best_bid_ticks: int | None = None
    best_ask_ticks: int | None = None
    last_price_ticks: int | None = None

    def seen_from(self, *, is_yes: bool) -> "BookTop":
        """Return the top of a token's book: a bid for yes is an ask for no."""
        if is_yes:
            return self
        return BookTop(
            self.ticks_per_one,
            best_bid_ticks=self._complement(self.best_ask_ticks),
            best_ask_ticks=self._complement(self.best_bid_ticks),
            last_price_ticks=self._complement(self.last_price_ticks),
        )

    def refined(self, ticks_per_one: int) -> "BookTop":
        """Return the same prices in finer ticks."""
        factor = ticks_per_one // self.ticks_per_one
        finer = (None if ticks is None else ticks * factor for ticks in self[1:])
        return BookTop(ticks_per_one, *finer)

    def _complement(self, ticks: int | None) -> int | None:
        return None if ticks is None else self.ticks_per_one - ticks


def midpoint(top: BookTop) -> Fraction | None:
    """Return the price half-way between best bid and ask, or None when a side is empty."""
    if top.best_bid_ticks is None or top.best_ask_ticks is None:
        return None
    return Fraction(top.best_bid_ticks + top.best_ask_ticks, 2 * top.ticks_per_one)


def spread(top: BookTop) -> Fraction | None:
    """Return the spread between best bid and ask, or None when a side is empty."""
    if top.best_bid_ticks is None or top.best_ask_ticks is None:
        return None
    return Fraction(top.best_ask_ticks - top.best_bid_ticks, top.ticks_per_one)


def last_price(top: BookTop) -> Fraction | None:
    """Return the price of the last trade, or None before the first."""
    if top.last_price_ticks is None:
        return None
    return Fraction(top.last_price_ticks, top.ticks_per_one)


def payout_fraction(payout: Payout, *, is_yes: bool) -> Fraction:
    """Return the price at which a token of a resolved condition redeems."""
    return Fraction(payout.yes if is_yes else payout.no, payout.yes + payout.no)


@lru_cache(maxsize=PRICES_KEPT_MAX)
def current_price(top: BookTop | None, payout: Payout | None, *, is_yes: bool) -> Fraction:
    """Return the price that a token is valued at.

    This is its payout when the condition is resolved, else the midpoint if the spread is narrow,
    else the last traded price, else one half.
    """
    if payout is not None:
        return payout_fraction(payout, is_yes=is_yes)
    if top is None:
        return ONE_HALF
    width, middle, last = spread(top), midpoint(top), last_price(top)
    price = last
    if width is not None and width <= NARROW_SPREAD_MAX:
        price = middle
    return _of_token(ONE_HALF if price is None else price, is_yes=is_yes)


@lru_cache(maxsize=PRICES_KEPT_MAX)
def listed_price(top: BookTop | None, payout: Payout | None, *, is_yes: bool) -> Fraction:
    """Return the price of a market in lists: as `current_price`, but with any spread."""
    if payout is not None:
        return payout_fraction(payout, is_yes=is_yes)
    if top is None:
        return ONE_HALF
    middle = midpoint(top)
    price = last_price(top) if middle is None else middle
    return _of_token(ONE_HALF if price is None else price, is_yes=is_yes)


def value_units(size_units: int, price: Fraction) -> int:
    """Return the value of this many tokens, to the nearest base unit, half to even."""
    return nearest(size_units * price.numerator, price.denominator)


def competitiveness(price: Fraction) -> Fraction:
    """Return the openness of a question: 1 at even odds, 0.8 when it is decided."""
    return 1 / (1 + (price - ONE_HALF) ** 2)


def _of_token(price_of_yes: Fraction, *, is_yes: bool) -> Fraction:
    return price_of_yes if is_yes else 1 - price_of_yes
