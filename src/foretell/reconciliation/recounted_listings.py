"""Totals of markets and events, computed from the chain's payouts and the rows of trading, one by one.

Prices and orders are of the books, which the chain does not have, so their rows are taken as they are; volumes are those
of quotes and points, which are compared with the trades (`counted_quotes.py`). The round of totals comes after both the
chain and the books: what the next round computes again is not compared.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation.chain_figures import ChainFigures
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import (
    events,
    failed_volumes,
    is_live,
    listing_cursors,
    market_totals,
    markets,
    orders,
    quote_points,
    quotes,
)

AMOUNTS: Final = (
    *("volume_units", "day_units", "week_units", "month_units", "year_units"),
    "liquidity_units",
)
MINUTE_S: Final = 60
DAY_MINUTES: Final = 24 * 60
VOLUME_MINUTES: Final = (DAY_MINUTES, 7 * DAY_MINUTES, 30 * DAY_MINUTES, 365 * DAY_MINUTES)
PRICE_MINUTES: Final = (60, DAY_MINUTES, 7 * DAY_MINUTES, 30 * DAY_MINUTES)
ONE_HALF: Final = Fraction(1, 2)
NEAR: Final = Fraction(1, 10**9)
"""Prices are kept in floating point; what is nearer than this is the same."""


class CountedMarket(NamedTuple):
    """The totals of a market by the names of their columns; prices are of Yes, None where there is none."""

    market_id: int = 0
    event_id: int = 0
    volume_units: int = 0
    day_units: int = 0
    week_units: int = 0
    month_units: int = 0
    year_units: int = 0
    liquidity_units: int = 0
    evenness: float = 0.0
    slug: str = ""
    title: str = ""
    ends_at_ms: int = 0
    closed_at_s: int | None = None
    best_bid: float | None = None
    last_price: float | None = None
    hour_price: float | None = None
    day_price: float | None = None
    week_price: float | None = None
    month_price: float | None = None
    seen_ms: int = 0
    failed_units: int = 0

    @classmethod
    def of(cls, row: Any) -> "CountedMarket":
        """Return the totals of a row; a column of the table that has no name here would not be compared."""
        return cls(*(getattr(row, name) for name in cls._fields))


NO_TOTALS: Final = CountedMarket()


class _Quoted(NamedTuple):
    """A market's quote, or a point of its history."""

    ticks_per_one: int
    bid: int | None
    ask: int | None
    last: int | None
    volume: int
    at_ms: int = 0
    failed: int = 0

    def part(self, ticks: int | None) -> Fraction | None:
        """Return ticks as a part of one."""
        return None if ticks is None else Fraction(ticks, self.ticks_per_one)

    @property
    def price(self) -> Fraction:
        """The price of Yes in lists."""
        if self.bid is not None and self.ask is not None:
            return Fraction(self.bid + self.ask, 2 * self.ticks_per_one)
        return ONE_HALF if self.last is None else Fraction(self.last, self.ticks_per_one)


NO_QUOTE: Final = _Quoted(1, None, None, None, 0)


class _Past(NamedTuple):
    """The volumes of a market within the periods, and its prices before them, as texts."""

    volumes: tuple[int, ...]
    prices: tuple[str | None, ...]

    def without(self, age_minutes: int, failed: int) -> "_Past":
        """Return the same without what has failed of a minute."""
        volumes = (
            volume - failed if age_minutes <= period else volume
            for volume, period in zip(self.volumes, VOLUME_MINUTES, strict=True)
        )
        return self._replace(volumes=tuple(volumes))


NO_PAST: Final = _Past((0,) * len(VOLUME_MINUTES), (None,) * len(PRICE_MINUTES))


async def count_markets(
    figures: ChainFigures, tx: Transaction, spill: SpillFile
) -> SpilledRows[int, CountedMarket]:
    """Return the row of each market's totals as it should be.

    A market without a row is missing only if it was listed well before the last round. Where the round may have
    either of two values, or a floating-point number, the row's own is returned if it is right.
    """
    counted: SpilledRows[int, CountedMarket] = spill.mapping("counted_markets", 1, CountedMarket)
    cursors = await tx.all(sa.select(listing_cursors.c.at_ms))
    if not cursors:
        return counted
    recount = _Recount(figures, spill, cursors[0].at_ms)
    await recount.read(tx)
    kept: SpilledRows[int, CountedMarket] = spill.mapping("kept_markets", 1, CountedMarket)
    async for page in load_pages(tx, market_totals):
        for row in page:
            kept[row.market_id] = CountedMarket.of(row)
    async for page in load_pages(tx, markets):
        for market in page:
            totals = recount.totals(market, kept.get(market.market_id))
            if totals is not None:
                counted[market.market_id] = totals
    return counted


class EventSums(NamedTuple):
    """The totals of an event but its texts, in the order of the columns."""

    amounts: tuple[int, ...]
    evenness: float
    ends_at_ms: int
    closed_at_s: int | None

    def with_market(self, other: "EventSums") -> "EventSums":
        """Add a market: an event is as even as its most even one, and closed with the last one."""
        closed_s = None
        if self.closed_at_s is not None and other.closed_at_s is not None:
            closed_s = max(self.closed_at_s, other.closed_at_s)
        return EventSums(
            tuple(
                min(one + more, AMOUNT_UNITS_MAX)
                for one, more in zip(self.amounts, other.amounts, strict=True)
            ),
            max(self.evenness, other.evenness),
            max(self.ends_at_ms, other.ends_at_ms),
            closed_s,
        )


async def count_events(tx: Transaction, spill: SpillFile) -> SpilledRows[int, tuple[Any, ...]]:
    """Return the row of each event's totals, from those of its markets: both are written together."""
    sums: SpilledRows[int, EventSums] = spill.mapping("event_sums", 1, EventSums)
    async for page in load_pages(tx, market_totals):
        for row in page:
            amounts = tuple(getattr(row, name) for name in AMOUNTS)
            own = EventSums(amounts, row.evenness, row.ends_at_ms, row.closed_at_s)
            before = sums.get(row.event_id)
            sums[row.event_id] = own if before is None else before.with_market(own)
    counted: SpilledRows[int, tuple[Any, ...]] = spill.mapping("counted_events", 1, tuple[Any, ...])
    async for page in load_pages(tx, events):
        for event in page:
            if (found := sums.get(event.event_id)) is not None:
                texts = event.slug, event.title
                counted[event.event_id] = *found.amounts, found.evenness, *texts, *found[2:]
    return counted


@dataclass(slots=True)
class _Recount:
    """The rows of trading at the time of the last round, by market."""

    figures: ChainFigures
    spill: SpillFile
    at_ms: int
    quotes: SpilledRows[str, _Quoted] = field(init=False)
    pasts: SpilledRows[str, _Past] = field(init=False)
    liquidity: SpilledRows[str, str] = field(init=False)
    ends: SpilledRows[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.quotes = self.spill.mapping("market_quotes", 1, _Quoted, NO_QUOTE)
        self.pasts = self.spill.mapping("market_pasts", 1, _Past, NO_PAST)
        self.liquidity = self.spill.mapping("market_liquidity", 1, str, "0")
        self.ends = self.spill.mapping("event_ends", 1, int)

    async def read(self, tx: Transaction) -> None:
        async for page in load_pages(tx, events):
            for row in page:
                self.ends[row.event_id] = row.ends_at_ms
        async for page in load_pages(tx, quotes):
            for row in page:
                self.quotes[row.condition_id] = _Quoted._make((*row[1:5], *row[6:]))
        await self._read_pasts(tx, self.at_ms // 1000 // MINUTE_S)
        async for page in load_pages(tx, orders, is_live):
            for row in page:
                worth = Fraction(self.liquidity[row.condition_id]) + self._worth(row)
                self.liquidity[row.condition_id] = str(worth)

    async def _read_pasts(self, tx: Transaction, minute: int) -> None:
        """Read the points, which count all trades, and take off what has failed."""
        async for condition_id, past in _pasts(tx, minute):
            self.pasts[condition_id] = past
        async for page in load_pages(tx, failed_volumes, failed_volumes.c.length_minutes == 1):
            for row in page:
                past = self.pasts[row.condition_id]
                self.pasts[row.condition_id] = past.without(minute - row.first_minute, row.units)

    def _worth(self, order: Any) -> Fraction:
        """Return the value of what is left of an order, 0 if it is far from the price."""
        if order.condition_id not in self.quotes:
            return Fraction(0)
        price = Fraction(order.price_ticks, order.ticks_per_one)
        price = price if order.is_yes else 1 - price
        middle = self._price(order.condition_id)
        is_near = abs(price - middle) <= middle / 10 + NEAR
        return (order.size_units - order.matched_units) * price if is_near else Fraction(0)

    def _price(self, condition_id: str) -> Fraction:
        paid = self.figures.payouts.get(condition_id)
        return self.quotes[condition_id].price if paid is None else Fraction(paid.price_text)

    def totals(self, market: Any, kept: CountedMarket | None) -> CountedMarket | None:
        """Return the totals of a market, or None if it needs no row yet."""
        if kept is None and market.created_at_ms >= self.at_ms - MINUTE_S * 1000:
            return None
        condition_id, market_id = market.condition_id, market.market_id
        quote, past = self.quotes[condition_id], self.pasts[condition_id]
        paid = self.figures.payouts.get(condition_id)
        closed_s = None if paid is None else paid.at_s
        right = (kept or NO_TOTALS)._replace(
            market_id=market_id,
            event_id=market.event_id,
            slug=market.slug,
            title=market.question,
            ends_at_ms=self.ends[market.event_id],
        )
        seen = quote.at_ms, quote.failed, closed_s
        if kept and (kept.seen_ms, kept.failed_units, kept.closed_at_s) != seen:
            return right
        day, week, month, year = (max(volume, 0) for volume in past.volumes)
        of_hour, of_day, of_week, of_month = self._past_prices(condition_id, past, right)
        even = -abs(self._price(condition_id) - ONE_HALF)
        return right._replace(
            volume_units=quote.volume - quote.failed,
            day_units=day,
            week_units=week,
            month_units=month,
            year_units=year,
            liquidity_units=min(round(Fraction(self.liquidity[condition_id])), AMOUNT_UNITS_MAX),
            evenness=_near([even], right.evenness) or 0.0,
            closed_at_s=closed_s,
            best_bid=_near([quote.part(quote.bid)], right.best_bid),
            last_price=_near([quote.part(quote.last)], right.last_price),
            hour_price=of_hour,
            day_price=of_day,
            week_price=of_week,
            month_price=of_month,
            seen_ms=quote.at_ms,
            failed_units=quote.failed,
        )

    def _past_prices(
        self, condition_id: str, past: _Past, kept: CountedMarket
    ) -> Iterator[float | None]:
        """Yield the prices before the periods: rounds of one minute may see a payout in it, or not yet."""
        paid = self.figures.payouts.get(condition_id)
        first_s = self.at_ms // 1000
        cells = kept.hour_price, kept.day_price, kept.week_price, kept.month_price
        for minutes, text, cell in zip(PRICE_MINUTES, past.prices, cells, strict=True):
            price = None if text is None else Fraction(text)
            right = [price]
            if paid is not None:
                ago_s = minutes * MINUTE_S
                whole = Fraction(paid.price_text)
                end_s = first_s - first_s % MINUTE_S + MINUTE_S - 1
                right = [whole if paid.at_s < at_s - ago_s else price for at_s in (first_s, end_s)]
            yield _near(right, cell)


async def _pasts(tx: Transaction, minute: int) -> AsyncIterator[tuple[str, _Past]]:
    """Yield what each market's history says of the periods that end at a minute."""
    condition_id, history = "", _History(minute)
    async for page in load_pages(tx, quote_points):
        for row in page:
            if row.condition_id != condition_id:
                if condition_id:
                    yield condition_id, history.past()
                condition_id, history = row.condition_id, _History(minute)
            history.add(row.minute, _Quoted._make((*row[2:7], 0, 0)))
    if condition_id:
        yield condition_id, history.past()


class _History:
    """The points of one market, the oldest first; only the last before each period is held."""

    def __init__(self, minute: int) -> None:
        self._minute = minute
        self._newest = NO_QUOTE
        self._before: dict[int, _Quoted] = {}

    def add(self, minute: int, point: _Quoted) -> None:
        self._newest = point
        for period in {*VOLUME_MINUTES, *PRICE_MINUTES}:
            if minute < self._minute - period:
                self._before[period] = point

    def past(self) -> _Past:
        volumes = (
            self._newest.volume - self._before.get(period, NO_QUOTE).volume
            for period in VOLUME_MINUTES
        )
        prices = (
            str(self._before[period].price) if period in self._before else None
            for period in PRICE_MINUTES
        )
        return _Past(tuple(volumes), tuple(prices))


def _near(right: Sequence[Fraction | None], kept: float | None) -> float | None:
    """Return what is kept if it is one of the right numbers, else the first of them."""
    for each in right:
        if each is None or kept is None:
            if each is None and kept is None:
                return None
        elif abs(each - Fraction(kept)) <= NEAR:
            return kept
    return None if right[0] is None else float(right[0])
