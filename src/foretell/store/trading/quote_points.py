"""The history of quotes: the top of each book once a minute, after its last change.

Written by the engine.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.price_history import MINUTE_S, Buckets
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import quote_points, trades

MINUTE_MS: Final = 1000 * MINUTE_S
_OPTIONAL: Final = ("best_bid_ticks", "best_ask_ticks", "last_price_ticks")
_PLACES: Final = 2**15
"""More than the ticks of any price: four such numbers fit into 63 bits."""

_TAKE_OFF: Final = (
    quote_points.update()
    .values(volume_units=quote_points.c.volume_units - sa.bindparam("cost"))
    .where(
        quote_points.c.condition_id == sa.bindparam("condition"),
        quote_points.c.minute >= sa.bindparam("since", type_=sa.BigInteger),
    )
)


class QuoteKey(NamedTuple):
    """A condition, and a minute counted from 1970."""

    condition_id: Bytes32
    minute: int


class QuotePoint(NamedTuple):
    """The top of a book, and all that was traded until then without what has failed to settle."""

    top: BookTop
    volume_units: int


class FailedTrade(NamedTuple):
    """A trade that has failed to settle."""

    condition_id: Bytes32
    matched_at_ms: int
    cost_units: int


class HistoryPoint(NamedTuple):
    """The top of a book at the end of a bucket."""

    end_s: int
    top: BookTop


async def record_quote_points(tx: Transaction, points: Mapping[QuoteKey, QuotePoint]) -> None:
    """Store the tops of books by minute; each replaces the row of the same minute."""
    rows = [(*key, *point.top, point.volume_units) for key, point in points.items()]
    await tx.upsert_rows(quote_points, rows)


async def load_failing_trades(tx: Transaction, trade_ids: Sequence[str]) -> Sequence[FailedTrade]:
    """Return those of these trades that have not failed yet."""
    rows = await tx.all(
        sa.select(trades.c.condition_id, trades.c.matched_at_ms, trades.c.cost_units).where(
            trades.c.trade_id.in_(trade_ids), trades.c.status != TradeStatus.FAILED.value
        )
    )
    return [FailedTrade._make(row) for row in rows]


async def take_off_failed(tx: Transaction, failed: Sequence[FailedTrade]) -> None:
    """Take trades that have failed off the volume of every minute since their match."""
    rows = [
        (each.cost_units, each.condition_id, each.matched_at_ms // MINUTE_MS) for each in failed
    ]
    await tx.execute_rows(_TAKE_OFF, rows)


async def load_first_minute(tx: Transaction, condition_id: Bytes32) -> int | None:
    """Return the first minute of a condition's history, or None without any."""
    first = sa.select(sa.func.min(quote_points.c.minute)).where(
        quote_points.c.condition_id == condition_id
    )
    minute: int | None = await tx.scalar(first)
    return minute


async def load_history(
    tx: Transaction, condition_id: Bytes32, wanted: Buckets
) -> Sequence[HistoryPoint]:
    """Return the last point before the end of each bucket, and nothing before the first point.

    Each bucket costs one index lookup, however many points lie between two of them.
    """
    first_end = sa.cast(sa.literal(wanted.first_end_s), sa.BigInteger).label("end_s")
    ends = sa.select(first_end).cte("ends", recursive=True)
    ends = ends.union_all(
        sa.select(ends.c.end_s + wanted.step_s).where(
            ends.c.end_s + wanted.step_s <= wanted.last_end_s
        )
    )
    point = quote_points.c
    latest = (
        sa.select(_packed(point.ticks_per_one, *(point[name] + 1 for name in _OPTIONAL)))
        .where(point.condition_id == condition_id, point.minute < ends.c.end_s // MINUTE_S)
        .order_by(point.minute.desc())
        .limit(1)
        .correlate(ends)
        .scalar_subquery()
    )
    rows = await tx.all(sa.select(ends.c.end_s, latest.label("top")).order_by(ends.c.end_s))
    return [HistoryPoint(row.end_s, _unpacked(row.top)) for row in rows if row.top is not None]


def _packed(first: sa.ColumnElement[Any], *others: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return small integers as one: a subquery has one column, and a second one would look for the row again."""
    packed = first
    for each in others:
        packed = packed * _PLACES + sa.func.coalesce(each, 0)
    return packed


def _unpacked(packed: int) -> BookTop:
    values: list[int] = []
    for _ in _OPTIONAL:
        packed, value = divmod(packed, _PLACES)
        values.append(value)
    return BookTop(packed, *(value - 1 if value else None for value in reversed(values)))
