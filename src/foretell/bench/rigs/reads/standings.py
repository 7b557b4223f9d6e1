"""The standings of a generated history, added up while it is generated: the same rows that the indexer's rounds lead to.

The indexer values positions change by change. Here each window is valued once, at the block where it begins.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from foretell.domain.portfolio.gains import Held, gain_units
from foretell.domain.portfolio.periods import WINDOWS, Period
from foretell.domain.portfolio.positions import Position
from foretell.domain.portfolio.price_history import MINUTE_S
from foretell.domain.portfolio.prices import BookTop, current_price
from foretell.store.index.rankings.counts import StandingUnits

ALL_CATEGORIES = ""

Holding = tuple[int, int, bool]
"""The numbers of a wallet and a market, and whether the token is Yes."""
Positions = Mapping[Holding, tuple[Position, int, int]]
"""Positions, the times of their last changes, and the blocks of these."""
SumKey = tuple[str, int]
"""A category and the number of a wallet."""


class _Running(NamedTuple):
    """A running sum: its last block, the price of Yes in each market, the gains and the volumes."""

    block: int
    prices: Sequence[Fraction]
    gains: Mapping[SumKey, int]
    volumes: Mapping[SumKey, int]


class Standings:
    """Follows a history block by block, in the order of time."""

    def __init__(self, now_s: int, categories: Sequence[str]) -> None:
        self._now_s = now_s
        self._categories = categories
        self._tops: dict[Period, list[BookTop | None]] = {
            period: [None] * len(categories) for period in WINDOWS
        }
        self._begins = sorted(WINDOWS, reverse=True)
        self._volumes: defaultdict[SumKey, int] = defaultdict(int)
        self._sums: dict[Period, _Running] = {}

    def begin_block(self, block: int, at_s: int, positions: Positions) -> None:
        """Take the sums of the windows that begin at or before a block."""
        while self._begins and at_s >= self._until_s(self._begins[0]):
            self._take(self._begins.pop(0), block - 1, positions)

    def trade(self, wallets: Iterable[int], costs: Iterable[int], market: int) -> None:
        """Add the volume of both sides of a trade."""
        for wallet, units in zip(wallets, costs, strict=True):
            for category in {ALL_CATEGORIES, self._categories[market]}:
                self._volumes[category, wallet] += units

    def quote(self, market: int, at_s: int, top: BookTop) -> None:
        """Take a quote: a window begins at the last full minute before it."""
        for period in self._begins:
            if at_s // MINUTE_S < self._until_s(period) // MINUTE_S:
                self._tops[period][market] = top

    def close(self, block: int, positions: Positions, tops: Sequence[BookTop]) -> None:
        """Take the sums up to the last block, at the prices of now."""
        while self._begins:
            self._take(self._begins.pop(0), block, positions)
        self._tops[Period.ALL] = list(tops)
        self._take(Period.ALL, block, positions)

    def standings(self, wallets: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows of the standings."""
        rows: list[tuple[Any, ...]] = []
        now = self._sums[Period.ALL]
        for period in Period:
            then = self._sums[period] if period in WINDOWS else _Running(0, (), {}, {})
            for category, wallet in {*now.gains, *now.volumes}:
                key = category, wallet
                volume = now.volumes.get(key, 0) - then.volumes.get(key, 0)
                gain = now.gains.get(key, 0) - then.gains.get(key, 0)
                if volume or gain:
                    rows.append((int(period), category, wallets[wallet], volume, gain))
        return rows

    def median_wallet(self) -> int:
        """Return the number of the wallet in the middle of the ranking of all time by gain."""
        gains = self._sums[Period.ALL].gains
        ranked = sorted((units, wallet) for (each, wallet), units in gains.items() if not each)
        return ranked[len(ranked) // 2][1]

    def wins(
        self, positions: Positions, wallets: Sequence[str], tokens: Sequence[tuple[str, str]]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of the wins: positions that were closed with a gain in a period."""
        return [
            (
                int(period),
                wallets[wallet],
                tokens[market][not is_yes],
                self._categories[market],
                position.realized_units,
            )
            for (wallet, market, is_yes), (position, _, block) in positions.items()
            if _held(position).is_win
            for period in Period
            if period is Period.ALL or block > self._sums[period].block
        ]

    def cursors(self) -> list[tuple[int, ...]]:
        """Return the rows of the places of the sums."""
        markets = len(self._categories)
        return [
            (int(period), running.block, self._until_s(period), markets)
            for period, running in self._sums.items()
        ]

    def marks(self, condition_ids: Sequence[str]) -> list[tuple[Any, ...]]:
        """Return the rows of the prices at which the sums count."""
        return [
            (
                *(int(period), condition_ids[market]),
                f"{price.numerator}/{price.denominator}",
                self._categories[market],
                self._now_s * 1000 if period is Period.ALL else 0,
                *(None, None, None, None),
            )
            for period, running in self._sums.items()
            for market, price in enumerate(running.prices)
        ]

    def _until_s(self, period: Period) -> int:
        return self._now_s - (0 if period is Period.ALL else period.seconds)

    def _take(self, period: Period, block: int, positions: Positions) -> None:
        prices = [current_price(top, None, is_yes=True) for top in self._tops[period]]
        gains: defaultdict[SumKey, int] = defaultdict(int)
        known: dict[tuple[Held, Fraction, bool], int] = {}
        for (wallet, market, is_yes), (position, _, _) in positions.items():
            valued = _held(position), prices[market], is_yes
            units = known.get(valued)
            if units is None:
                units = known[valued] = gain_units(*valued[:2], is_yes=is_yes)
            for category in {ALL_CATEGORIES, self._categories[market]}:
                gains[category, wallet] += units
        self._sums[period] = _Running(block, prices, gains, dict(self._volumes))


def counts_of(standings: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the rows of the counts of standings by buckets."""
    wallets: Counter[tuple[Any, ...]] = Counter()
    for period, category, _, volume, gain in standings:
        for counted, bucket in StandingUnits(volume, gain).counted():
            wallets[period, category, counted, bucket] += 1
    return [(*key, count) for key, count in wallets.items()]


def _held(position: Position) -> Held:
    return Held(position.size_units, position.cost_units, position.realized_units)
