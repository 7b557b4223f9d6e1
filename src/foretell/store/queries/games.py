"""Games of events, and the sports, series and teams that they name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.store.database import Transaction
from foretell.store.lookups import one_of
from foretell.store.queries.exact_sums import load_series_volumes
from foretell.store.queries.sorted_pages import ListPage, SortField, load_page
from foretell.store.tables import (
    series,
    series_totals,
    sport_tags,
    sports,
    sports_events,
    sports_markets,
    teams,
)
from foretell.store.text_order import by_code_points

MARKET_TYPES_MAX: Final = 1000


class CatalogSeries(NamedTuple):
    """A series: the games of a league."""

    series_id: int
    slug: str
    title: str
    image: str
    created_at_ms: int
    updated_at_ms: int
    volume_units: int
    is_closed: bool


class CatalogGame(NamedTuple):
    """The game of an event; `details` are as in the public documents of its markets."""

    game_id: str | None
    details: Mapping[str, Any]
    series_id: int | None
    series_slug: str | None
    series_title: str | None
    series_image: str | None
    series_created_at_ms: int | None
    series_updated_at_ms: int | None


class CatalogSportsMarket(NamedTuple):
    """The sports part of a market."""

    market_type: str | None
    line: str | None
    group_item_title: str | None
    group_item_threshold: str | None


class CatalogSport(NamedTuple):
    """A sport, with the ids of its events' tags and of its series."""

    sport_id: int
    slug: str
    image: str
    resolution_source: str | None
    created_at_ms: int
    tag_ids: Sequence[int]
    series_ids: Sequence[int]


class CatalogTeam(NamedTuple):
    """A team of a league."""

    team_id: int
    league_slug: str
    name: str
    abbreviation: str
    logo: str
    created_at_ms: int
    updated_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamFilter:
    """A filter for teams; empty matches every team."""

    leagues: Collection[str] = ()
    names: Collection[str] = ()
    abbreviations: Collection[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesFilter:
    """A filter for series; None and empty match every series."""

    series_ids: Collection[int] = ()
    slugs: Collection[str] = ()
    is_closed: bool | None = None


GAME: Final = (
    sports_events.c.game_id,
    sports_events.c.details,
    series.c.series_id,
    series.c.slug.label("series_slug"),
    series.c.title.label("series_title"),
    series.c.image.label("series_image"),
    series.c.created_at_ms.label("series_created_at_ms"),
    series.c.updated_at_ms.label("series_updated_at_ms"),
)
"""The columns of a game, for queries that join an event with it and its series."""
_DETAILS: Final = CatalogGame._fields.index("details")
SPORTS_MARKET: Final = (
    sports_markets.c.market_type,
    sports_markets.c.line,
    sports_markets.c.group_item_title,
    sports_markets.c.group_item_threshold,
)
"""The columns of the sports part of a market."""
SERIES_ID: Final = "series"
EVENTS_OF_SERIES_MAX: Final = "rows"
NEWEST_OF_SERIES: Final = (
    sa.select(sports_events.c.event_id)
    .where(sports_events.c.series_id == sa.bindparam(SERIES_ID, type_=sa.BigInteger))
    .order_by(sports_events.c.event_id.desc())
    .limit(sa.bindparam(EVENTS_OF_SERIES_MAX, type_=sa.BigInteger))
)
"""The ids of the newest events of a series, as a part of a query with these two parameters."""


def game_of(cells: Sequence[Any]) -> CatalogGame | None:
    """Return the game in the columns of `GAME`, or None if the event has none."""
    return CatalogGame._make(cells) if cells[_DETAILS] is not None else None


def sports_market_of(row_id: int | None, cells: Sequence[Any]) -> CatalogSportsMarket | None:
    """Return the sports part in the columns of `SPORTS_MARKET`, or None if the market has none."""
    return None if row_id is None else CatalogSportsMarket._make(cells)


_IS_OPEN: Final = sa.func.coalesce(series_totals.c.open_events, 1) > 0
"""The condition that an event of a series is open; one that has no totals yet was opened some seconds ago."""
_IDS: Final = "ids"
_TOTALED_SERIES: Final = series.outerjoin(
    series_totals, series_totals.c.series_id == series.c.series_id
)
_SERIES: Final = (
    sa.select(series, series_totals.c.volume_units, _IS_OPEN.label("is_open"))
    .select_from(_TOTALED_SERIES)
    .where(one_of(series.c.series_id, _IDS))
)


async def load_market_types(tx: Transaction) -> Sequence[str]:
    """Return the types of all sports markets, sorted."""
    market_type = by_code_points(sports_markets.c.market_type)
    rows = await tx.all(
        sa.select(market_type.label("market_type"))
        .where(sports_markets.c.market_type.is_not(None))
        .distinct()
        .order_by(market_type)
        .limit(MARKET_TYPES_MAX)
    )
    return [row.market_type for row in rows]


_SEPARATOR: Final = ","


def _joined(table: sa.Table, ids: sa.Column[Any]) -> sa.ScalarSelect[Any]:
    """Return the ids of a sport's rows as one text, in any order."""
    joined = sa.func.aggregate_strings(sa.cast(ids, sa.Text), _SEPARATOR)
    return sa.select(joined).where(table.c.sport_id == sports.c.sport_id).scalar_subquery()


_SPORTS: Final = (
    sa.select(
        sports,
        _joined(sport_tags, sport_tags.c.tag_id).label("tag_ids"),
        _joined(series, series.c.series_id).label("series_ids"),
    )
    .order_by(sports.c.sport_id)
    .limit(sa.bindparam("rows", type_=sa.BigInteger))
)


async def load_sports(tx: Transaction, sports_max: int) -> Sequence[CatalogSport]:
    """Return at most `sports_max` sports, in the order of their first events."""
    rows = await tx.all(_SPORTS, {"rows": sports_max})
    return [
        CatalogSport(
            row.sport_id,
            row.slug,
            row.image,
            row.resolution_source,
            row.created_at_ms,
            _sorted_ids(row.tag_ids),
            _sorted_ids(row.series_ids),
        )
        for row in rows
    ]


def _sorted_ids(joined: str | None) -> list[int]:
    return [] if joined is None else sorted(map(int, joined.split(_SEPARATOR)))


async def load_teams(
    tx: Transaction, chosen: TeamFilter, limit: int, offset: int
) -> Sequence[CatalogTeam]:
    """Return a page of teams, in the order of their first games."""
    named = (
        (chosen.leagues, teams.c.league_slug),
        (chosen.names, teams.c.name),
        (chosen.abbreviations, teams.c.abbreviation),
    )
    clauses = [column.in_(sorted(wanted)) for wanted, column in named if wanted]
    rows = await tx.all(
        sa.select(*(teams.c[name] for name in CatalogTeam._fields))
        .where(*clauses)
        .order_by(teams.c.team_id)
        .limit(limit)
        .offset(offset)
    )
    return [CatalogTeam._make(row) for row in rows]


async def load_one_series(tx: Transaction, series_id: int) -> CatalogSeries | None:
    """Return a series with the collateral traded in its markets, or None if there is none of this id."""
    found = await _load_series(tx, [series_id])
    return found[0] if found else None


async def load_series(
    tx: Transaction, chosen: SeriesFilter, page: ListPage
) -> Sequence[CatalogSeries]:
    """Return a page of series with the collateral traded in their markets."""
    keys = {
        SortField.ID: series.c.series_id,
        SortField.SLUG: by_code_points(series.c.slug),
        SortField.TITLE: by_code_points(series.c.title),
        SortField.CREATED: series.c.created_at_ms,
        SortField.UPDATED: series.c.updated_at_ms,
    }
    clauses: list[sa.ColumnElement[bool]] = []
    if chosen.series_ids:
        clauses.append(series.c.series_id.in_(sorted(chosen.series_ids)))
    if chosen.slugs:
        clauses.append(series.c.slug.in_(sorted(chosen.slugs)))
    if chosen.is_closed is not None:
        clauses.append(~_IS_OPEN if chosen.is_closed else _IS_OPEN)
    wanted = sa.select(series.c.series_id).select_from(_TOTALED_SERIES).where(*clauses)
    found = await load_page(tx, wanted, keys, page)
    ids = [cursor.row_id for cursor in found]
    series_by_id = {each.series_id: each for each in await _load_series(tx, ids)}
    return [series_by_id[series_id] for series_id in ids]


async def _load_series(tx: Transaction, ids: Sequence[int]) -> Sequence[CatalogSeries]:
    """Return these series; the volume of one that may have an event beyond a column is added up by markets."""
    rows = await tx.all(_SERIES, {_IDS: ids})
    volume_by_id = {row.series_id: int(row.volume_units or 0) for row in rows}
    large = [each for each, volume in volume_by_id.items() if volume >= AMOUNT_UNITS_MAX]
    volume_by_id |= await load_series_volumes(tx, large) if large else {}
    return [_series(row, volume_by_id[row.series_id]) for row in rows]


def _series(row: Any, volume_units: int) -> CatalogSeries:
    return CatalogSeries(
        series_id=row.series_id,
        slug=row.slug,
        title=row.title,
        image=row.image,
        created_at_ms=row.created_at_ms,
        updated_at_ms=row.updated_at_ms,
        volume_units=volume_units,
        is_closed=not row.is_open,
    )
