"""Volumes and last prices of markets and the points of their histories, added up from the trades of the engine.

The projection writes trades, quotes and points in one transaction, so they are of one moment in any reading.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation.compared_table import ComparedTable
from foretell.store.database import Transaction
from foretell.store.queries.index_tables import load_pages
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import failed_volumes, quote_points, quotes

MINUTE_MS: Final = 60_000
DAY_MINUTES: Final = 24 * 60
BUY: Final = "BUY"
QUOTE_TABLES: Final = frozenset(each.name for each in (quotes, quote_points, failed_volumes))
"""The tables that only a rebuild from the journal makes right again: the engine writes them from what it has in memory."""


class LastPrice(NamedTuple):
    """A price of Yes as a part of one, in lowest terms, and what the taker did in terms of Yes."""

    price: str
    side: str


class CountedQuote(NamedTuple):
    """The collateral of all trades, that of those that have failed, and the last price if there is any."""

    volume: int
    failed: int
    last: LastPrice | None


class _Sums(NamedTuple):
    """The trades of a market so far; `last` are the prices with which the newest of them may have ended.

    The fills of a trade that was split are in several trades, of which any may have the last one.
    """

    volume: int
    failed: int
    newest: tuple[int, int, int]
    last: tuple[LastPrice, ...]


NO_TRADES: Final = _Sums(0, 0, (-1, -1, -1), ())


class CountedQuotes:
    """What the quotes and points should be, after all trades were added in any order."""

    def __init__(self, spill: SpillFile) -> None:
        self._sums: SpilledRows[str, _Sums] = spill.mapping("sums_of_trades", 1, _Sums, NO_TRADES)
        self._minutes: SpilledRows[tuple[str, int], int] = spill.mapping(
            "volumes_of_minutes", 2, int, 0
        )
        self.quotes: SpilledRows[str, CountedQuote] = spill.mapping(
            "counted_quotes", 1, CountedQuote
        )
        self.points: SpilledRows[tuple[str, int], int] = spill.mapping("counted_points", 2, int)
        self.failed: SpilledRows[tuple[str, int, int], int] = spill.mapping(
            "counted_failed", 3, int, 0
        )

    def add(self, trade: Any, fills: Sequence[Any]) -> None:
        """Add a trade with its fills."""
        condition_id, cost = trade.condition_id, trade.cost_units
        volume, failed, newest, last = self._sums[condition_id]
        has_failed = trade.status == TradeStatus.FAILED
        place = trade.matched_at_ms, trade.sequence, trade.bucket_index
        if place >= newest and fills:
            last = (*(last if place == newest else ()), _last_price(trade, fills))
        self._sums[condition_id] = _Sums(
            _bounded(volume + cost), _bounded(failed + cost * has_failed), max(place, newest), last
        )
        minute = condition_id, trade.matched_at_ms // MINUTE_MS
        self._minutes[minute] = _bounded(self._minutes[minute] + cost)
        if has_failed:
            self._add_failed(*minute, cost)

    def _add_failed(self, condition_id: str, minute: int, cost: int) -> None:
        """Add a trade to what has failed of its minute and of its day."""
        for length in (1, DAY_MINUTES):
            period = condition_id, length, minute // length * length
            self.failed[period] = _bounded(self.failed[period] + cost)

    async def finish(self, tx: Transaction) -> None:
        """Compute the quote of each market, and a point of each minute with a trade, and of those that have a row."""
        async for page in load_pages(tx, quotes):
            for row in page:
                self.quotes[row.condition_id] = self._quote(row.condition_id, _kept_price(row))
        for condition_id, _ in self._sums.items():  # noqa: PERF102 - a mapping in a file has no `keys`
            if condition_id not in self.quotes:
                self.quotes[condition_id] = self._quote(condition_id, None)
        async for page in load_pages(tx, quote_points):
            for row in page:
                key = row.condition_id, row.minute
                self._minutes[key] = self._minutes[key]
        for key, volume in self._running():
            self.points[key] = volume

    def _quote(self, condition_id: str, kept: LastPrice | None) -> CountedQuote:
        """Return the quote of a market, with the last price that is kept if it may be the right one."""
        volume, failed, _, last = self._sums[condition_id]
        if kept not in last:
            kept = last[-1] if last else None
        return CountedQuote(volume, failed, kept)

    def _running(self) -> Iterator[tuple[tuple[str, int], int]]:
        market, volume = "", 0
        for (condition_id, minute), of_minute in self._minutes.items():
            if condition_id != market:
                market, volume = condition_id, 0
            volume = _bounded(volume + of_minute)
            yield (condition_id, minute), volume


def compared_quotes(counted: CountedQuotes) -> tuple[ComparedTable, ...]:
    """Return the tables of quotes, of their points, and of what has failed."""
    return (
        ComparedTable(
            quotes,
            counted.quotes,
            lambda row: row.condition_id,
            lambda row: CountedQuote(row.volume_units, row.failed_units, _kept_price(row)),
        ),
        ComparedTable(
            quote_points,
            counted.points,
            lambda row: (row.condition_id, row.minute),
            lambda row: row.volume_units,
        ),
        ComparedTable(
            failed_volumes,
            counted.failed,
            lambda row: (row.condition_id, row.length_minutes, row.first_minute),
            lambda row: row.units,
        ),
    )


def _bounded(units: int) -> int:
    """Return a sum as a column keeps it; the order of what is added does not matter."""
    return min(units, AMOUNT_UNITS_MAX)


def _last_price(trade: Any, fills: Sequence[Any]) -> LastPrice:
    """Return the price of Yes in the last fill, and what the taker did: one who buys No sells Yes."""
    last = max(fills, key=lambda fill: fill.fill_index)
    price = Fraction(last.price_ticks, last.ticks_per_one)
    is_buy = (trade.side == BUY) == trade.is_yes
    return LastPrice(str(price if last.is_yes else 1 - price), BUY if is_buy else "SELL")


def _kept_price(quote: Any) -> LastPrice | None:
    if quote.last_price_ticks is None:
        return None
    return LastPrice(str(Fraction(quote.last_price_ticks, quote.ticks_per_one)), quote.last_side)
