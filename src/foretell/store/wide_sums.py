"""Exact sums of integers: SQLite refuses a sum beyond 63 bits, and PostgreSQL has another type for it.

The halves of the numbers are added up apart, and put together here.
"""

from typing import Any, Final

import sqlalchemy as sa

HALF_BITS: Final = 32
HALF_MASK: Final = (1 << HALF_BITS) - 1
SEPARATOR: Final = ":"


def wide_sum(units: sa.ColumnElement[Any]) -> sa.ColumnElement[str]:
    """Return the sum of a column, 0 without rows, as a text that `read_wide` reads."""
    whole = sa.cast(units, sa.BigInteger)
    high, low = (
        sa.cast(sa.func.coalesce(sa.func.sum(half), 0), sa.Text)
        for half in (whole.op(">>")(sa.literal(HALF_BITS, sa.Integer)), whole.op("&")(HALF_MASK))
    )
    return high.concat(SEPARATOR).concat(low)


def read_wide(text: str) -> int:
    """Return the sum in such a text."""
    high, low = text.split(SEPARATOR)
    return (int(high) << HALF_BITS) + int(low)
