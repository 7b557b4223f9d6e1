"""The standings: what each wallet gained and traded, by period and category."""

from collections import defaultdict
from collections.abc import Sequence

import sqlalchemy as sa

from foretell.domain.portfolio.gains import bounded_sum
from foretell.domain.portfolio.periods import WINDOWS, Period
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.rankings.progress import ALL_CATEGORIES
from foretell.store.lookups import load_rows
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
        periods: Sequence[Period] = (period,) if period in WINDOWS else tuple(Period)
        sign = -1 if period in WINDOWS else 1
        keys = [key for key in {*self._volume, *self._gain} if self._volume[key] or self._gain[key]]
        wanted = [(int(each), *key) for each in periods for key in keys]
        known: dict[tuple[int, str, Address], tuple[int, int]] = {
            (row.period, row.category, row.wallet): (row.volume_units, row.gain_units)
            for row in await load_rows(tx, standings, standings.primary_key, wanted)
        }
        rows = []
        for key in wanted:
            volume_units, gain_units = known.get(key, (0, 0))
            changed = (
                bounded_sum(volume_units, sign * self._volume[key[1:]]),
                bounded_sum(gain_units, sign * self._gain[key[1:]]),
            )
            rows.append((*key, *changed))
        await tx.upsert_rows(standings, rows)
        await tx.execute(
            standings.delete().where(
                sa.text("volume_units = 0 AND gain_units = 0"),
                standings.c.period.in_([int(each) for each in periods]),
            )
        )


async def empty_rankings(tx: Transaction) -> None:
    """Delete all standings and wins, and have every sum begin before the first block."""
    for table in (standings, wins, ranking_cursors, ranking_marks):
        await tx.execute(table.delete())
