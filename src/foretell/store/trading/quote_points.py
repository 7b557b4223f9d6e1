"""The history of quotes: the top of each book once a minute, after its last change.

Written by the engine.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.price_history import MINUTE_S, Buckets
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import quote_points

MINUTE_MS: Final = 1000 * MINUTE_S
_OPTIONAL: Final = ("best_bid_ticks", "best_ask_ticks", "last_price_ticks")
TOPS_KEPT_MAX: Final = 4_096
"""Tops of books that are kept: most points have one that another had before."""
_PLACES: Final = 2**15
"""More than the ticks of any price: four such numbers fit into 63 bits."""

_OF_CONDITION: Final = quote_points.c.condition_id == sa.bindparam("condition")
_FIRST_MINUTE: Final = sa.select(sa.func.min(quote_points.c.minute)).where(_OF_CONDITION)


class QuoteKey(NamedTuple):
    """A condition, and a minute counted from 1970."""

    condition_id: Bytes32
    minute: int


class QuotePoint(NamedTuple):
    """The top of a book, and all that was traded until then, also what fails to settle (`failed_volumes.py`)."""

    top: BookTop
    volume_units: int


class HistoryPoint(NamedTuple):
    """The top of a book at the end of a bucket."""

    end_s: int
    top: BookTop


async def record_quote_points(tx: Transaction, points: Mapping[QuoteKey, QuotePoint]) -> None:
    """Store the tops of books by minute; each replaces the row of the same minute."""
    rows = [(*key, *point.top, point.volume_units) for key, point in points.items()]
    await tx.upsert_rows(quote_points, rows)


async def load_first_minute(tx: Transaction, condition_id: Bytes32) -> int | None:
    """Return the first minute of a condition's history, or None without any."""
    minute: int | None = await tx.scalar(_FIRST_MINUTE, {"condition": condition_id})
    return minute


async def load_history(
    tx: Transaction, condition_id: Bytes32, wanted: Buckets
) -> Sequence[HistoryPoint]:
    """Return the last point before the end of each bucket, and nothing before the first point.

    Each bucket costs one index lookup, however many points lie between two of them.
    """
    first_s, last_s, step_s = wanted
    if first_s > last_s:
        return ()
    values = {"condition": condition_id, "first_s": first_s, "last_s": last_s, "step_s": step_s}
    rows = await tx.all(_history(), values)
    return [HistoryPoint(row.end_s, _unpacked(row.top)) for row in rows if row.top is not None]


@lru_cache(maxsize=1)
def _history() -> sa.Select[Any]:
    """Return the query for a history, which is built once: it costs as much as many of its points."""
    first_s, last_s, step_s = map(_seconds, ("first_s", "last_s", "step_s"))
    ends = sa.select(first_s.label("end_s")).cte("ends", recursive=True)
    next_s = ends.c.end_s + step_s
    next_s = sa.case((next_s < last_s, next_s), else_=last_s)
    ends = ends.union_all(sa.select(next_s).where(ends.c.end_s < last_s))
    point = quote_points.c
    latest = (
        sa.select(_packed(point.ticks_per_one, *(point[name] + 1 for name in _OPTIONAL)))
        .where(_OF_CONDITION, point.minute < ends.c.end_s // MINUTE_S)
        .order_by(point.minute.desc())
        .limit(1)
        .correlate(ends)
        .scalar_subquery()
    )
    return sa.select(ends.c.end_s, latest.label("top")).order_by(ends.c.end_s)


def _seconds(name: str) -> sa.ColumnElement[int]:
    return sa.cast(sa.bindparam(name, type_=sa.BigInteger), sa.BigInteger)


def _packed(first: sa.ColumnElement[Any], *others: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return small integers as one: a subquery has one column, and a second one would look for the row again."""
    packed = first
    for each in others:
        packed = packed * _PLACES + sa.func.coalesce(each, 0)
    return packed


@lru_cache(maxsize=TOPS_KEPT_MAX)
def _unpacked(packed: int) -> BookTop:
    """Return the top of a book; the points of a history have few different ones."""
    values: list[int] = []
    for _ in _OPTIONAL:
        packed, value = divmod(packed, _PLACES)
        values.append(value)
    return BookTop(packed, *(value - 1 if value else None for value in reversed(values)))
