"""The price and the category at which each sum should count a condition, from payouts, books and the catalogue.

The sum up to now has the price of the quote that it has seen. A sum up to the beginning of a period has the price that
the last full minute before it ended with. A payout is the price in every sum that ends after it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final, NamedTuple

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.leaderboards.standings import CountedMark, Marks, PeriodEnd
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import events, markets, quote_points, quotes

UP_TO_NOW: Final = 0
MINUTE_S: Final = 60
ONE_HALF: Final = "1/2"
NARROW: Final = Fraction(1, 10)
LOOK_AGAIN: Final = -1
"""The time of a quote in a mark whose price is to be looked up again."""
UNQUOTED_MS: Final = 0


class RightMark(NamedTuple):
    """What a mark should have; a part that nothing else says is that of the table."""

    price: str
    category: str
    next_category: str | None


class _Seen(NamedTuple):
    """The price of a quote, and when it was written."""

    price: str
    at_ms: int


class _Listed(NamedTuple):
    """A market's id and its category."""

    market_id: int
    category: str


UNQUOTED: Final = _Seen(ONE_HALF, UNQUOTED_MS)


async def count_marks(
    figures: ChainFigures,
    tx: Transaction,
    spill: SpillFile,
    end_by_period: Mapping[int, PeriodEnd],
    marks: Marks,
) -> SpilledRows[tuple[int, str], RightMark]:
    """Return what each mark should have, and those that a listed market should have."""
    known = _Known(figures, spill, end_by_period)
    await known.read(tx)
    counted: SpilledRows[tuple[int, str], RightMark] = spill.mapping("right_marks", 2, RightMark)
    for (period, condition_id), mark in marks.items():
        counted[period, condition_id] = known.right(period, condition_id, mark)
    for condition_id, listed in known.listed.items():
        for period, end in end_by_period.items():
            is_missing = (period, condition_id) not in counted
            if is_missing and listed.market_id <= end.market_id:
                mark = CountedMark(ONE_HALF, listed.category, UNQUOTED_MS)
                counted[period, condition_id] = known.right(period, condition_id, mark)
    return counted


@dataclass(slots=True)
class _Known:
    """The prices and categories that the tables of trading and the catalogue have."""

    figures: ChainFigures
    spill: SpillFile
    end_by_period: Mapping[int, PeriodEnd]
    quotes: SpilledRows[str, _Seen] = field(init=False)
    points: SpilledRows[tuple[str, int], str] = field(init=False)
    listed: SpilledRows[str, _Listed] = field(init=False)

    def __post_init__(self) -> None:
        self.quotes = self.spill.mapping("quoted_prices", 1, _Seen, UNQUOTED)
        self.points = self.spill.mapping("prices_of_points", 2, str, ONE_HALF)
        self.listed = self.spill.mapping("listed_conditions", 1, _Listed)

    async def read(self, tx: Transaction) -> None:
        async for page in load_pages(tx, quotes):
            for row in page:
                self.quotes[row.condition_id] = _Seen(_price(row), row.updated_at_ms)
        await self._read_points(tx)
        categories: SpilledRows[int, str] = self.spill.mapping("categories", 1, str)
        async for page in load_pages(tx, events):
            for row in page:
                categories[row.event_id] = row.main_category_slug
        async for page in load_pages(tx, markets):
            for row in page:
                category = categories[row.event_id]
                self.listed[row.condition_id] = _Listed(row.market_id, category)

    async def _read_points(self, tx: Transaction) -> None:
        """Keep the last point of each market before the minute with which a period begins."""
        minutes = {
            period: end.at_s // MINUTE_S
            for period, end in self.end_by_period.items()
            if period != UP_TO_NOW
        }
        condition_id, last = "", dict[int, Any]()
        async for page in load_pages(tx, quote_points):
            for row in page:
                if row.condition_id != condition_id:
                    self._keep(condition_id, last)
                    condition_id, last = row.condition_id, {}
                last |= {period: row for period, minute in minutes.items() if row.minute < minute}
        self._keep(condition_id, last)

    def _keep(self, condition_id: str, last: Mapping[int, Any]) -> None:
        for period, row in last.items():
            self.points[condition_id, period] = _price(row)

    def right(self, period: int, condition_id: str, mark: CountedMark) -> RightMark:
        """Return what a mark should have."""
        end = self.end_by_period.get(period)
        if end is None:
            return RightMark(mark.price, mark.category, mark.next_category)
        next_category = mark.next_category
        if next_category is not None:
            next_category = self._category(condition_id, end, next_category)
        return RightMark(
            self._price(period, condition_id, end, mark),
            self._category(condition_id, end, mark.category),
            next_category,
        )

    def _category(self, condition_id: str, end: PeriodEnd, kept: str) -> str:
        """Return the category of the condition's market; a sum may not have come to a new market yet."""
        listed = self.listed.get(condition_id)
        if listed is None:
            return ""
        is_new = listed.market_id > end.market_id
        return kept if is_new and not kept else listed.category

    def _price(self, period: int, condition_id: str, end: PeriodEnd, mark: CountedMark) -> str:
        """Return the price of a mark that does not change, is not to be looked up again, and has seen the quote of now."""
        if mark.next_price is not None or mark.seen_ms == LOOK_AGAIN:
            return mark.price
        payout = self.figures.payouts.get(condition_id)
        if payout and end.is_after(period, payout):
            return str(payout.price_text)
        # The sum may have looked the payout up before it comes to its block.
        if payout and (period == UP_TO_NOW or payout.at_s < end.at_s):
            return mark.price
        if period != UP_TO_NOW:
            return self.points[condition_id, period]
        quote = self.quotes[condition_id]
        return quote.price if quote.at_ms == mark.seen_ms else mark.price


def _price(row: Any) -> str:
    """Return the price at which positions count: the midpoint of a narrow spread, else the last price, else one half."""
    one, last = row.ticks_per_one, row.last_price_ticks
    bid, ask = row.best_bid_ticks, row.best_ask_ticks
    price = Fraction(1, 2) if last is None else Fraction(last, one)
    if bid is not None and ask is not None and Fraction(ask - bid, one) <= NARROW:
        price = Fraction(bid + ask, 2 * one)
    return f"{price.numerator}/{price.denominator}"
