"""The standings: what each wallet gained and traded, by period and category."""

from collections import defaultdict
from typing import Final

import sqlalchemy as sa

from foretell.domain.portfolio.gains import bounded
from foretell.domain.portfolio.periods import WINDOWS
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.generations import RunningSum, sums_of
from foretell.store.index.rankings.counts import (
    NO_STANDING,
    StandingKey,
    StandingUnits,
    count_standings,
)
from foretell.store.index.rankings.progress import ALL_CATEGORIES
from foretell.store.lookups import load_rows
from foretell.store.many_rows import upsert_many
from foretell.store.tables import standings


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

    async def record(self, tx: Transaction, of_sum: RunningSum) -> None:
        """Add to the standings: the sum up to now to all periods, an earlier one is taken off its own."""
        is_window = of_sum.period in WINDOWS
        every = sums_of(of_sum.generation).values()
        keys = [each.key for each in ((of_sum,) if is_window else every)]
        sign = -1 if is_window else 1
        added = {
            (each, *key): StandingUnits(
                bounded(sign * self._volume[key]), bounded(sign * self._gain[key])
            )
            for key in {*self._volume, *self._gain}
            if self._volume[key] or self._gain[key]
            for each in keys
        }
        rows = await load_rows(tx, standings, standings.primary_key, added)
        before: dict[StandingKey, StandingUnits] = {
            (row.period, row.category, row.wallet): StandingUnits(row.volume_units, row.gain_units)
            for row in rows
        }
        after = {key: before.get(key, NO_STANDING).plus(each) for key, each in added.items()}
        changed = sorted((*key, *each) for key, each in after.items() if any(each))
        await upsert_many(tx, standings, changed)
        lost = [key for key, each in after.items() if key in before and not any(each)]
        await tx.execute_rows(_DELETION, lost)
        await count_standings(tx, before, after)


_DELETION: Final = standings.delete().where(
    standings.c.period == sa.bindparam("of_period"),
    standings.c.category == sa.bindparam("of_category"),
    standings.c.wallet == sa.bindparam("of_wallet"),
)
