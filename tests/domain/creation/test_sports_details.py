from decimal import Decimal
from typing import Any

import pytest
from tests.rigs.payloads import ABSENT, AWAY, HOME, a_sports_event, a_team, sports_problems

from foretell.domain.creation.sports_details import SportsDetails
from foretell.domain.creation.sports_types import EventVariant, HostStatus, Section, SportsTeam


@pytest.mark.spec(24, 27)
def test_every_detail_is_read() -> None:
    assert a_sports_event().details == SportsDetails(
        section=Section.GAMES,
        event_variant=EventVariant.STANDARD,
        source_provider="thesportsdb",
        source_event_id="2052711",
        source_game_id="game-77",
        source_league_id="4358",
        source_league_label="Eliteserien",
        source_match_confidence=Decimal("0.93"),
        livestream_url="https://stream.example/brann-molde",
        sport_slug="soccer",
        league_slug="eliteserien",
        event_date="2035-06-01",
        starts_at_ms=2_064_304_800_000,
        teams=(
            SportsTeam("Brann", "BRA", HostStatus.HOME, HOME["logo"]),
            SportsTeam("Molde", "MOL", HostStatus.AWAY, AWAY["logo"]),
        ),
    )


@pytest.mark.spec(24)
@pytest.mark.parametrize(
    "name",
    [
        "section",
        "eventVariant",
        "sourceProvider",
        "sourceEventId",
        "sourceGameId",
        "sourceLeagueId",
        "sourceLeagueLabel",
        "livestreamUrl",
        "sportSlug",
        "leagueSlug",
    ],
)
@pytest.mark.parametrize("value", [7, 1.5, True, ["a"], {"a": "b"}])
def test_a_text_of_another_type_is_refused(name: str, value: object) -> None:
    refused = [field for field, _ in sports_problems(**{name: value})]

    assert f"sports/{name}" in refused


@pytest.mark.spec(24)
@pytest.mark.parametrize(
    ("value", "read"), [(0, Decimal(0)), (1, Decimal(1)), (0.5, Decimal("0.5")), (None, None)]
)
def test_the_confidence_is_a_number_from_0_to_1(value: object, read: Decimal | None) -> None:
    event = a_sports_event(sourceMatchConfidence=value)

    assert event.details.source_match_confidence == read


@pytest.mark.spec(24)
@pytest.mark.parametrize("value", ["0.5", "", True, -0.1, 1.01, 10**20, [], {}])
def test_another_confidence_is_refused(value: object) -> None:
    assert sports_problems(sourceMatchConfidence=value) == [
        ("sports/sourceMatchConfidence", "must be a number from 0 to 1")
    ]


@pytest.mark.spec(25)
@pytest.mark.parametrize(
    ("url", "is_fine"),
    [
        ("https://stream.example/a", True),
        ("http://stream.example:8080/a?b=c", True),
        (None, True),
        ("ftp://stream.example/a", False),
        ("rtmp://stream.example/a", False),
        ("javascript:alert(1)", False),
        ("https://user:secret@stream.example/a", False),
        ("stream.example/a", False),
        ("https://", False),
        ("", False),
    ],
)
def test_the_stream_is_a_web_address(url: object, *, is_fine: bool) -> None:
    expected = [("sports/livestreamUrl", "must be an http or https address without credentials")]
    assert sports_problems(livestreamUrl=url) == ([] if is_fine else expected)


@pytest.mark.spec(26)
@pytest.mark.parametrize("day", ["2035-06-01", "2036-02-29", "0001-01-01"])
def test_the_day_is_one_of_the_calendar(day: str) -> None:
    assert a_sports_event(eventDate=day).details.event_date == day


@pytest.mark.spec(26)
@pytest.mark.parametrize(
    "day",
    [
        "2026-02-30",
        "2035-02-29",
        "1/2/2026",
        "2026-1-2",
        "20260102",
        "2026-W01-1",
        "\u0662026-01-02",
        "",
        "2026-01-02T00:00:00Z",
        " 2026-01-02",
        True,
    ],
)
def test_another_day_is_refused(day: object) -> None:
    assert sports_problems(eventDate=day) == [
        ("sports/eventDate", "must be a day of the calendar as YYYY-MM-DD")
    ]


@pytest.mark.spec(26)
@pytest.mark.parametrize(
    ("moment", "starts_at_ms"),
    [
        ("2035-06-01T10:00:00Z", 2_064_304_800_000),
        ("2035-06-01T12:00:00.5+02:00", 2_064_304_800_500),
    ],
)
def test_the_start_is_a_moment_with_its_offset(moment: str, starts_at_ms: int) -> None:
    assert a_sports_event(startTime=moment).details.starts_at_ms == starts_at_ms


@pytest.mark.spec(26)
@pytest.mark.parametrize(
    "moment", ["2035-06-01", "2035-06-01T10:00:00", "10:00", "2035-02-30T10:00:00Z", "", 1, True]
)
def test_another_start_is_refused(moment: object) -> None:
    assert [field for field, _ in sports_problems(startTime=moment)] == ["sports/startTime"]


@pytest.mark.spec(23, 147)
@pytest.mark.parametrize(
    "teams",
    [
        [a_team(), a_team(name="Viking")],
        [a_team(AWAY), a_team(AWAY, name="Viking")],
        [a_team()],
        [a_team(AWAY)],
        [],
    ],
    ids=["two home", "two away", "home alone", "away alone", "none"],
)
def test_teams_are_exactly_one_home_and_one_away(teams: list[Any]) -> None:
    assert sports_problems(teams=teams) == [
        ("sports/teams", "must be exactly one home team and one away team")
    ]


@pytest.mark.spec(23, 147)
def test_three_teams_are_refused() -> None:
    teams = [a_team(), a_team(AWAY), a_team(AWAY, name="Viking")]

    assert sports_problems(teams=teams) == [("sports/teams", "must have at most 2 entries")]


@pytest.mark.spec(23)
def test_the_home_team_comes_first_whatever_the_order() -> None:
    event = a_sports_event(teams=[a_team(AWAY), a_team()])

    assert [team.host_status for team in event.details.teams] == ["home", "away"]


@pytest.mark.spec(27)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", ABSENT),
        ("name", ""),
        ("name", 7),
        ("name", "x" * 61),
        ("abbreviation", ABSENT),
        ("abbreviation", ["B"]),
        ("abbreviation", "x" * 17),
        ("host_status", ABSENT),
        ("host_status", "Home"),
        ("host_status", "neutral"),
        ("host_status", ["home"]),
        ("logo", "brann.png"),
        ("logo", "data:image/png;base64,AAAA"),
        ("logo", 7),
    ],
)
def test_a_field_of_a_team_that_breaks_its_rule_is_refused(name: str, value: Any) -> None:
    found = sports_problems(teams=[a_team(**{name: value}), a_team(AWAY)])

    assert [field for field, _ in found] == [f"sports/teams/0/{name}"]


def test_teams_of_one_name_are_refused() -> None:
    teams = [a_team(), a_team(AWAY, name="BRANN")]

    assert sports_problems(teams=teams) == [("sports/teams", "must have different names")]
