"""The tick of a market: the smallest step of its price, which only becomes finer.

A finer tick divides the one before, so a whole number of old ticks is a whole number of new ones.
Resting orders keep their price, place and reservation, and an order signed for the old tick is
still valid.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.exchange import TickNotFiner

TICKS_PER_ONE: Final = (10, 100, 200, 400, 1_000, 10_000)
"""The ticks that clients support; every price has a finite decimal."""

EDGE_PRICE: Final = Fraction(4, 100)
"""Below this price, and above one minus it, a coarse tick is too large a part of the price."""

FINER_AT_THE_EDGE: Final[Mapping[int, int]] = MappingProxyType({100: 1_000})
"""The tick that a market changes to when it trades at the edge, by its present tick."""


def check_finer(ticks_per_one: int, finer_ticks_per_one: int) -> None:
    """Refuse a tick that does not divide the present one, or that clients do not support."""
    is_finer = finer_ticks_per_one > ticks_per_one and finer_ticks_per_one % ticks_per_one == 0
    if not (is_finer and finer_ticks_per_one in TICKS_PER_ONE):
        raise TickNotFiner(ticks_per_one, finer_ticks_per_one)


def ticks_after_trade(ticks_per_one: int, last_price_ticks: int) -> int:
    """Return the ticks that a market should have after a trade at this price: finer at the edge."""
    assert 0 < last_price_ticks < ticks_per_one
    finer_ticks_per_one = FINER_AT_THE_EDGE.get(ticks_per_one, ticks_per_one)
    from_edge_ticks = min(last_price_ticks, ticks_per_one - last_price_ticks)
    is_at_edge = from_edge_ticks * EDGE_PRICE.denominator < EDGE_PRICE.numerator * ticks_per_one
    return finer_ticks_per_one if is_at_edge else ticks_per_one
