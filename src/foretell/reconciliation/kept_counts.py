"""Counts and totals that the tables keep of each other's rows, added up from those rows one by one.

The parts of heavy buckets are counted from recomputed standings; the totals of series and tags from the catalogue.
"""

from typing import Final, NamedTuple

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.reconciliation.chain_figures import CASH, ChainFigures
from foretell.reconciliation.leaderboards.standings import StandingKey
from foretell.reconciliation.plain_classes import bucket_of, days_of, first_of_part
from foretell.store.database import Transaction
from foretell.store.index.rankings import parts
from foretell.store.queries.index_tables import load_pages, load_sums
from foretell.store.spill import SpilledRows, SpillFile
from foretell.store.tables import (
    event_tags,
    market_totals,
    rank_parts,
    rank_ties,
    sports_events,
)

SportTag = tuple[int, int]
"""The numbers of a sport and of a tag that one of its events has."""

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


def count_supplies(figures: ChainFigures, spill: SpillFile) -> SpilledRows[str, str]:
    """Return what the wallets together hold of each token, as text."""
    counted = spill.mapping("counted_supplies", 1, str, "0")
    for (_, token), units in figures.balances.now.items():
        if token != CASH:
            counted[token] = str(int(counted[token]) + units)
    return counted


async def count_series(tx: Transaction, spill: SpillFile) -> SpilledRows[int, tuple[str, int]]:
    """Return the volume of each series, as text, and its open events, from the totals of its markets."""
    series_by_event: SpilledRows[int, int] = spill.mapping("series_by_event", 1, int)
    async for page in load_pages(tx, sports_events):
        for row in page:
            if row.series_id is not None:
                series_by_event[row.event_id] = row.series_id
    volumes: SpilledRows[int, int] = spill.mapping("event_volumes", 1, int, 0)
    is_open: SpilledRows[int, bool] = spill.mapping("open_events", 1, bool)
    async for page in load_pages(tx, market_totals):
        for row in page:
            if row.event_id in series_by_event:
                volume = volumes[row.event_id] + row.volume_units
                volumes[row.event_id] = min(volume, AMOUNT_UNITS_MAX)
                is_open[row.event_id] = is_open.get(row.event_id, False) or row.closed_at_s is None
    series = spill.mapping("counted_series", 1, tuple[str, int], ("0", 0))
    for event_id, units in volumes.items():
        series_id = series_by_event[event_id]
        volume_text, open_events = series[series_id]
        series[series_id] = str(int(volume_text) + units), open_events + is_open[event_id]
    return series


async def count_tags(tx: Transaction, spill: SpillFile) -> SpilledRows[int, int]:
    """Return the number of events of each tag."""
    counted: SpilledRows[int, int] = spill.mapping("counted_tags", 1, int, 0)
    async for page in load_pages(tx, event_tags):
        for row in page:
            counted[row.tag_id] += 1
    return counted


async def tag_sports(tx: Transaction, spill: SpillFile) -> SpilledRows[SportTag, bool]:
    """Return the tags that the events of each sport have."""
    sport_by_event: SpilledRows[int, int] = spill.mapping("sport_by_event", 1, int)
    async for page in load_pages(tx, sports_events):
        for row in page:
            if row.sport_id is not None:
                sport_by_event[row.event_id] = row.sport_id
    tagged: SpilledRows[SportTag, bool] = spill.mapping("counted_sport_tags", 2, bool)
    async for page in load_pages(tx, event_tags):
        for row in page:
            sport_id = sport_by_event.get(row.event_id)
            if sport_id is not None:
                tagged[sport_id, row.tag_id] = True
    return tagged
