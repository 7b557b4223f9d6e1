"""The history of quotes: the top of each book once a minute, after its last change.

Written by the engine.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.price_history import MINUTE_S, Buckets
from foretell.domain.portfolio.prices import BookTop
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Transaction
from foretell.store.tables import quote_points, trades

MINUTE_MS: Final = 1000 * MINUTE_S

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
    latest = (
        sa.select(sa.func.max(quote_points.c.minute))
        .where(
            quote_points.c.condition_id == condition_id,
            quote_points.c.minute < ends.c.end_s // MINUTE_S,
        )
        .correlate(ends)
        .scalar_subquery()
    )
    known = sa.select(ends.c.end_s, latest.label("minute")).subquery()
    query = (
        sa.select(
            known.c.end_s,
            quote_points.c.ticks_per_one,
            quote_points.c.best_bid_ticks,
            quote_points.c.best_ask_ticks,
            quote_points.c.last_price_ticks,
        )
        .join(quote_points, quote_points.c.minute == known.c.minute)
        .where(quote_points.c.condition_id == condition_id)
        .order_by(known.c.end_s)
    )
    return [HistoryPoint(row[0], BookTop._make(row[1:])) for row in await tx.all(query)]
