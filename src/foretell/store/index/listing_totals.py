"""Totals of markets and events, by which lists are filtered, sorted and shown; written by the indexer.

A market's totals change with its quote and its payout, and when a point of its history leaves a window. So a round
computes those of few markets, and a list reads what is kept.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.failed_volumes import periods_since
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Transaction
from foretell.store.index import lock_waits
from foretell.store.lookups import load_rows
from foretell.store.quoted_columns import SETTLED_MS
from foretell.store.tables import (
    event_totals,
    events,
    listing_cursors,
    market_totals,
    markets,
    payouts,
    quote_points,
    quotes,
    series_totals,
    sports_events,
)
from foretell.store.tables.listings import AMOUNTS, ROLLING
from foretell.store.tables.trading import OF_ANY_MINUTE
from foretell.store.valuation import (
    CHANGE_PERIODS_MS,
    MINUTE_MS,
    VOLUME,
    VOLUME_PERIODS_MS,
    liquidity,
    listed_price_of_yes,
    listed_price_of_yes_at,
    quoted_price,
    read_liquidity,
    real,
    volume_since,
)

CURSOR: Final = "listings"
UNSETTLED: Final = -1
_LOCK: Final = 0x746F_7461_6C73
"""'totals': held while the rows of an event or a series are computed from those of its markets or events."""
_PERIODS_MS: Final = tuple(dict.fromkeys((*CHANGE_PERIODS_MS, *VOLUME_PERIODS_MS)))
_GREATEST: Final = ("evenness", "ends_at_ms")


class MarketTotals(NamedTuple):
    """The totals of a market, in the order of the columns; prices are of Yes, None where there is none."""

    market_id: int
    event_id: int
    volume_units: int
    day_units: int
    week_units: int
    month_units: int
    year_units: int
    liquidity_units: int
    evenness: float
    slug: str
    title: str
    ends_at_ms: int
    closed_at_s: int | None
    best_bid: float | None
    last_price: float | None
    hour_price: float | None
    day_price: float | None
    week_price: float | None
    month_price: float | None
    seen_ms: int
    failed_units: int


async def load_listed_until(tx: Transaction) -> int | None:
    """Return the time at which the windows of the totals end, or None before the first round."""
    at_ms: int | None = await tx.scalar(
        sa.select(listing_cursors.c.at_ms).where(listing_cursors.c.name == CURSOR)
    )
    return at_ms


async def record_listed_until(tx: Transaction, at_ms: int) -> None:
    """Store the time at which the windows end.

    Raises RowsLocked when another transaction holds it for too long.
    """
    await lock_waits.bound_waits(tx)
    await tx.upsert_rows(listing_cursors, [(CURSOR, at_ms)])


async def load_changed_markets(tx: Transaction, was_ms: int | None, now_ms: int) -> Sequence[int]:
    """Return the markets whose totals may differ from those of a time, by ascending id."""
    changed = await tx.all(
        sa.select(markets.c.market_id)
        .select_from(
            _quoted().outerjoin(market_totals, market_totals.c.market_id == markets.c.market_id)
        )
        .where(sa.or_(*_differences(), *_paid_between(was_ms, now_ms)))
    )
    found = {row.market_id for row in changed}
    if left := _left_windows(was_ms, now_ms):
        rows = await tx.all(
            sa.select(markets.c.market_id)
            .join(quote_points, quote_points.c.condition_id == markets.c.condition_id)
            .where(OF_ANY_MINUTE, sa.or_(*left))
            .distinct()
        )
        found |= {row.market_id for row in rows}
    return sorted(found)


@cache
def _market_totals() -> sa.Select[Any]:
    """Return the query of markets' totals, which takes tens of milliseconds to build."""
    volumes = [
        volume_since(_number(f"first_minute_{number}"), _number(f"first_day_{number}"))
        for number, _ in enumerate(VOLUME_PERIODS_MS)
    ]
    prices = [
        listed_price_of_yes_at(
            _number(f"at_s_{number}"), _number(f"at_minute_{number}"), markets.c.condition_id
        )
        for number, _ in enumerate(CHANGE_PERIODS_MS)
    ]
    return (
        sa.select(
            markets.c.market_id,
            markets.c.event_id,
            sa.func.coalesce(VOLUME, 0),
            *volumes,
            liquidity().label("liquidity"),
            -sa.func.abs(listed_price_of_yes() - real(1) / 2),
            markets.c.slug,
            markets.c.question,
            events.c.ends_at_ms,
            payouts.c.timestamp_s,
            *(
                quoted_price(ticks)
                for ticks in (quotes.c.best_bid_ticks, quotes.c.last_price_ticks)
            ),
            *prices,
            sa.func.coalesce(quotes.c.updated_at_ms, 0),
            sa.func.coalesce(quotes.c.failed_units, 0),
        )
        .select_from(_quoted().join(events, events.c.event_id == markets.c.event_id))
        .where(markets.c.market_id.in_(sa.bindparam("market_ids", expanding=True)))
    )


def _number(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger())


async def load_market_totals(
    tx: Transaction, market_ids: Sequence[int], now_ms: int
) -> Sequence[MarketTotals]:
    """Return the totals of these markets at a time, computed from their quotes, orders and payouts."""
    values: dict[str, Any] = {"market_ids": market_ids}
    for number, period in enumerate(VOLUME_PERIODS_MS):
        since = periods_since((now_ms - period) // MINUTE_MS)
        values |= {f"first_minute_{number}": since.first_minute}
        values |= {f"first_day_{number}": since.first_day}
    for number, period in enumerate(CHANGE_PERIODS_MS):
        at_s = (now_ms - period) // 1000
        values |= {f"at_s_{number}": at_s, f"at_minute_{number}": at_s // MINUTE_S}
    rows = await tx.all(_market_totals(), values)
    return [_totals(row, now_ms) for row in rows]


async def hold_listing_totals(tx: Transaction) -> None:
    """Hold the lock of the totals, so that no other transaction changes them until the commit.

    Each would count its own rows alone. Raises RowsLocked when another one has them for too long.
    """
    await lock_waits.hold_lock(tx, _LOCK)


async def record_market_totals(tx: Transaction, totals: Sequence[MarketTotals]) -> None:
    """Store the totals of markets, and those of their events.

    Raises RowsLocked when another transaction has the totals for too long.
    """
    await hold_listing_totals(tx)
    await tx.upsert_rows(market_totals, totals)
    event_ids = sorted({each.event_id for each in totals})
    rows = await tx.all(
        sa.select(
            market_totals, events.c.slug.label("event_slug"), events.c.title.label("event_title")
        )
        .join(events, events.c.event_id == market_totals.c.event_id)
        .where(market_totals.c.event_id.in_(event_ids))
    )
    rows_by_event: dict[int, list[Any]] = {}
    for row in rows:
        rows_by_event.setdefault(row.event_id, []).append(row)
    changed = [_of_event(event_id, own) for event_id, own in rows_by_event.items()]
    await _add_to_series(tx, {row[0]: _OfSeries(row[1], row[-1] is None) for row in changed})
    await tx.upsert_rows(event_totals, changed)


class _OfSeries(NamedTuple):
    """What an event adds to its series."""

    volume_units: int
    is_open: bool


_NOTHING: Final = _OfSeries(0, is_open=False)


async def _add_to_series(tx: Transaction, after_by_event: Mapping[int, _OfSeries]) -> None:
    """Add what events have more than before to the totals of their series."""
    games = await tx.all(
        sa.select(
            sports_events.c.event_id,
            sports_events.c.series_id,
            event_totals.c.volume_units,
            event_totals.c.closed_at_s,
        )
        .outerjoin(event_totals, event_totals.c.event_id == sports_events.c.event_id)
        .where(
            sports_events.c.event_id.in_(list(after_by_event)),
            sports_events.c.series_id.is_not(None),
        )
    )
    if not games:
        return
    volume_by_series: Counter[int] = Counter()
    open_by_series: Counter[int] = Counter()
    for row in await load_rows(
        tx, series_totals, series_totals.primary_key, {(game.series_id,) for game in games}
    ):
        volume_by_series[row.series_id] = int(row.volume_units)
        open_by_series[row.series_id] = row.open_events
    for game in games:
        before = _NOTHING
        if game.volume_units is not None:
            before = _OfSeries(game.volume_units, game.closed_at_s is None)
        after = after_by_event[game.event_id]
        volume_by_series[game.series_id] += after.volume_units - before.volume_units
        open_by_series[game.series_id] += after.is_open - before.is_open
    rows = [(each, str(units), open_by_series[each]) for each, units in volume_by_series.items()]
    await tx.upsert_rows(series_totals, rows)


def _totals(row: Any, now_ms: int) -> MarketTotals:
    """Return the totals in a row, marked if the quote may change unnoticed."""
    found = MarketTotals._make(row)
    is_settled = found.seen_ms <= now_ms - SETTLED_MS
    return found._replace(
        **{name: max(getattr(found, name), 0) for name in ROLLING},
        liquidity_units=min(read_liquidity(row.liquidity), AMOUNT_UNITS_MAX),
        seen_ms=found.seen_ms if is_settled else UNSETTLED,
    )


def _of_event(event_id: int, rows: Sequence[Any]) -> tuple[Any, ...]:
    """Return the row of an event; an amount is at most what a column holds."""
    sums = [min(sum(getattr(row, name) for row in rows), AMOUNT_UNITS_MAX) for name in AMOUNTS]
    closed_s = [row.closed_at_s for row in rows]
    last = None if None in closed_s else max(closed_s)
    evenness, ends_at_ms = (max(getattr(row, name) for row in rows) for name in _GREATEST)
    texts = rows[0].event_slug, rows[0].event_title
    return event_id, *sums, evenness, *texts, ends_at_ms, last


def _quoted() -> sa.Join:
    return markets.outerjoin(quotes, quotes.c.condition_id == markets.c.condition_id).outerjoin(
        payouts, payouts.c.condition_id == markets.c.condition_id
    )


def _differences() -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a market has no totals, or totals of another quote or before its payout."""
    kept, paid_s = market_totals.c, payouts.c.timestamp_s
    return [
        kept.market_id.is_(None),
        kept.seen_ms != sa.func.coalesce(quotes.c.updated_at_ms, 0),
        kept.failed_units != sa.func.coalesce(quotes.c.failed_units, 0),
        kept.closed_at_s.is_distinct_from(paid_s),
    ]


def _paid_between(was_ms: int | None, now_ms: int) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a past price is a payout at one of two times alone."""
    if was_ms is None:
        return []
    first_ms, last_ms = sorted((was_ms, now_ms))
    return [
        payouts.c.timestamp_s.between((first_ms - period) // 1000, (last_ms - period) // 1000)
        for period in CHANGE_PERIODS_MS
    ]


def _left_windows(was_ms: int | None, now_ms: int) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a point of a market's history is in a window at one of two times alone."""
    if was_ms is None:
        return []
    minute = quote_points.c.minute
    begins = [
        sorted(((was_ms - period) // MINUTE_MS, (now_ms - period) // MINUTE_MS))
        for period in _PERIODS_MS
    ]
    return [sa.and_(minute >= first, minute < last) for first, last in begins if first < last]
