"""Buckets, parts and classes of amounts, periods of keys, and roles of activities, read off their digits and words.

The index computes them otherwise (`domain/portfolio/rank_buckets.py`, `store/index/amount_classes.py`, `activity_roles.py`). A fault there
shows as a difference, since nothing here calls it.
"""

from typing import Final

BUCKET_DIGITS: Final = 7
"""The leading binary digits that name a bucket."""
PART_DIGITS: Final = 15
"""Those that name a part of a bucket."""
CLASS_DIGITS: Final = 3
"""Those that name a class."""
OTHER_KINDS: Final = ("SPLIT", "MERGE", "REDEEM", "CONVERSION")
"""Kinds of activities that are no trades."""
PERIOD_DIGITS: Final = 3
"""The last decimal digits of a key, which are the days of its period."""


def bucket_of(units: int) -> int:
    """Return the bucket of an amount, which may be negative."""
    bucket = _leading(abs(units), BUCKET_DIGITS)
    return -bucket if units < 0 else bucket


def first_of_part(units: int) -> int:
    """Return the smallest amount of the part that an amount is in."""
    digits = f"{abs(units):b}"
    rest = "1" if units < 0 else "0"
    first = int(digits[:PART_DIGITS].ljust(len(digits), rest), 2)
    return -first if units < 0 else first


def class_of(units: int) -> int:
    """Return the class of an amount of 0 or more."""
    return _leading(units, CLASS_DIGITS)


def role_of(kind: str, side: str | None, *, is_taker: bool) -> int:
    """Return the number of an activity's role: first the trades of makers, then those of takers, then other kinds."""
    if kind == "TRADE":
        return (side == "SELL") + 2 * is_taker
    return 4 + OTHER_KINDS.index(kind)


def days_of(key: int) -> int:
    """Return the days of the period that a key of any generation stands for."""
    return int(str(key)[-PERIOD_DIGITS:])


def _leading(units: int, count: int) -> int:
    """Return a number that grows with the leading digits of an amount and the number of those after them."""
    digits = f"{units:b}"
    return (1 << (count - 1)) * max(0, len(digits) - count) + int(digits[:count], 2)
