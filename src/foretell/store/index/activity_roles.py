"""Roles of activities: the kind of each and, of a trade, its side and whether the wallet was the taker, as one number.

Indexes have the rows of each role apart. So a page of sells, of splits or of what takers traded passes over no row
of another role, however rare its own are.
"""

from collections.abc import Collection
from typing import Final

TRADES: Final = tuple(
    ("TRADE", side, is_taker) for is_taker in (False, True) for side in ("BUY", "SELL")
)
OTHERS: Final = tuple((kind, None, False) for kind in ("SPLIT", "MERGE", "REDEEM", "CONVERSION"))
ROLES: Final = (*TRADES, *OTHERS)
"""The kind, the side and the taker of each role; its number is its place, which the tables keep."""
_NUMBERS: Final = {role: number for number, role in enumerate(ROLES)}
ALL_ROLES: Final = tuple(range(len(ROLES)))


def role_of(kind: str, side: str | None, *, is_taker: bool) -> int:
    """Return the role of an activity; only a trade has a side and a taker."""
    return _NUMBERS[kind, side, is_taker]


def roles_of(
    kinds: Collection[str] | None, side: str | None, *, takers_only: bool
) -> tuple[int, ...]:
    """Return the roles of the activities that a filter admits; None admits every kind, or every side."""
    return tuple(
        number
        for number, (kind, own_side, is_taker) in enumerate(ROLES)
        if (kinds is None or kind in kinds)
        and side in (None, own_side)
        and (is_taker or not takers_only)
    )
