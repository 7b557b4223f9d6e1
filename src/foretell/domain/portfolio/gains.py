"""The gain of a position, as leaderboards add it up: integers, so that sums have one value in any order."""

from fractions import Fraction
from typing import NamedTuple

from foretell.domain.portfolio.prices import value_units
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX


class Held(NamedTuple):
    """The part of a position that its gain is computed from."""

    size_units: int
    cost_units: int
    realized_units: int


NOTHING: Held = Held(0, 0, 0)


def gain_units(held: Held, price_of_yes: Fraction, *, is_yes: bool) -> int:
    """Return the realized gain, and the value beyond the cost, rounded to base units per position."""
    price = price_of_yes if is_yes else 1 - price_of_yes
    return held.realized_units + value_units(held.size_units, price) - held.cost_units


def bounded_sum(units: int, change_units: int) -> int:
    """Return the sum of two amounts, limited to what a column holds."""
    return max(-AMOUNT_UNITS_MAX, min(units + change_units, AMOUNT_UNITS_MAX))
