"""The standings: what each wallet gained and traded, by period and category."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from foretell.domain.portfolio.gains import SUM_MAX, bounded
from foretell.domain.portfolio.periods import WINDOWS, Period
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.rankings.progress import ALL_CATEGORIES
from foretell.store.tables import ranking_cursors, ranking_marks, standings, wins


class Sums:
    """What the wallets of one running sum gain, and the volume that they add."""

    def __init__(self) -> None:
        self._volume: defaultdict[tuple[str, Address], int] = defaultdict(int)
        self._gain: defaultdict[tuple[str, Address], int] = defaultdict(int)

    def add_gain(self, wallet: Address, category: str, units: int) -> None:
        """Add a gain to the wallet, in all categories and in this one."""
        for each in {ALL_CATEGORIES, category}:
            self._gain[each, wallet] += units

    def add_volume(self, wallet: Address, category: str, units: int) -> None:
        """Add traded collateral to the wallet, in all categories and in this one."""
        for each in {ALL_CATEGORIES, category}:
            self._volume[each, wallet] += units

    def move_gain(self, wallet: Address, category: tuple[str, str], units: tuple[int, int]) -> None:
        """Count a gain in another category, and with another amount."""
        was, now = category
        self.add_gain(wallet, was, -units[0])
        self.add_gain(wallet, now, units[1])

    def move_volume(self, wallet: Address, category: tuple[str, str], units: int) -> None:
        """Count volume in another category."""
        was, now = category
        self.add_volume(wallet, was, -units)
        self.add_volume(wallet, now, units)

    async def record(self, tx: Transaction, period: Period) -> None:
        """Add to the standings: the sum up to now to all periods, an earlier one is taken off its own."""
        is_window = period in WINDOWS
        periods: Sequence[Period] = (period,) if is_window else tuple(Period)
        sign = -1 if is_window else 1
        rows = [
            (int(each), *key, bounded(sign * self._volume[key]), bounded(sign * self._gain[key]))
            for key in {*self._volume, *self._gain}
            if self._volume[key] or self._gain[key]
            for each in periods
        ]
        await tx.execute_rows(_ADDITION[tx.dialect], rows)
        if rows:
            await tx.execute(_DELETION)


def _addition(*, is_sqlite: bool) -> sa.Insert:
    """Return the statement that adds to a standing, within what `SUM_MAX` allows."""
    new = sqlite.insert(standings) if is_sqlite else postgresql.insert(standings)
    least, greatest = (sa.func.min, sa.func.max) if is_sqlite else (sa.func.least, sa.func.greatest)

    def added(name: str) -> sa.ColumnElement[int]:
        total = standings.c[name] + new.excluded[name]
        bound = sa.literal_column(str(SUM_MAX), sa.BigInteger)
        return greatest(-bound, least(bound, total))

    names = ("volume_units", "gain_units")
    return new.on_conflict_do_update(
        index_elements=list(standings.primary_key), set_={name: added(name) for name in names}
    )


_ADDITION: Final = {
    "sqlite": _addition(is_sqlite=True),
    "postgresql": _addition(is_sqlite=False),
}
_DELETION: Final = standings.delete().where(sa.text("volume_units = 0 AND gain_units = 0"))


async def empty_rankings(tx: Transaction) -> None:
    """Delete all standings and wins, and have every sum begin before the first block."""
    for table in (standings, wins, ranking_cursors, ranking_marks):
        await tx.execute(table.delete())
