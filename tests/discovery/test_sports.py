"""Sports, teams, series and games, as created events name them."""

import dataclasses
from typing import Any

import pytest
from tests.rigs.applications import an_app
from tests.rigs.payloads import ABSENT, AWAY, HOME, a_sports_market, a_team, a_template
from tests.rigs.read_apis import BLOBS, Reader, fields, misfits
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, TOKEN

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app
from foretell.store.creation.markets import EventRow
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

MONEYLINE = {"template": {}, "markets": ABSENT}
SPORT = fields(("int", "id"), ("str", "sport image resolution ordering tags series createdAt"))
TEAM = fields(("int", "id"), ("str", "name league logo abbreviation createdAt updatedAt"))
SERIES = fields(
    ("str", "id ticker slug title image icon createdAt updatedAt"),
    ("bool", "active closed archived new featured restricted"),
    ("number", "volume"),
    ("int", "commentCount"),
)


@pytest.fixture
async def games(database: Database) -> None:
    """Two games of one league, one of another sport, and an event that is no game."""
    viking = [a_team(name="Viking", abbreviation="VIK"), a_team(AWAY, logo=ABSENT)]
    boston = [a_team(name="Boston", abbreviation="BOS"), a_team(AWAY, name="Miami")]
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(a_game_event_row("first"))
        await rows.open(a_game_event_row("second", teams=viking, **MONEYLINE), NOW_MS + 1000)
        await rows.open(
            a_game_event_row(
                "third",
                sportSlug="basketball",
                leagueSlug="nba",
                sourceLeagueLabel=ABSENT,
                sourceGameId=ABSENT,
                teams=boston,
                **MONEYLINE,
            ),
            NOW_MS + 2000,
        )
        await rows.open_named("rain")
        await rows.quote("first moneyline-home", 40, 45, 42, volume_units=3 * TOKEN)
        await rows.quote("second moneyline-home", 40, 45, 42, volume_units=2 * TOKEN)


async def slugs(reader: Reader, path: str, **parameters: Any) -> list[str]:
    return [record["slug"] for record in await reader.get(path, **parameters)]


@pytest.mark.usefixtures("games")
async def test_every_record_has_its_fields_with_their_types(reader: Reader) -> None:
    [sport, _] = await reader.get("/sports")
    teams = await reader.get("/teams")
    series = await reader.get("/series")
    assert misfits(sport, SPORT) == {}
    assert [misfits(team, TEAM) for team in teams] == [{}] * 5
    assert [misfits(each, SERIES) for each in series] == [{}] * 2


@pytest.mark.usefixtures("games")
async def test_a_sport_lists_the_tags_and_the_series_of_its_events(reader: Reader) -> None:
    soccer, basketball = await reader.get("/sports")
    assert (soccer["sport"], soccer["tags"], soccer["series"]) == ("soccer", "1,2,3", "1")
    assert (basketball["sport"], basketball["series"]) == ("basketball", "2")
    assert soccer["image"] == f"{BLOBS}/blobs/image-first"
    assert soccer["resolution"] == "https://example.org/results"


@pytest.mark.usefixtures("games")
async def test_the_types_of_markets_are_those_of_created_ones(reader: Reader) -> None:
    assert await reader.get("/sports/market-types") == {
        "marketTypes": ["both_teams_to_score", "first_goal", "moneyline", "spreads", "totals"]
    }


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("parameters", "names"),
    [
        ({}, ["Brann", "Molde", "Viking", "Boston", "Miami"]),
        ({"league": "nba"}, ["Boston", "Miami"]),
        ({"league": "nba,eliteserien", "name": "Viking,Miami"}, ["Viking", "Miami"]),
        ({"abbreviation": "BRA"}, ["Brann"]),
        ({"limit": "2", "offset": "1"}, ["Molde", "Viking"]),
        ({"league": "none"}, []),
    ],
)
async def test_teams_are_listed_once_and_filtered(
    reader: Reader, parameters: dict[str, str], names: list[str]
) -> None:
    assert [team["name"] for team in await reader.get("/teams", **parameters)] == names


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({}, ["nba", "eliteserien"]),
        ({"ascending": "true"}, ["eliteserien", "nba"]),
        ({"order": "title", "ascending": "true"}, ["eliteserien", "nba"]),
        ({"slug": "nba"}, ["nba"]),
        ({"id": "1"}, ["eliteserien"]),
        ({"closed": "false"}, ["nba", "eliteserien"]),
        ({"closed": "true"}, []),
        ({"recurrence": "daily"}, []),
        ({"limit": "1", "offset": "1"}, ["eliteserien"]),
    ],
)
async def test_series_are_listed_and_filtered(
    reader: Reader, parameters: dict[str, str], found: list[str]
) -> None:
    assert await slugs(reader, "/series", **parameters) == found


@pytest.mark.usefixtures("games")
async def test_a_series_has_its_events_and_the_sum_of_their_volumes(reader: Reader) -> None:
    series = await reader.get("/series/1")
    assert (series["title"], series["volume"], series["closed"]) == ("Eliteserien", 5, False)
    assert [event["slug"] for event in series["events"]] == ["event-second", "event-first"]
    assert "markets" not in series["events"][0]
    assert (await reader.get("/series/2"))["title"] == "nba"
    assert await reader.get("/series/1/comments/count") == {"count": 0}


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/series/9", 404),
        ("/series/9/comments/count", 404),
        ("/series/nba", 422),
        ("/series?order=volume", 422),
        ("/teams?limit=many", 422),
    ],
)
async def test_an_unknown_series_and_a_wrong_parameter_are_refused(
    reader: Reader, path: str, status: int
) -> None:
    assert (await reader.refused(path))[0] == status


@pytest.mark.usefixtures("games")
async def test_the_event_of_a_game_has_every_detail_of_it(reader: Reader) -> None:
    event = await reader.get("/events/1")
    assert (event["eventDate"], event["startTime"]) == ("2035-06-01", "2035-06-01T10:00:00Z")
    assert event["seriesSlug"] == "eliteserien"
    [series] = event["series"]
    assert (series["id"], series["slug"], series["title"]) == ("1", "eliteserien", "Eliteserien")
    assert "gameId" not in event
    assert event["teams"] == [
        {"name": "Brann", "abbreviation": "BRA", "hostStatus": "home", "logo": HOME["logo"]},
        {"name": "Molde", "abbreviation": "MOL", "hostStatus": "away", "logo": AWAY["logo"]},
    ]
    assert event["eventMetadata"] == {
        "section": "games",
        "eventVariant": "standard",
        "sportSlug": "soccer",
        "leagueSlug": "eliteserien",
        "leagueLabel": "Eliteserien",
        "sourceProvider": "thesportsdb",
        "sourceEventId": "2052711",
        "sourceGameId": "game-77",
        "sourceLeagueId": "4358",
        "sourceMatchConfidence": 0.93,
        "livestreamUrl": "https://stream.example/brann-molde",
    }
    assert (await reader.get("/events/3"))["gameId"] == 2052711


@pytest.mark.usefixtures("games")
async def test_the_markets_of_a_game_have_their_type_and_line(reader: Reader) -> None:
    markets = (await reader.get("/events/1"))["markets"]
    assert [market.get("sportsMarketType") for market in markets] == [
        "moneyline",
        "moneyline",
        "moneyline",
        "both_teams_to_score",
        "spreads",
        "spreads",
        "totals",
        "first_goal",
    ]
    assert [market.get("line") for market in markets[4:]] == [-1.5, 1.5, 2.5, None]
    assert {market["gameId"] for market in markets} == {"game-77"}
    assert {market["gameStartTime"] for market in markets} == {"2035-06-01T10:00:00Z"}
    assert markets[4]["outcomes"] == '["Brann", "Molde"]'
    assert markets[0]["groupItemTitle"] == "Brann"


async def test_a_market_keeps_its_title_and_place_in_its_group(
    database: Database, reader: Reader
) -> None:
    market = a_sports_market(groupItemTitle="First goal", groupItemThreshold="2")
    async with database.writing() as tx:
        await Rows(tx).open(a_game_event_row("goals", template=ABSENT, markets=[market]))

    shown = await reader.get("/markets/1")

    assert (shown["groupItemTitle"], shown["groupItemThreshold"]) == ("First goal", "2")


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"series_slug": "eliteserien"}, ["event-second", "event-first"]),
        ({"series_id": "2"}, ["event-third"]),
        ({"series_slug": "none"}, []),
        ({}, ["event-rain", "event-third", "event-second", "event-first"]),
    ],
)
async def test_events_are_filtered_by_their_series(
    reader: Reader, parameters: dict[str, str], found: list[str]
) -> None:
    assert await slugs(reader, "/events", **parameters) == found


@pytest.mark.usefixtures("games")
@pytest.mark.parametrize(
    ("parameters", "found"),
    [
        ({"game_id": "2052711"}, ["third-moneyline-away", "third-moneyline-home"]),
        ({"sports_market_types": "totals"}, ["first-total-2-5"]),
        (
            {"sports_market_types": "totals,first_goal", "game_id": "game-77"},
            ["first-first-goal-1", "first-total-2-5"],
        ),
        ({"sports_market_types": "none"}, []),
    ],
)
async def test_markets_are_filtered_by_game_and_type(
    reader: Reader, parameters: dict[str, str], found: list[str]
) -> None:
    assert await slugs(reader, "/markets", **parameters) == found


async def test_an_event_that_is_no_game_has_no_field_of_one(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        await Rows(tx).open_named("rain")

    event = await reader.get("/events/1")

    absent = {"teams", "eventDate", "startTime", "gameId", "seriesSlug", "eventMetadata"}
    assert absent.isdisjoint(event)
    assert event["series"] == []
    assert {"sportsMarketType", "line", "gameId"}.isdisjoint(event["markets"][0])
    for path in ("/sports", "/teams", "/series"):
        assert await reader.get(path) == []
    assert await reader.get("/sports/market-types") == {"marketTypes": []}


def bare_game() -> EventRow:
    """Return a game of which only the provider's id is known."""
    names = (
        "sourceGameId sourceLeagueId sourceLeagueLabel sourceMatchConfidence livestreamUrl"
        " sportSlug leagueSlug eventDate startTime teams template"
    )
    return a_game_event_row("bare", **dict.fromkeys(names.split(), ABSENT))


async def test_a_game_without_details_is_listed_without_them(
    database: Database, reader: Reader
) -> None:
    async with database.writing() as tx:
        await Rows(tx).open(bare_game())

    event = await reader.get("/events/1")

    assert (event["series"], event["gameId"]) == ([], 2052711)
    assert event["eventMetadata"].keys() == {
        "section",
        "eventVariant",
        "sourceProvider",
        "sourceEventId",
    }
    assert {"teams", "eventDate", "startTime", "seriesSlug"}.isdisjoint(event)
    assert await reader.get("/sports") == []


async def test_what_an_event_said_first_stays_and_a_missing_logo_is_added(
    database: Database, reader: Reader
) -> None:
    unknown = [a_team(logo=ABSENT), a_team(AWAY, logo=ABSENT)]
    other = [a_team(abbreviation="XXX"), a_team(AWAY, logo="https://logos.example/other.png")]
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(a_game_event_row("first", teams=unknown, template=a_template()))
        await rows.open(
            a_game_event_row("second", teams=other, sourceLeagueLabel="Taken over"), NOW_MS + 1000
        )

    teams = await reader.get("/teams")
    [series] = await reader.get("/series")

    assert [(team["abbreviation"], team["logo"]) for team in teams] == [
        ("BRA", HOME["logo"]),
        ("MOL", "https://logos.example/other.png"),
    ]
    assert series["title"] == "Eliteserien"
    assert series["updatedAt"] > series["createdAt"]


async def test_the_operators_delay_is_shown_for_sports_markets_alone(
    context: DiscoveryContext, database: Database
) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open(a_game_event_row("first"))
        await rows.open_named("rain")
    delayed = Reader(an_app(build_app, dataclasses.replace(context, sports_delay_s=3)))
    for reader, seconds in ((Reader(an_app(build_app, context)), 0), (delayed, 3)):
        markets = await reader.get("/markets", ascending="true")
        [game, rain] = await reader.get("/events", ascending="true")
        delays = {each["slug"]: each["secondsDelay"] for each in markets}
        assert delays.pop(rain["markets"][0]["slug"]) == 0
        assert set(delays.values()) == {seconds}
        assert {each["secondsDelay"] for each in game["markets"]} == {seconds}
        assert rain["markets"][0]["secondsDelay"] == 0
