"""The tick of a market: the smallest step of its price, which only ever becomes finer.

A finer tick divides the one before, so every price that was a whole number of ticks still is one.
Whoever waits in the book keeps its price, its place and what it reserved; an order that was signed
for the tick before is as good as one for the tick of now.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final

from foretell.domain.errors.exchange import TickNotFiner

TICKS_PER_ONE: Final = (10, 100, 200, 400, 1_000, 10_000)
"""The ticks that clients know, and no others; every price has a finite decimal."""

EDGE_PRICE: Final = Fraction(4, 100)
"""Below this price, and above the rest of one, a coarse tick is too large a part of the price."""

FINER_AT_THE_EDGE: Final[Mapping[int, int]] = MappingProxyType({100: 1_000})
"""How fine a tick becomes when a market trades at the edge; of others it stays."""


def check_finer(ticks_per_one: int, finer_ticks_per_one: int) -> None:
    """Refuse a change of the tick that would leave a price between two ticks, or clients at a loss."""
    is_finer = finer_ticks_per_one > ticks_per_one and finer_ticks_per_one % ticks_per_one == 0
    if not (is_finer and finer_ticks_per_one in TICKS_PER_ONE):
        raise TickNotFiner(ticks_per_one, finer_ticks_per_one)


def ticks_after_trade(ticks_per_one: int, last_price_ticks: int) -> int:
    """Return the ticks that a market which last traded at this price should have: finer at the edge."""
    finer_ticks_per_one = FINER_AT_THE_EDGE.get(ticks_per_one, ticks_per_one)
    from_edge_ticks = min(last_price_ticks, ticks_per_one - last_price_ticks)
    is_at_edge = from_edge_ticks * EDGE_PRICE.denominator < EDGE_PRICE.numerator * ticks_per_one
    return finer_ticks_per_one if is_at_edge else ticks_per_one
