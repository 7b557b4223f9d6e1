"""Rankings of all wallets by volume and by gain, and the largest wins, read from sums that are kept.

A page is a walk along an index. The rank of one wallet adds up the counts of the buckets before its own, and counts
the standings of that one, or adds up the counts of its parts.
"""

import enum
from collections.abc import Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.rank_buckets import bucket_of, last_of_bucket, part_of
from foretell.domain.values.hexadecimal import Address
from foretell.store.database import Transaction
from foretell.store.index.generations import live_key
from foretell.store.index.rankings.parts import (
    COUNTED_GAIN,
    COUNTED_VOLUME,
    StandingPlace,
    last_of_prefix,
    prefix_of,
)
from foretell.store.index.rankings.progress import ALL_CATEGORIES
from foretell.store.tables import (
    events,
    markets,
    positions,
    rank_counts,
    rank_parts,
    rank_ties,
    standings,
    wins,
)


class RankingOrder(enum.Enum):
    """Sort keys of rankings, by their columns."""

    GAIN = "gain_units"
    VOLUME = "volume_units"


_DAYS: Final = sa.bindparam("period", type_=sa.BigInteger)
_COUNTED: Final = MappingProxyType(
    {RankingOrder.GAIN: COUNTED_GAIN, RankingOrder.VOLUME: COUNTED_VOLUME}
)


class RankingScope(NamedTuple):
    """The period and the main category that a ranking covers; None covers all categories."""

    period: Period
    main_category: str | None


class Ranking(NamedTuple):
    """A wallet's rank."""

    rank: int
    wallet: Address
    volume_units: int
    gain_units: int


class Win(NamedTuple):
    """A position closed with a gain; the market's fields are None for a condition without a market."""

    wallet: Address
    event_title: str | None
    event_slug: str | None
    slug: str | None
    icon: str | None
    spent_units: int
    realized_units: int


async def load_rankings(
    tx: Transaction, scope: RankingScope, order: RankingOrder, *, limit: int, offset: int
) -> Sequence[Ranking]:
    """Return a page of the ranking.

    A wallet without a trade, a gain or a loss in the scope is not ranked, nor by volume one without a trade.
    """
    category = scope.main_category or ALL_CATEGORIES
    values = {"period": int(scope.period), "category": category, "rows": limit, "skipped": offset}
    rows = await tx.all(_rankings(order), values)
    return [
        Ranking(rank, Address(row.wallet), row.volume_units, row.gain_units)
        for rank, row in enumerate(rows, start=offset + 1)
    ]


@lru_cache
def _rankings(order: RankingOrder) -> sa.Select[Any]:
    """Return the query for a page of a ranking, built once."""
    least = [standings.c.volume_units > 0] if order is RankingOrder.VOLUME else []
    return (
        sa.select(standings.c.wallet, standings.c.volume_units, standings.c.gain_units)
        .where(
            standings.c.period == live_key(_DAYS),
            standings.c.category == sa.bindparam("category"),
            *least,
        )
        .order_by(standings.c[order.value].desc(), standings.c.wallet.desc())
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
        .offset(sa.bindparam("skipped", type_=sa.BigInteger))
    )


async def load_ranking_of(
    tx: Transaction, scope: RankingScope, order: RankingOrder, wallet: Address
) -> Ranking | None:
    """Return the rank of one wallet, or None if it has none."""
    own = await tx.first(
        sa.select(standings).where(*_within(standings, scope), standings.c.wallet == wallet)
    )
    if own is None or (order is RankingOrder.VOLUME and own.volume_units <= 0):
        return None
    column, units = standings.c[order.value], getattr(own, order.value)
    bucket = bucket_of(units)
    is_counted = rank_counts.c.counted == _COUNTED[order]
    is_beyond = rank_counts.c.bucket > bucket
    beyond = await tx.scalar(
        _sum_of(rank_counts, *_within(rank_counts, scope), is_counted, is_beyond)
    )
    beside = await _count_in_parts(tx, scope, order, StandingPlace(units, wallet))
    if beside is None:
        beside = await tx.scalar(
            sa.select(sa.func.count()).where(
                *_within(standings, scope),
                sa.tuple_(column, standings.c.wallet) > (units, wallet),
                column <= last_of_bucket(bucket),
            )
        )
    rank = int(beyond) + beside + 1
    return Ranking(rank, Address(own.wallet), own.volume_units, own.gain_units)


async def _count_in_parts(
    tx: Transaction, scope: RankingScope, order: RankingOrder, own: StandingPlace
) -> int | None:
    """Return how many of the own bucket are before a place, or None if the bucket has no parts."""
    part, prefix, column = part_of(own.units), prefix_of(own.wallet), standings.c[order.value]
    parts, ties = (
        [*_within(table, scope), table.c.counted == _COUNTED[order]]
        for table in (rank_parts, rank_ties)
    )
    first, units = rank_parts.c.first_units, rank_ties.c.units
    if await tx.first(sa.select(first).where(*parts, first == part.first)) is None:
        return None
    last = last_of_bucket(bucket_of(own.units))
    is_same, is_more = units == own.units, sa.and_(units > own.units, units <= part.last)
    is_own = (column == own.units, standings.c.wallet > own.wallet)
    counts = (
        _sum_of(rank_parts, *parts, first > part.first, first <= last),
        _sum_of(rank_ties, *ties, is_more),
        _sum_of(rank_ties, *ties, is_same, rank_ties.c.prefix > prefix),
        sa.select(sa.func.count()).where(
            *_within(standings, scope), *is_own, standings.c.wallet <= last_of_prefix(own.wallet)
        ),
    )
    return sum([int(await tx.scalar(count)) for count in counts])


def _sum_of(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return sa.select(sa.func.coalesce(sa.func.sum(table.c.wallets), 0)).where(*where)


async def load_wins(
    tx: Transaction, scope: RankingScope, *, limit: int, offset: int
) -> Sequence[Win]:
    """Return the closed positions with the largest gains."""
    values: dict[str, Any] = {"period": int(scope.period), "rows": limit, "skipped": offset}
    if scope.main_category is not None:
        values["category"] = scope.main_category
    rows = await tx.all(_wins(has_category=scope.main_category is not None), values)
    return [Win._make(row) for row in rows]


@lru_cache
def _wins(*, has_category: bool) -> sa.Select[Any]:
    """Return the query for a page of the wins, built once."""
    category = [wins.c.category == sa.bindparam("category")] if has_category else []
    page = (
        sa.select(wins.c.wallet, wins.c.token_id, wins.c.realized_units)
        .where(wins.c.period == live_key(_DAYS), *category)
        .order_by(wins.c.realized_units.desc(), wins.c.wallet.desc(), wins.c.token_id.desc())
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
        .offset(sa.bindparam("skipped", type_=sa.BigInteger))
        .subquery()
    )
    is_position = sa.and_(
        positions.c.wallet == page.c.wallet, positions.c.token_id == page.c.token_id
    )
    return (
        sa.select(
            page.c.wallet,
            events.c.title,
            events.c.slug.label("event_slug"),
            markets.c.slug,
            markets.c.icon,
            positions.c.spent_units,
            page.c.realized_units,
        )
        .select_from(
            page.join(positions, is_position)
            .outerjoin(markets, markets.c.condition_id == positions.c.condition_id)
            .outerjoin(events, events.c.event_id == markets.c.event_id)
        )
        .order_by(page.c.realized_units.desc(), page.c.wallet.desc(), page.c.token_id.desc())
    )


def _within(table: sa.Table, scope: RankingScope) -> list[sa.ColumnElement[bool]]:
    category = scope.main_category or ALL_CATEGORIES
    of_live = live_key(sa.literal(int(scope.period), sa.BigInteger))
    return [table.c.period == of_live, table.c.category == category]
