"""Classes of amounts: each power of two has four, of equal widths.

An index has the rows of a class in the order of time. So the newest rows from an amount on are among the newest of
each class from its own on, and few classes have any rows.
"""

from typing import Final

CLASS_BITS: Final = 3
"""The leading bits of an amount that name its class."""


def class_of(units: int) -> int:
    """Return the class of an amount of 0 or more, which grows with it; those below 8 have one each."""
    dropped = max(0, units.bit_length() - CLASS_BITS)
    return (dropped << (CLASS_BITS - 1)) + (units >> dropped)
