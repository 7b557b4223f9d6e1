from collections.abc import Sequence

import pytest
from tests.rigs.payloads import ABSENT, AWAY, a_team
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, TOKEN

from foretell.store.database import Database
from foretell.store.queries.catalog import load_catalog_markets, load_events, load_events_of_series
from foretell.store.queries.catalog_filters import (
    EventFilter,
    MarketFilter,
    load_event_ids,
    load_market_ids,
)
from foretell.store.queries.games import (
    CatalogSportsMarket,
    CatalogTeam,
    SeriesFilter,
    TeamFilter,
    load_market_types,
    load_one_series,
    load_series,
    load_sports,
    load_teams,
)
from foretell.store.queries.sorted_pages import ListPage, SortField

pytestmark = pytest.mark.anyio

PAGE = ListPage(limit=10)
BY_SLUG = ListPage(limit=10, fields=(SortField.SLUG,), is_ascending=True)
NAMELESS = {"sportSlug": ABSENT, "leagueSlug": ABSENT, "teams": ABSENT, "template": ABSENT}


@pytest.fixture
async def games(database: Database) -> None:
    """Two games of one league, a resolved one of another, one of none, and no game."""
    boston = [a_team(name="Boston"), a_team(AWAY, name="Miami", logo=ABSENT)]
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(a_game_event_row("first"))
        await rows.open(a_game_event_row("second", template={}, markets=ABSENT), NOW_MS + 1)
        nba = {"sportSlug": ABSENT, "leagueSlug": "nba", "teams": boston, "template": {}}
        await rows.open(a_game_event_row("third", markets=ABSENT, **nba), NOW_MS + 2)
        await rows.open(a_game_event_row("fourth", **NAMELESS), NOW_MS + 3)
        await rows.open_named("rain")
        await rows.quote("first btts", 40, 45, 42, volume_units=3 * TOKEN)
        await rows.quote("second moneyline-home", 40, 45, 42, volume_units=2 * TOKEN)
        for side in ("home", "away"):
            await rows.resolve(f"third moneyline-{side}", 1, 0)


@pytest.mark.usefixtures("games")
async def test_a_game_has_its_series_or_none(database: Database) -> None:
    async with database.reading() as tx:
        events = await load_events(tx, [1, 3, 4, 5])

    found = {event.event_id: event.game for event in events if event.game is not None}
    assert {event_id: game.series_slug for event_id, game in found.items()} == {
        1: "eliteserien",
        3: "nba",
        4: None,
    }
    assert found[1].game_id == "game-77"
    assert found[1].details["source_match_confidence"] == 0.93
    assert found[1].details["teams"][0]["abbreviation"] == "BRA"


@pytest.mark.usefixtures("games")
async def test_a_sports_market_keeps_its_line_exactly(database: Database) -> None:
    async with database.reading() as tx:
        [market] = await load_catalog_markets(tx, [5, 999])

    assert market.sports == CatalogSportsMarket("spreads", "-1.5", None, None)


@pytest.mark.usefixtures("games")
async def test_types_sports_and_teams_are_each_there_once(database: Database) -> None:
    async with database.reading() as tx:
        types = await load_market_types(tx)
        [sport] = await load_sports(tx, 10)
        teams = await load_teams(tx, TeamFilter(), 10, 0)
        [miami] = await load_teams(tx, TeamFilter(leagues=["nba"], names=["Miami"]), 10, 0)

    assert types == ["both_teams_to_score", "first_goal", "moneyline", "spreads", "totals"]
    assert (sport.slug, sport.tag_ids, sport.series_ids) == ("soccer", [1, 2, 3], [1])
    assert [team.name for team in teams] == ["Brann", "Molde", "Boston", "Miami"]
    assert miami == CatalogTeam(4, "nba", "Miami", "MOL", "", NOW_MS + 2, NOW_MS + 2)


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("chosen", "page", "slugs"),
    [
        (SeriesFilter(), PAGE, ["nba", "eliteserien"]),
        (SeriesFilter(), BY_SLUG, ["eliteserien", "nba"]),
        (SeriesFilter(is_closed=True), PAGE, ["nba"]),
        (SeriesFilter(is_closed=False), PAGE, ["eliteserien"]),
        (SeriesFilter(series_ids=[2], slugs=["nba"]), PAGE, ["nba"]),
        (SeriesFilter(series_ids=[2], slugs=["eliteserien"]), PAGE, []),
    ],
)
async def test_series_are_filtered_and_sorted(
    database: Database, chosen: SeriesFilter, page: ListPage, slugs: Sequence[str]
) -> None:
    await keep_listings(database)
    async with database.reading() as tx:
        found = await load_series(tx, chosen, page)

    assert [series.slug for series in found] == slugs


@pytest.mark.usefixtures("games")
async def test_a_series_sums_the_volume_of_its_markets(database: Database) -> None:
    await keep_listings(database)
    async with database.reading() as tx:
        [series] = await load_series(tx, SeriesFilter(slugs=["eliteserien"]), PAGE)
        assert await load_one_series(tx, series.series_id) == series
        assert await load_one_series(tx, 99) is None
        events = await load_events_of_series(tx, series.series_id, 10)
        newest = await load_events_of_series(tx, series.series_id, 1)
        assert [event for event, _ in events] == await load_events(tx, [2, 1])

    assert (series.volume_units, series.is_closed) == (5 * TOKEN, False)
    assert (series.created_at_ms, series.updated_at_ms) == (NOW_MS, NOW_MS + 1)
    assert newest == events[:1]


@pytest.mark.usefixtures("games")
async def test_lists_are_filtered_by_series_game_and_type(database: Database) -> None:
    events = EventFilter(series_slugs=["nba"], series_ids=[2])
    typed = MarketFilter(market_types=["totals"], game_ids=["game-77"])
    async with database.reading() as tx:
        event_rows = await load_event_ids(tx, events, PAGE)
        market_rows = await load_market_ids(tx, typed, PAGE)

    assert [row.row_id for row in event_rows] == [3]
    assert [row.row_id for row in market_rows] == [7]
