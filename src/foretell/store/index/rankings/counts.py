"""The number of standings in each bucket of gains and of volumes, from which the rank of a wallet is added up."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.gains import bounded
from foretell.domain.portfolio.rank_buckets import bucket_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.rankings.parts import (
    COUNTED_GAIN,
    COUNTED_VOLUME,
    BucketCount,
    CountKey,
    Moves,
    StandingPlace,
    count_parts,
)
from foretell.store.lookups import load_rows
from foretell.store.many_rows import upsert_many
from foretell.store.tables import rank_counts

StandingKey = tuple[int, str, Address]
"""A period, a category and a wallet."""


class StandingUnits(NamedTuple):
    """What a wallet traded and gained; with nothing of both it has no standing."""

    volume_units: int
    gain_units: int

    def plus(self, added: "StandingUnits") -> "StandingUnits":
        """Return the sum, within what a sum may be."""
        return StandingUnits(
            bounded(self.volume_units + added.volume_units),
            bounded(self.gain_units + added.gain_units),
        )

    def counted(self) -> Iterator[tuple[str, int]]:
        """Yield what it is counted in, each with the bucket: it is ranked by volume only if it has some."""
        if any(self):
            yield COUNTED_GAIN, bucket_of(self.gain_units)
        if self.volume_units > 0:
            yield COUNTED_VOLUME, bucket_of(self.volume_units)


NO_STANDING: Final = StandingUnits(0, 0)


_EMPTY_COUNT: Final = rank_counts.delete().where(
    *(column == sa.bindparam(f"of_{column.name}") for column in rank_counts.primary_key)
)


async def count_standings(
    tx: Transaction,
    before: Mapping[StandingKey, StandingUnits],
    after: Mapping[StandingKey, StandingUnits],
) -> None:
    """Take standings out of the counts of their buckets, and put them into those of now.

    The standings themselves are written already.
    """
    placed: Counter[tuple[CountKey, StandingPlace]] = Counter()
    for sign, held in ((-1, before), (1, after)):
        for (period, category, wallet), standing in held.items():
            units_of = {COUNTED_GAIN: standing.gain_units, COUNTED_VOLUME: standing.volume_units}
            for counted, bucket in standing.counted():
                place = StandingPlace(units_of[counted], wallet)
                placed[(period, category, counted, bucket), place] += sign
    moves: defaultdict[CountKey, Moves] = defaultdict(dict)
    for (key, place), sign in placed.items():
        if sign:
            moves[key][place] = sign
    was = dict.fromkeys(moves, 0)
    for row in await load_rows(tx, rank_counts, rank_counts.primary_key, moves):
        was[row.period, row.category, row.counted, row.bucket] = row.wallets
    counts = {key: BucketCount(was[key], was[key] + sum(moves[key].values())) for key in moves}
    changed = {key: count.now for key, count in counts.items() if count.now != count.was}
    await upsert_many(tx, rank_counts, sorted((*key, now) for key, now in changed.items()))
    await tx.execute_rows(_EMPTY_COUNT, [key for key, now in changed.items() if not now])
    await count_parts(tx, counts, moves)
