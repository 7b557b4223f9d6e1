import json
from typing import Any

import pytest
from tests.rigs.payloads import (
    ABSENT,
    AWAY,
    a_sports_document,
    a_sports_market,
    a_sports_payload,
    a_team,
    an_option,
)

from foretell.domain.creation.metadata import Icons, draft_document

LOGOS = {"home": "stored-logo", "away": AWAY["logo"]}
ICONS = Icons("event-image", "market-image", LOGOS)
SOURCE = {
    "source_provider": "thesportsdb",
    "source_event_id": "2052711",
    "source_game_id": "game-77",
    "source_league_id": "4358",
    "source_league_label": "Eliteserien",
    "source_match_confidence": 0.93,
}
TEAMS = [
    {"name": "Brann", "abbreviation": "BRA", "host_status": "home", "logo": "stored-logo"},
    {"name": "Molde", "abbreviation": "MOL", "host_status": "away", "logo": AWAY["logo"]},
]
BARE: dict[str, Any] = dict.fromkeys(
    [
        "sourceGameId",
        "sourceLeagueId",
        "sourceLeagueLabel",
        "sourceMatchConfidence",
        "livestreamUrl",
        "sportSlug",
        "leagueSlug",
        "eventDate",
        "startTime",
        "teams",
        "template",
        "section",
        "eventVariant",
    ],
    ABSENT,
)


def document_of(index: int = 0, **fields: Any) -> dict[str, Any]:
    """Return the draft of one market of a game."""
    payload = a_sports_payload(**fields)
    document: dict[str, Any] = json.loads(draft_document(payload, payload.markets[index], ICONS))
    return document


@pytest.mark.spec(24, 25, 26, 27, 28)
def test_the_document_of_a_market_keeps_every_field_of_its_game() -> None:
    document = document_of()

    assert document["sports"]["event"] == {
        **SOURCE,
        "slug": "brann-molde",
        "event_slug": "brann-molde",
        "section": "games",
        "event_variant": "standard",
        "event_id": "2052711",
        "game_id": "game-77",
        "livestream_url": "https://stream.example/brann-molde",
        "sport_slug": "soccer",
        "league_slug": "eliteserien",
        "series_slug": "eliteserien",
        "league_label": "Eliteserien",
        "event_date": "2035-06-01",
        "start_time": "2035-06-01T10:00:00Z",
        "teams": TEAMS,
        "template": {
            "include_draw": True,
            "include_both_teams_to_score": True,
            "include_spreads": True,
            "include_totals": True,
            "spread_lines": [-1.5, 1.5],
            "total_lines": [2.5],
        },
    }
    assert document["event"]["livestream_url"] == "https://stream.example/brann-molde"


@pytest.mark.spec(24, 25, 26, 27)
def test_no_field_of_a_sports_payload_is_lost() -> None:
    given = {name: value for name, value in a_sports_document().items() if isinstance(value, str)}

    texts = json.dumps(document_of()["sports"])

    assert [name for name, value in given.items() if json.dumps(value) not in texts] == []


@pytest.mark.spec(29)
def test_the_document_keeps_every_field_of_its_market() -> None:
    market = a_sports_market(line=2.5, groupItemTitle="Goals", groupItemThreshold="3")

    document = document_of(-1, markets=[market])

    assert document["sports"]["market"] == {
        **SOURCE,
        "id": "first-goal-1",
        "event_slug": "brann-molde",
        "game_id": "game-77",
        "game_start_time": "2035-06-01T10:00:00Z",
        "sports_market_type": "first_goal",
        "line": 2.5,
        "icon_asset_key": "home",
        "group_item_title": "Goals",
        "group_item_threshold": "3",
        "teams": TEAMS,
    }
    assert document["question"] == "Will player 1 score the first goal?"
    assert (document["name"], document["short_title"]) == ("First goal: player 1", "Player 1")
    assert document["slug"] == "brann-molde-first-goal-1"
    assert document["outcomes"] == [{"outcome": "Scores first"}, {"outcome": "Does not"}]
    assert document["icon"] == "market-image"


def test_absent_details_are_left_out() -> None:
    document = document_of(**BARE)

    assert document["sports"]["event"] == {
        "slug": "brann-molde",
        "event_slug": "brann-molde",
        "section": "games",
        "event_variant": "standard",
        "event_id": "2052711",
        "game_id": "2052711",
        "source_provider": "thesportsdb",
        "source_event_id": "2052711",
    }
    assert "livestream_url" not in document["event"]


def test_a_team_without_a_known_logo_has_none() -> None:
    payload = a_sports_payload(teams=[a_team(logo=ABSENT), a_team(AWAY)])
    icons = Icons("event-image", "market-image")

    document = json.loads(draft_document(payload, payload.markets[0], icons))

    assert "logo" not in document["sports"]["event"]["teams"][0]


def test_an_option_of_a_game_has_the_game_in_its_document() -> None:
    document = document_of(-1, event={"options": [an_option(1)]})

    assert document["name"] == "Town 1"
    assert document["sports"].keys() == {"event"}
