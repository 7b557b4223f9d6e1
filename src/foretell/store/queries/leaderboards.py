"""Rankings of all wallets by volume and by gain, and the largest wins, read from sums that are kept.

A page is a walk along an index. The rank of one wallet adds up the counts of the buckets before its own, and counts
the standings of that one, or adds up the counts of its parts, all in one statement.
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


WINS_PER_PAGE_MAX: Final = 50
WINS_SKIPPED_MAX: Final = 1_000
_DAYS: Final = sa.bindparam("period", type_=sa.BigInteger)
_WALLET: Final = sa.bindparam("wallet", type_=sa.Text)
_COUNTED: Final = MappingProxyType(
    {RankingOrder.GAIN: COUNTED_GAIN, RankingOrder.VOLUME: COUNTED_VOLUME}
)


def _within(table: sa.Table) -> list[sa.ColumnElement[bool]]:
    return [table.c.period == live_key(_DAYS), table.c.category == sa.bindparam("category")]


_OWN: Final = sa.select(standings.c.volume_units, standings.c.gain_units).where(
    *_within(standings), standings.c.wallet == _WALLET
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
        .where(*_within(standings), *least)
        .order_by(standings.c[order.value].desc(), standings.c.wallet.desc())
        .limit(sa.bindparam("rows", type_=sa.BigInteger))
        .offset(sa.bindparam("skipped", type_=sa.BigInteger))
    )


async def load_ranking_of(
    tx: Transaction, scope: RankingScope, order: RankingOrder, wallet: Address
) -> Ranking | None:
    """Return the rank of one wallet, or None if it has none."""
    category = scope.main_category or ALL_CATEGORIES
    named = {"period": int(scope.period), "category": category, "wallet": wallet}
    found = await tx.all(_OWN, named)
    if not found or (order is RankingOrder.VOLUME and found[0].volume_units <= 0):
        return None
    [own] = found
    units: int = getattr(own, order.value)
    bucket, part = bucket_of(units), part_of(units)
    place = {
        "units": units,
        "prefix": prefix_of(wallet),
        "last_of_prefix": last_of_prefix(wallet),
        "part": part.first,
        "last_of_part": part.last,
        "bucket": bucket,
        "last_of_bucket": last_of_bucket(bucket),
    }
    [(before,)] = await tx.all(_before(order), {**named, **place})
    return Ranking(int(before) + 1, wallet, own.volume_units, own.gain_units)


@lru_cache
def _before(order: RankingOrder) -> sa.Select[Any]:
    """Return the query for the number of standings before a place, built once.

    They are those in the buckets before its own, and those before it in its own bucket: the counts of its parts are
    added up if it has parts, and else its standings are counted.
    """
    counts, parts, ties = (
        [*_within(table), table.c.counted == _COUNTED[order]]
        for table in (rank_counts, rank_parts, rank_ties)
    )
    column, first, units = standings.c[order.value], rank_parts.c.first_units, rank_ties.c.units
    is_more = sa.and_(units > _place("units"), units <= _place("last_of_part"))
    is_same = sa.and_(units == _place("units"), rank_ties.c.prefix > _place("prefix"))
    own, wallet = sa.tuple_(_place("units"), _WALLET), standings.c.wallet
    last_of_prefix = sa.bindparam("last_of_prefix", type_=sa.Text)
    of_prefix = (column == _place("units"), wallet > _WALLET, wallet <= last_of_prefix)
    of_bucket = (sa.tuple_(column, wallet) > own, column <= _place("last_of_bucket"))
    in_parts = (
        _sum_of(rank_parts, *parts, first > _place("part"), first <= _place("last_of_bucket"))
        + _sum_of(rank_ties, *ties, is_more)
        + _sum_of(rank_ties, *ties, is_same)
        + _count_of(*of_prefix)
    )
    has_parts = sa.exists().where(*parts, first == _place("part"))
    in_bucket = sa.case((has_parts, in_parts), else_=_count_of(*of_bucket))
    return sa.select(
        _sum_of(rank_counts, *counts, rank_counts.c.bucket > _place("bucket")) + in_bucket
    )


def _sum_of(table: sa.Table, *where: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    summed = sa.func.coalesce(sa.func.sum(table.c.wallets), 0)
    return sa.select(summed).where(*where).scalar_subquery()


def _count_of(*where: sa.ColumnElement[bool]) -> sa.ScalarSelect[Any]:
    counted = sa.select(sa.func.count()).select_from(standings)
    return counted.where(*_within(standings), *where).scalar_subquery()


def _place(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.BigInteger)


async def load_wins(
    tx: Transaction, scope: RankingScope, *, limit: int, offset: int
) -> Sequence[Win]:
    """Return the closed positions with the largest gains: at most `WINS_PER_PAGE_MAX` after `WINS_SKIPPED_MAX`."""
    assert limit <= WINS_PER_PAGE_MAX
    assert offset <= WINS_SKIPPED_MAX
    values: dict[str, Any] = {"period": int(scope.period), "rows": limit, "skipped": offset}
    if scope.main_category is not None:
        values["category"] = scope.main_category
    has_category = scope.main_category is not None
    rows = await tx.all(_wins(tx.dialect, has_category=has_category), values)
    return [Win._make(row) for row in rows]


@lru_cache
def _wins(dialect: str, *, has_category: bool) -> sa.Select[Any]:
    """Return the query for a page of the wins, built once."""
    category = [wins.c.category == sa.bindparam("category")] if has_category else []
    largest = (
        sa.select(wins.c.wallet, wins.c.token_id, wins.c.realized_units)
        .where(wins.c.period == live_key(_DAYS), *category)
        .order_by(*_by_gain(wins.c))
    )
    rows, skipped = _place("rows"), _place("skipped")
    if dialect == "sqlite":  # it would sort the parts again
        page = largest.limit(rows).offset(skipped).subquery()
    else:
        page = _first_of(_bounded(largest, skipped), rows).subquery()
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
        .order_by(*_by_gain(page.c))
    )


def _by_gain(win: Any) -> list[sa.ColumnElement[Any]]:
    return [win.realized_units.desc(), win.wallet.desc(), win.token_id.desc()]


def _bounded(largest: sa.Select[Any], skipped: sa.BindParameter[int]) -> sa.Select[Any]:
    """Return the wins after those that are skipped, no more than a page may have.

    The numbers are in the text: without them, PostgreSQL reckons that a plan for any page reads a tenth of all wins, and
    plans again for each read.
    """
    reached = largest.limit(_constant(WINS_SKIPPED_MAX + WINS_PER_PAGE_MAX))
    return _first_of(reached, _constant(WINS_PER_PAGE_MAX)).offset(skipped)


def _first_of(part: sa.Select[Any], rows: sa.ColumnElement[int]) -> sa.Select[Any]:
    inner = part.subquery()
    return sa.select(inner).order_by(*_by_gain(inner.c)).limit(rows)


def _constant(number: int) -> sa.ColumnElement[int]:
    return sa.literal(number, sa.BigInteger, literal_execute=True)
