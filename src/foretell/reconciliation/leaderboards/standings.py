"""Standings and wins, computed from all positions and trades.

A standing is a difference: everything up to now, less everything up to the period's beginning. Where each
of the two ends, and at which prices and in which categories it counts, is read from the tables. `marks.py`
and `cursor_ages.py` compare those.
"""

import itertools
from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Final, NamedTuple

from foretell.reconciliation.chain_figures import ChainFigures, CountedPayout, Holding
from foretell.reconciliation.holdings import NOTHING_HELD, CountedPosition
from foretell.store.spill import SpilledRows

PERIODS_DAYS: Final = (0, 1, 7, 30)
BEFORE_ALL: Final = -1

StandingKey = tuple[int, str, str]
"""A period, a category and a wallet."""


class CountedMark(NamedTuple):
    """The price of Yes and the category at which a sum counts a condition, for each wallet."""

    price: str
    category: str
    seen_ms: int = 0
    next_price: str | None = None
    next_category: str | None = None
    done_wallet: str | None = None

    def of(self, wallet: str) -> tuple[Fraction, str]:
        """Return the price and the category for a wallet."""
        if self.next_price is not None and wallet <= (self.done_wallet or ""):
            return Fraction(self.next_price), self.next_category or ""
        return Fraction(self.price), self.category

    @property
    def of_volumes(self) -> str:
        """The category of trades."""
        return self.category if self.next_price is None else self.next_category or ""


NO_MARK: Final = CountedMark("1/2", "")

Marks = SpilledRows[tuple[int, str], CountedMark]
"""Marks by period and condition."""


class PeriodEnd(NamedTuple):
    """The last block whose changes a sum counts, the time whose prices it has, and the last market in its category."""

    block_number: int
    at_s: int
    market_id: int = 0

    def is_after(self, period: int, payout: CountedPayout) -> bool:
        """Return whether a payout is the price at this end; the sum up to now has that of its last block."""
        is_counted = payout.block_number <= self.block_number
        return is_counted and (period == 0 or payout.at_s < self.at_s)


class LeftChange(NamedTuple):
    """The block and the time of a change that a sum does not count yet."""

    block_number: int
    at_s: int


NEVER_ENDED: Final = PeriodEnd(BEFORE_ALL, 0)


class RecountedStandings:
    """The sums of all periods, from the figures of the chain and the marks of the tables."""

    def __init__(
        self, figures: ChainFigures, end_by_period: Mapping[int, PeriodEnd], marks: Marks
    ) -> None:
        self._figures = figures
        self._end_by_period = end_by_period
        self._marks = marks
        self.oldest_left: Final[dict[int, LeftChange]] = {}
        """By period, the oldest change of a position that the sum does not count, known with the standings."""

    def add_standings(self, sums: SpilledRows[StandingKey, tuple[int, int]]) -> None:
        """Add the volume and the gain of every wallet."""
        for (block, _), trade in self._figures.trades.items():
            for period in PERIODS_DAYS:
                if block <= self._block(period):
                    category = self._mark(period, trade.condition).of_volumes
                    self._add(sums, period, category, trade.wallet, (trade.cost, 0))
        for (wallet, token), positions in self._positions_at_ends():
            condition_id, is_yes = self._figures.outcomes[token]
            for period, position in positions.items():
                price, category = self._mark(period, condition_id).of(wallet)
                units = _gain(position, price if is_yes else 1 - price)
                self._add(sums, period, category, wallet, (0, units))

    def _add(
        self,
        sums: SpilledRows[StandingKey, tuple[int, int]],
        period: int,
        category: str,
        wallet: str,
        units: tuple[int, int],
    ) -> None:
        """Add to the sums that count what was before the end of a period, or subtract it."""
        sign = -1 if period else 1
        for into in (period,) if period else PERIODS_DAYS:
            for each in {"", category}:
                volume, gain = sums[into, each, wallet]
                sums[into, each, wallet] = volume + sign * units[0], gain + sign * units[1]

    def _positions_at_ends(self) -> Iterator[tuple[Holding, Mapping[int, CountedPosition]]]:
        """Yield each position as it was at the end of every period."""
        rows = self._figures.changes.items()
        for holding, changes in itertools.groupby(rows, key=lambda row: row[0][:2]):
            found = dict.fromkeys(PERIODS_DAYS, NOTHING_HELD)
            for (_, _, block), change in changes:
                for period in PERIODS_DAYS:
                    if block <= self._block(period):
                        found[period] = change.position
                    else:
                        left = LeftChange(block, change.at_s)
                        self.oldest_left[period] = min(left, self.oldest_left.get(period, left))
            yield holding, found

    def wins(self) -> Iterator[tuple[tuple[int, str, str], tuple[str, int]]]:
        """Yield the category and the gain of each win: a closed position with a gain in a period."""
        for (wallet, token), (block, _, position) in self._figures.last_changes.items():
            is_closed = block <= self._block(0) and not position.size
            if not is_closed or position.realized <= 0:
                continue
            condition_id = self._figures.outcomes[token][0]
            for period in PERIODS_DAYS:
                if period == 0 or block > self._block(period):
                    category = self._mark(0, condition_id).of(wallet)[1]
                    yield (period, wallet, token), (category, position.realized)

    def is_counted(self, wallet: str, token: str) -> bool:
        """Return whether the sums have come as far as the last change of a position."""
        change = self._figures.last_changes.get((wallet, token))
        return change is None or change[0] <= self._block(0)

    def _block(self, period: int) -> int:
        return self._end_by_period.get(period, NEVER_ENDED).block_number

    def _mark(self, period: int, condition_id: str) -> CountedMark:
        found: CountedMark = self._marks.get((period, condition_id), NO_MARK)
        return found


def _gain(position: CountedPosition, price: Fraction) -> int:
    """Return realized gain and value less cost; a value is rounded to a base unit, ties to even."""
    return position.realized + round(position.size * price) - position.cost
