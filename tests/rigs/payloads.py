"""Market payloads that keep every rule, except where a test changes them."""

import json
from typing import Any, Final

from tests.rigs.values import CHAIN_ID, NOW_MS, an_address

from foretell.domain.creation.payload import Payload, PayloadRules, parse_payload
from foretell.domain.creation.sports import SportsEvent
from foretell.domain.errors.families import InvalidFields

RULES: Final = PayloadRules(supported_chain_ids=(CHAIN_ID,), default_chain_id=CHAIN_ID)
RULES_TEXT: Final = (
    "This market resolves to Yes if the station records rain on the day, and to No otherwise."
)
ABSENT: Final = object()

HOME: dict[str, Any] = {
    "name": "Brann",
    "abbreviation": "BRA",
    "host_status": "home",
    "logo": "https://logos.example/brann.png",
}
AWAY: dict[str, Any] = {
    "name": "Molde",
    "abbreviation": "MOL",
    "host_status": "away",
    "logo": "https://logos.example/molde.png",
}
TEMPLATE: dict[str, Any] = {
    "includeDraw": True,
    "includeBothTeamsToScore": True,
    "includeSpreads": True,
    "includeTotals": True,
    "spreadLines": [-1.5, 1.5],
    "totalLines": [2.5],
}
SOURCE: dict[str, Any] = {"sourceProvider": "thesportsdb", "sourceEventId": "2052711"}


def present(document: dict[str, Any]) -> dict[str, Any]:
    """Return an object without the fields that are ABSENT."""
    return {name: value for name, value in document.items() if value is not ABSENT}


def a_payload_document(**fields: Any) -> dict[str, Any]:
    """Return a binary payload as an object; a field that is ABSENT is left out."""
    document = {
        "chainId": CHAIN_ID,
        "resolutionType": "dro_moov2",
        "creator": an_address("creator"),
        "title": "Rain in Bergen",
        "slug": "rain-in-bergen",
        "endDateIso": "2035-06-01T12:00:00Z",
        "mainCategorySlug": "weather",
        "categories": ["Weather", "Norway", "Rain", "Europe", "Daily"],
        "marketMode": "binary",
        "resolutionSource": "https://example.org/station",
        "resolutionRules": RULES_TEXT,
        "binaryQuestion": "Will it rain in Bergen?",
        "binaryOutcomeYes": "Yes",
        "binaryOutcomeNo": "No",
    } | fields
    return present(document)


def an_option(number: int, **fields: Any) -> dict[str, Any]:
    """Return an option of a payload of several markets; a field that is ABSENT is left out."""
    option = {
        "id": f"town-{number}",
        "question": f"Will it rain most in town {number}?",
        "title": f"Town {number}",
        "shortName": f"T{number}",
        "slug": f"town-{number}",
    } | fields
    return present(option)


def event_fields(mode: str = "multi_unique", count: int = 3, **fields: Any) -> dict[str, Any]:
    """Return the fields that turn a binary payload into one of several markets."""
    options = [an_option(number) for number in range(1, count + 1)]
    return {
        "marketMode": mode,
        "title": "Most rain",
        "slug": "most-rain",
        "options": options,
        "binaryQuestion": ABSENT,
        "binaryOutcomeYes": ABSENT,
        "binaryOutcomeNo": ABSENT,
    } | fields


def a_raw_payload(**fields: Any) -> bytes:
    """Return a binary payload as its creator hashes it."""
    return json.dumps(a_payload_document(**fields)).encode()


def a_payload(**fields: Any) -> Payload:
    """Return a parsed payload."""
    return parse_payload(a_raw_payload(**fields), RULES, NOW_MS)


def a_team(side: dict[str, Any] = HOME, **fields: Any) -> dict[str, Any]:
    return present(side | fields)


def a_template(**fields: Any) -> dict[str, Any]:
    return present(TEMPLATE | fields)


def a_sports_market(number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a market of a list of markets."""
    market = {
        "id": f"first-goal-{number}",
        "question": f"Will player {number} score the first goal?",
        "title": f"First goal: player {number}",
        "shortName": f"Player {number}",
        "slug": f"first-goal-{number}",
        "outcomes": ["Scores first", "Does not"],
        "sportsMarketType": "first_goal",
        "iconAssetKey": "home",
    }
    return present(market | fields)


def a_prop(number: int = 1, **fields: Any) -> dict[str, Any]:
    """Return a player's prop."""
    prop = {
        "id": f"prop-of-{number}",
        "playerName": f"Player {number}",
        "statType": "points",
        "line": 20.5,
        "teamHostStatus": "away",
    }
    return present(prop | fields)


def a_sports_document(**fields: Any) -> dict[str, Any]:
    """Return the `sports` object of a game that gives all its details."""
    document: dict[str, Any] = {
        "section": "games",
        "eventVariant": "standard",
        **SOURCE,
        "sourceGameId": "game-77",
        "sourceLeagueId": "4358",
        "sourceLeagueLabel": "Eliteserien",
        "sourceMatchConfidence": 0.93,
        "livestreamUrl": "https://stream.example/brann-molde",
        "sportSlug": "soccer",
        "leagueSlug": "eliteserien",
        "eventDate": "2035-06-01",
        "startTime": "2035-06-01T10:00:00Z",
        "teams": [a_team(), a_team(AWAY)],
        "template": a_template(),
        "markets": [a_sports_market()],
    }
    return present(document | fields)


def sports_fields(
    sports: object = None, *, event: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    """Return the fields that turn a binary payload into one of a game, with these sports fields."""
    payload = event_fields(
        "multi_multiple",
        title="Brann against Molde",
        slug="brann-molde",
        mainCategorySlug="sports",
        categories=["Sports", "Soccer", "Norway", "Eliteserien", "Games"],
        options=ABSENT,
        sports=a_sports_document(**fields) if sports is None else sports,
    )
    return payload | (event or {})


def a_sports_payload(**fields: Any) -> Payload:
    """Return a parsed payload of a game; the fields are those of its `sports` object."""
    return a_payload(**sports_fields(**fields))


def a_sports_event(**fields: Any) -> SportsEvent:
    """Return the sports event of a payload."""
    event = a_sports_payload(**fields).sports
    assert event is not None
    return event


def sports_problems(**fields: Any) -> list[tuple[str, str]]:
    """Return the problems of a payload of a game, none when it is valid."""
    try:
        a_sports_payload(**fields)
    except InvalidFields as refusal:
        return [(each["field"], each["message"]) for each in refusal.details["problems"]]
    return []
