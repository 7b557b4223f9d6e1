"""The numbers of standings in buckets of amounts and in the parts of heavy ones, counted one by one."""

from typing import Final, NamedTuple

from foretell.reconciliation.leaderboards.standings import StandingKey
from foretell.reconciliation.plain_classes import bucket_of, days_of, first_of_part
from foretell.store.database import Transaction
from foretell.store.index.rankings import parts
from foretell.store.queries.index_tables import load_sums
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import rank_parts, rank_ties

WALLET_PREFIX: Final = slice(2, 4)
"""The digits of an address by which wallets of one amount are counted."""

BucketKey = tuple[int, str, str, int]
"""A period, a category, what is counted, and a bucket."""


class CountedRanks(NamedTuple):
    """The numbers of standings in buckets, in the parts of heavy ones, and among those of one amount."""

    buckets: SpilledRows[BucketKey, int]
    parts: SpilledRows[BucketKey, int]
    ties: SpilledRows[tuple[int, str, str, int, int], int]


async def count_ranks(
    tx: Transaction,
    spill: SpillFile,
    sums: SpilledRows[StandingKey, tuple[int, int]],
    generation: int,
) -> CountedRanks:
    """Count the standings of every bucket, and those of each part of the heavy buckets that have parts.

    A heavy bucket that has not changed since it could have parts has none, and no ties either.
    """
    counted = CountedRanks(
        spill.mapping("counted_ranks", 4, int, 0),
        spill.mapping("counted_parts", 4, int, 0),
        spill.mapping("counted_ties", 5, int, 0),
    )
    divided = await _divided_buckets(tx, spill, generation)
    for (period, category, _), units in sums.items():
        for name, amount in ranked(units):
            counted.buckets[period, category, name, bucket_of(amount)] += 1
    for (period, category, wallet), units in sums.items():
        for name, amount in ranked(units):
            bucket = period, category, name, bucket_of(amount)
            if counted.buckets[bucket] >= parts.HEAVY_FROM and bucket in divided:
                counted.parts[period, category, name, first_of_part(amount)] += 1
                counted.ties[period, category, name, amount, int(wallet[WALLET_PREFIX], 16)] += 1
    return counted


async def _divided_buckets(
    tx: Transaction, spill: SpillFile, generation: int
) -> SpilledRows[BucketKey, bool]:
    """Return the buckets that have parts or ties in the tables."""
    divided: SpilledRows[BucketKey, bool] = spill.mapping("divided_buckets", 4, bool)
    for table in (rank_parts, rank_ties):
        async for page in load_sums(tx, table, generation):
            for row in page:
                units = tuple(row)[3]
                divided[days_of(row.period), row.category, row.counted, bucket_of(units)] = True
    return divided


def ranked(units: tuple[int, int]) -> list[tuple[str, int]]:
    """Return the amounts of a standing that have a rank."""
    volume, gain = units
    ranked = [(parts.COUNTED_GAIN, gain)] if volume or gain else []
    return [*ranked, (parts.COUNTED_VOLUME, volume)] if volume > 0 else ranked
