"""Exact sums of integers: SQLite refuses a sum beyond 63 bits, and PostgreSQL has another type for it.

The halves of the numbers are added up apart, and put together here.
"""

from typing import Any, Final

import sqlalchemy as sa

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX

HALF_BITS: Final = 32
HALF_MASK: Final = (1 << HALF_BITS) - 1
SEPARATOR: Final = ":"


def wide_sum(units: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Return the sum of a column, 0 without rows, as a text that `read_wide` reads."""
    return sum_of_halves(high_half(units), low_half(units))


def high_half(units: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return a number without its lower 32 bits, divided by 2^32."""
    return sa.cast(units, sa.BigInteger).op(">>")(sa.literal(HALF_BITS, sa.Integer))


def low_half(units: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return the lower 32 bits of a number."""
    return sa.cast(units, sa.BigInteger).op("&")(HALF_MASK)


def sum_of_halves(high: sa.ColumnElement[Any], low: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Return the sum of numbers of which two columns have the halves, as `wide_sum` does; either half may be negative."""
    halves = (sa.cast(sa.func.coalesce(sa.func.sum(half), 0), sa.Text) for half in (high, low))
    high_sum, low_sum = halves
    return high_sum.concat(SEPARATOR).concat(low_sum)


def bounded_sum(units: sa.ColumnElement[Any]) -> sa.ColumnElement[int]:
    """Return the sum of a column without negative numbers, 0 without rows, and at most what a column holds."""
    high, low = (
        sa.cast(sa.func.coalesce(sa.func.sum(half), 0), sa.BigInteger)
        for half in (high_half(units), low_half(units))
    )
    is_too_large = high + high_half(low) > AMOUNT_UNITS_MAX >> HALF_BITS
    return sa.case((is_too_large, AMOUNT_UNITS_MAX), else_=high * (HALF_MASK + 1) + low)


def read_wide(text: str) -> int:
    """Return the sum in such a text."""
    high, low = text.split(SEPARATOR)
    return (int(high) << HALF_BITS) + int(low)
