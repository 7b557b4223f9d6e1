"""The number of standings in the parts of heavy buckets: those of equal or nearly equal amounts may be all wallets.

A bucket has parts while it has `HEAVY_FROM` wallets or more. They are counted when it comes to have so many, or is
changed for the first time since; from then on they follow its standings.
"""

from collections import Counter
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.rank_buckets import last_of_bucket, part_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.lookups import load_rows
from foretell.store.many_rows import upsert_many
from foretell.store.tables import rank_parts, rank_ties, standings

HEAVY_FROM: Final = 2_000
"""Fewer wallets are counted one by one. Another number needs `foretell index rebuild`."""
PREFIX_DIGITS: Final = 2
"""The hex digits of a wallet by which those of one amount are counted."""

CountKey = tuple[int, str, str, int]
"""A period, a category, what is counted, and a bucket."""

COUNTED_GAIN: Final = "gain"
COUNTED_VOLUME: Final = "volume"
COLUMNS: Final = MappingProxyType(
    {COUNTED_GAIN: standings.c.gain_units, COUNTED_VOLUME: standings.c.volume_units}
)


class StandingPlace(NamedTuple):
    """The place of a standing among all: its amount, and its wallet among those of the same."""

    units: int
    wallet: Address


Moves = dict[StandingPlace, int]
"""The standings that come into a bucket, with 1, and that leave it, with -1."""


class BucketCount(NamedTuple):
    """The number of standings in a bucket before a change, and after it."""

    was: int
    now: int


async def count_parts(
    tx: Transaction, counts: Mapping[CountKey, BucketCount], moves: Mapping[CountKey, Moves]
) -> None:
    """Keep the parts of the changed buckets; their standings and their counts are written already."""
    added: dict[CountKey, Moves] = {}
    for key, count in counts.items():
        if count.now >= HEAVY_FROM:
            added[key] = moves[key] if await _has_parts(tx, key) else await _standings(tx, key)
        elif count.was >= HEAVY_FROM:
            for table, column in _AMOUNTS:
                await tx.execute(table.delete().where(*_in_bucket(table, column, key)))
    parts: Counter[tuple[int | str, ...]] = Counter()
    ties: Counter[tuple[int | str, ...]] = Counter()
    for key, places in added.items():
        for place, sign in places.items():
            parts[*key[:3], part_of(place.units).first] += sign
            ties[*key[:3], place.units, prefix_of(place.wallet)] += sign
    await _add(tx, rank_parts, parts)
    await _add(tx, rank_ties, ties)


def prefix_of(wallet: Address) -> int:
    """Return the number by which wallets of one amount are counted, in their order."""
    return int(wallet[2 : 2 + PREFIX_DIGITS], 16)


def last_of_prefix(wallet: Address) -> str:
    """Return the greatest address that is counted with this one."""
    return wallet[: 2 + PREFIX_DIGITS].ljust(len(wallet), "f")


_AMOUNTS: Final = ((rank_parts, rank_parts.c.first_units), (rank_ties, rank_ties.c.units))


async def _has_parts(tx: Transaction, key: CountKey) -> bool:
    in_bucket = _in_bucket(rank_parts, rank_parts.c.first_units, key)
    return await tx.first(sa.select(sa.literal(1)).where(*in_bucket).limit(1)) is not None


async def _standings(tx: Transaction, key: CountKey) -> Moves:
    """Return all standings of a bucket."""
    period, category, counted, bucket = key
    units = COLUMNS[counted]
    rows = await tx.all(
        sa.select(units.label("units"), standings.c.wallet).where(
            standings.c.period == period,
            standings.c.category == category,
            units > last_of_bucket(bucket - 1),
            units <= last_of_bucket(bucket),
            *([standings.c.volume_units > 0] if counted == COUNTED_VOLUME else []),
        )
    )
    return {StandingPlace(row.units, Address(row.wallet)): 1 for row in rows}


def _in_bucket(
    table: sa.Table, units: sa.Column[int], key: CountKey
) -> list[sa.ColumnElement[bool]]:
    period, category, counted, bucket = key
    return [
        table.c.period == period,
        table.c.category == category,
        table.c.counted == counted,
        units > last_of_bucket(bucket - 1),
        units <= last_of_bucket(bucket),
    ]


async def _add(tx: Transaction, table: sa.Table, added: Counter[tuple[int | str, ...]]) -> None:
    """Add to counts, and delete those that are 0 then."""
    changed = Counter({key: wallets for key, wallets in added.items() if wallets})
    for row in await load_rows(tx, table, table.primary_key, changed):
        changed[tuple(row)[:-1]] += row.wallets
    await upsert_many(tx, table, sorted((*key, count) for key, count in changed.items()))
    names = [column.name for column in table.primary_key]
    empty = table.delete().where(*(table.c[name] == sa.bindparam(f"of_{name}") for name in names))
    await tx.execute_rows(empty, [key for key, count in changed.items() if not count])
