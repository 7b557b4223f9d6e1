"""Standings and wins, computed from all positions and trades.

A standing is a difference: everything up to now, less everything up to the period's beginning. Where each
of the two ends, and at which prices and in which categories it counts, is read from the tables: prices are of the
books, which the chain does not have.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.reconciliation.chain_figures import ChainFigures
from foretell.reconciliation.holdings import CountedPosition

PERIODS_DAYS: Final = (0, 1, 7, 30)
BEFORE_ALL: Final = -1

StandingKey = tuple[int, str, str]
"""A period, a category and a wallet."""


class CountedMark(NamedTuple):
    """The price of Yes and the category at which a sum counts a condition, for each wallet."""

    price: Fraction
    category: str
    next_price: Fraction | None
    next_category: str
    done_wallet: str

    def of(self, wallet: str) -> tuple[Fraction, str]:
        """Return the price and the category for a wallet."""
        if self.next_price is not None and wallet <= self.done_wallet:
            return self.next_price, self.next_category
        return self.price, self.category

    @property
    def of_volumes(self) -> str:
        """The category of trades."""
        return self.category if self.next_price is None else self.next_category


NO_MARK: Final = CountedMark(Fraction(1, 2), "", None, "", "")


class RecountedStandings:
    """The sums of all periods, from the figures of the chain and the marks of the tables."""

    def __init__(
        self, figures: ChainFigures, cursors: Sequence[sa.Row[Any]], marks: Sequence[sa.Row[Any]]
    ) -> None:
        self._figures = figures
        self._block_by_period = {row.period: row.block_number for row in cursors}
        self._marks = {(row.period, row.condition_id): _mark(row) for row in marks}

    def standings(self) -> Mapping[StandingKey, tuple[int, int]]:
        """Return the volume and the gain of every wallet; those of nothing are left out."""
        volumes, gains = Counter[StandingKey](), Counter[StandingKey]()
        for period in PERIODS_DAYS:
            volume, gain = self._sum_to(period)
            for into in (period,) if period else PERIODS_DAYS:
                for (category, wallet), units in volume.items():
                    volumes[into, category, wallet] += -units if period else units
                for (category, wallet), units in gain.items():
                    gains[into, category, wallet] += -units if period else units
        return {
            key: (volumes[key], gains[key])
            for key in volumes.keys() | gains.keys()
            if volumes[key] or gains[key]
        }

    def _sum_to(self, period: int) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
        end = self._block(period)
        volume, gain = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
        for trade in self._figures.trades:
            if trade.block <= end:
                for category in {"", self._mark(period, trade.condition).of_volumes}:
                    volume[category, trade.wallet] += trade.cost
        for wallet, token in list(self._figures.changes):
            condition_id, is_yes = self._figures.outcomes[token]
            price, own_category = self._mark(period, condition_id).of(wallet)
            position = self._figures.position_at((wallet, token), end)
            units = _gain(position, price if is_yes else 1 - price)
            for category in {"", own_category}:
                gain[category, wallet] += units
        return volume, gain

    def wins(self) -> Mapping[tuple[int, str, str], tuple[str, int]]:
        """Return the category and the gain of each win: a closed position with a gain in a period."""
        found = {}
        for (wallet, token), changes in self._figures.changes.items():
            if not changes or changes[-1].block > self._block(0):
                continue
            last, condition_id = changes[-1], self._figures.outcomes[token][0]
            if last.position.size or last.position.realized <= 0:
                continue
            for period in PERIODS_DAYS:
                if period == 0 or last.block > self._block(period):
                    category = self._mark(0, condition_id).of(wallet)[1]
                    found[period, wallet, token] = category, last.position.realized
        return found

    def is_counted(self, wallet: str, token: str) -> bool:
        """Return whether the sums have come as far as the last change of a position."""
        changes = self._figures.changes.get((wallet, token))
        return not changes or changes[-1].block <= self._block(0)

    def _block(self, period: int) -> int:
        return int(self._block_by_period.get(period, BEFORE_ALL))

    def _mark(self, period: int, condition_id: str) -> CountedMark:
        return self._marks.get((period, condition_id), NO_MARK)


def _gain(position: CountedPosition, price: Fraction) -> int:
    """Return realized gain and value less cost; a value is rounded to a base unit, ties to even."""
    return position.realized + round(position.size * price) - position.cost


def _mark(row: sa.Row[Any]) -> CountedMark:
    following = None if row.next_price is None else Fraction(row.next_price)
    return CountedMark(
        *(Fraction(row.price), row.category, following),
        *(row.next_category or "", row.done_wallet or ""),
    )
