"""Sports, types of markets, teams, and series: what created games name."""

from typing import Final

from foretell.discovery.catalog import show_events
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.pages import ASCENDING, LIMIT, OFFSET, SERIES_ORDER, read_page
from foretell.discovery.paths import parse_id
from foretell.discovery.render_sports import render_series, render_sport, render_team
from foretell.discovery.responses import MarketTypes, SeriesResponse, Sport, Team
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.parameters import entries, ids, ignored, optional_boolean, text
from foretell.edge.query import Query
from foretell.store.database import Transaction
from foretell.store.queries.catalog import load_events_of_series
from foretell.store.queries.games import (
    CatalogSeries,
    SeriesFilter,
    TeamFilter,
    load_market_types,
    load_one_series,
    load_series,
    load_sports,
    load_teams,
)

SPORTS_MAX: Final = 500
EVENTS_OF_SERIES_MAX: Final = 100

LEAGUES: Final = entries("league", "league slugs, any of them")
NAMES: Final = entries("name", "names, any of them")
ABBREVIATIONS: Final = entries("abbreviation", "abbreviations, any of them")
TEAMS_PARAMETERS: Final = (LIMIT, OFFSET, LEAGUES, NAMES, ABBREVIATIONS)

SERIES_ID_LIST: Final = ids("id", "series ids")
SERIES_SLUG_LIST: Final = entries("slug", "series slugs")
SERIES_CLOSED: Final = optional_boolean("closed", "only series without an open market, or with one")
SERIES_RECURRENCE: Final = text("recurrence", "no series is recurring").hidden()
SERIES_IGNORED: Final = ignored("categories_ids", "categories_labels", "include_chat", "locale")
SERIES_PARAMETERS: Final = (
    LIMIT,
    OFFSET,
    SERIES_ORDER,
    ASCENDING,
    SERIES_ID_LIST,
    SERIES_SLUG_LIST,
    SERIES_CLOSED,
    SERIES_RECURRENCE,
    SERIES_IGNORED,
)
ONE_SERIES_PARAMETERS: Final = (ignored("include_chat", "locale"),)


async def list_sports(context: DiscoveryContext, query: Query) -> list[Sport]:
    """Return the sports of created events."""
    query.check_known()
    async with context.database.public_reading() as tx:
        found = await load_sports(tx, SPORTS_MAX)
    return [render_sport(sport, context.blob_base_url) for sport in found]


async def list_market_types(context: DiscoveryContext, query: Query) -> MarketTypes:
    """Return the types of created markets."""
    query.check_known()
    async with context.database.public_reading() as tx:
        return MarketTypes(market_types=list(await load_market_types(tx)))


async def list_teams(context: DiscoveryContext, query: Query) -> list[Team]:
    """Return a page of teams."""
    chosen = TeamFilter(
        leagues=query.read(LEAGUES),
        names=query.read(NAMES),
        abbreviations=query.read(ABBREVIATIONS),
    )
    limit, offset = query.read(LIMIT), query.read(OFFSET)
    query.check_known()
    async with context.database.public_reading() as tx:
        found = await load_teams(tx, chosen, limit, offset)
    return [render_team(team, context.blob_base_url) for team in found]


async def list_series(context: DiscoveryContext, query: Query) -> list[SeriesResponse]:
    """Return a page of series, without their events."""
    page = read_page(query, SERIES_ORDER)
    chosen = SeriesFilter(
        series_ids=query.read(SERIES_ID_LIST),
        slugs=query.read(SERIES_SLUG_LIST),
        is_closed=query.read(SERIES_CLOSED),
    )
    recurrence = query.read(SERIES_RECURRENCE)
    query.read(SERIES_IGNORED)
    query.check_known()
    if recurrence:
        return []
    async with context.database.public_reading() as tx:
        found = await load_series(tx, chosen, page)
    return [render_series(each, context.blob_base_url) for each in found]


async def find_series(context: DiscoveryContext, query: Query, id_text: str) -> SeriesResponse:
    """Return the series of an id with its newest events."""
    query.check(ONE_SERIES_PARAMETERS)
    async with context.database.public_reading() as tx:
        found = await _find_series(tx, id_text)
        newest = await load_events_of_series(tx, found.series_id, EVENTS_OF_SERIES_MAX)
    events = await show_events(context, newest)
    return render_series(found, context.blob_base_url, events)


async def check_series(context: DiscoveryContext, query: Query, id_text: str) -> None:
    """Refuse an id that belongs to no series."""
    query.check_known()
    async with context.database.public_reading() as tx:
        await _find_series(tx, id_text)


async def _find_series(tx: Transaction, id_text: str) -> CatalogSeries:
    found = await load_one_series(tx, parse_id(id_text))
    if found is None:
        raise UnknownRecord("id")
    return found
