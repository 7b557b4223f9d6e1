"""The gain of a position, as leaderboards add it up: integers, so that sums have one value in any order."""

from fractions import Fraction
from typing import Final, NamedTuple

from foretell.domain.portfolio.prices import value_units
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX


class Held(NamedTuple):
    """The part of a position that its gain is computed from."""

    size_units: int
    cost_units: int
    realized_units: int

    @property
    def is_win(self) -> bool:
        """Whether the position is closed, with a gain."""
        return self.size_units == 0 and self.realized_units > 0


SUM_MAX: Final = AMOUNT_UNITS_MAX // 2
"""The largest sum: two of them never exceed a column."""

NOTHING: Final = Held(0, 0, 0)


def gain_units(held: Held, price_of_yes: Fraction, *, is_yes: bool) -> int:
    """Return the realized gain, and the value beyond the cost, rounded to base units per position."""
    price = price_of_yes if is_yes else 1 - price_of_yes
    return held.realized_units + value_units(held.size_units, price) - held.cost_units


def bounded(units: int) -> int:
    """Return the units within what a sum may be."""
    return max(-SUM_MAX, min(units, SUM_MAX))
