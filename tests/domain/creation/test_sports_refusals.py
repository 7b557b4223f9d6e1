"""A table of sports payloads that break one rule each, with the field that the refusal names."""

from typing import Any, Final

import pytest
from tests.rigs.payloads import (
    ABSENT,
    AWAY,
    a_prop,
    a_sports_market,
    a_team,
    a_template,
    an_option,
    sports_problems,
)

LONG: Final = "x" * 400


def markets(**fields: Any) -> dict[str, Any]:
    """Return the fields of a payload whose second market breaks a rule."""
    return {"markets": [a_sports_market(), a_sports_market(2, **fields)]}


def props(**fields: Any) -> dict[str, Any]:
    """Return the fields of a payload of one prop that breaks a rule."""
    return {
        "section": "props",
        "template": ABSENT,
        "markets": ABSENT,
        "props": [a_prop(**fields)],
    }


def template(**fields: Any) -> dict[str, Any]:
    return {"template": a_template(**fields)}


REFUSED: Final[list[tuple[dict[str, Any], str]]] = [
    ({"event": {"mainCategorySlug": "weather"}}, "mainCategorySlug"),
    ({"event": {"mainCategorySlug": ABSENT}}, "mainCategorySlug"),
    ({"event": {"marketMode": "multi_unique"}}, "marketMode"),
    ({"event": {"marketMode": "binary"}}, "marketMode"),
    ({"event": {"options": [an_option(1, shortName=ABSENT)]}}, "options/0/shortName"),
    ({"event": {"options": "none"}}, "options"),
    ({"event": {"sports": []}}, "sports"),
    ({"event": {"sports": "soccer"}}, "sports"),
    ({"section": "matches"}, "sports/section"),
    ({"eventVariant": "first_half"}, "sports/eventVariant"),
    ({"sourceProvider": "the sports db"}, "sports/sourceProvider"),
    ({"sourceProvider": ""}, "sports/sourceProvider"),
    ({"sourceProvider": "x" * 65}, "sports/sourceProvider"),
    ({"sourceProvider": ABSENT}, "sports/sourceProvider"),
    ({"sourceEventId": 2052711}, "sports/sourceEventId"),
    ({"sourceEventId": " "}, "sports/sourceEventId"),
    ({"sourceGameId": ["77"]}, "sports/sourceGameId"),
    ({"sourceGameId": LONG}, "sports/sourceGameId"),
    ({"sourceLeagueId": 4358}, "sports/sourceLeagueId"),
    ({"sourceLeagueLabel": LONG}, "sports/sourceLeagueLabel"),
    ({"sourceLeagueLabel": "a\u0000b"}, "sports/sourceLeagueLabel"),
    ({"sourceMatchConfidence": "0.9"}, "sports/sourceMatchConfidence"),
    ({"sourceMatchConfidence": 1.5}, "sports/sourceMatchConfidence"),
    ({"livestreamUrl": "rtmp://stream.example"}, "sports/livestreamUrl"),
    ({"livestreamUrl": "https://me:secret@stream.example"}, "sports/livestreamUrl"),
    ({"sportSlug": "---"}, "sports/sportSlug"),
    ({"leagueSlug": ""}, "sports/leagueSlug"),
    ({"eventDate": "2026-02-30"}, "sports/eventDate"),
    ({"eventDate": "1/2/2026"}, "sports/eventDate"),
    ({"startTime": "2035-06-01T10:00:00"}, "sports/startTime"),
    ({"startTime": 2064304800}, "sports/startTime"),
    ({"teams": {"home": "Brann"}}, "sports/teams"),
    ({"teams": ["Brann", a_team(AWAY)]}, "sports/teams/0"),
    ({"teams": [a_team()]}, "sports/teams"),
    ({"teams": []}, "sports/teams"),
    ({"teams": [a_team(), a_team(name="Viking")]}, "sports/teams"),
    ({"teams": [a_team(), a_team(AWAY), a_team(AWAY, name="Viking")]}, "sports/teams"),
    ({"teams": [a_team(), a_team(AWAY, name="brann")]}, "sports/teams"),
    ({"teams": [a_team(name=""), a_team(AWAY)]}, "sports/teams/0/name"),
    ({"teams": [a_team(abbreviation=7), a_team(AWAY)]}, "sports/teams/0/abbreviation"),
    ({"teams": [a_team(), a_team(AWAY, host_status="guest")]}, "sports/teams/1/host_status"),
    ({"teams": [a_team(), a_team(AWAY, logo="molde.png")]}, "sports/teams/1/logo"),
    ({"template": "standard"}, "sports/template"),
    ({"template": [a_template()]}, "sports/template"),
    ({"teams": ABSENT}, "sports/teams"),
    ({"eventDate": ABSENT}, "sports/eventDate"),
    ({"startTime": ABSENT}, "sports/startTime"),
    ({"eventVariant": "exact_score"}, "sports/template"),
    ({"eventVariant": "more_markets"}, "sports/template"),
    ({"section": "props"}, "sports/template"),
    (template(includeDraw="yes"), "sports/template/includeDraw"),
    (template(includeTotals=1), "sports/template/includeTotals"),
    (template(spreadLines=[]), "sports/template/spreadLines"),
    (template(totalLines=ABSENT), "sports/template/totalLines"),
    (template(totalLines=["over"]), "sports/template/totalLines/0"),
    (template(totalLines=[0]), "sports/template/totalLines/0"),
    (template(spreadLines=[1.5, 1.5]), "sports/template/spreadLines/1"),
    (template(spreadLines=[0.125]), "sports/template/spreadLines/0"),
    ({"template": ABSENT, "markets": ABSENT}, "sports/markets"),
    ({"template": ABSENT, "markets": []}, "sports/markets"),
    ({"template": ABSENT, "markets": [], "eventVariant": "custom"}, "sports/markets"),
    ({"markets": {"id": "a"}}, "sports/markets"),
    ({"markets": ["winner"]}, "sports/markets/0"),
    (markets(id=""), "sports/markets/1/id"),
    (markets(id=7), "sports/markets/1/id"),
    (markets(id="first-goal-1"), "sports/markets/1/id"),
    (markets(title=ABSENT), "sports/markets/1/title"),
    (markets(title=LONG), "sports/markets/1/title"),
    (markets(shortName=ABSENT), "sports/markets/1/shortName"),
    (markets(question=["who?"]), "sports/markets/1/question"),
    (markets(question="Will player 1 score the first goal?"), "sports/markets/1/question"),
    (markets(slug="?"), "sports/markets/1/slug"),
    (markets(slug="FIRST goal 1"), "sports/markets/1/slug"),
    (markets(slug="home"), "sports/markets/1/slug"),
    (markets(slug="x" * 120), "sports/markets/1/slug"),
    (markets(outcomes="Yes"), "sports/markets/1/outcomes"),
    (markets(outcomes=["Yes"]), "sports/markets/1/outcomes"),
    (markets(outcomes=["a", "b", "c"]), "sports/markets/1/outcomes"),
    (markets(outcomes=["Yes", "yes"]), "sports/markets/1/outcomes"),
    (markets(outcomes=["Yes", 7]), "sports/markets/1/outcomes/1"),
    (markets(outcomes=["", "No"]), "sports/markets/1/outcomes/0"),
    (markets(sportsMarketType="First Goal"), "sports/markets/1/sportsMarketType"),
    (markets(sportsMarketType=7), "sports/markets/1/sportsMarketType"),
    (markets(sportsMarketType="x" * 65), "sports/markets/1/sportsMarketType"),
    (markets(iconAssetKey=7), "sports/markets/1/iconAssetKey"),
    (markets(iconAssetKey="../home"), "sports/markets/1/iconAssetKey"),
    (markets(line="two"), "sports/markets/1/line"),
    (markets(line=1.125), "sports/markets/1/line"),
    (markets(groupItemTitle=7), "sports/markets/1/groupItemTitle"),
    (markets(groupItemThreshold=0), "sports/markets/1/groupItemThreshold"),
    ({"markets": [a_sports_market(number) for number in range(301)]}, "sports/markets"),
    ({"props": [a_prop()]}, "sports/props"),
    ({**props(), "eventVariant": "exact_score"}, "sports/eventVariant"),
    ({**props(), "eventVariant": "custom"}, "sports/markets"),
    (props(playerName=ABSENT), "sports/props/0/playerName"),
    (props(statType="goals"), "sports/props/0/statType"),
    (props(line=ABSENT), "sports/props/0/line"),
    (props(line="many"), "sports/props/0/line"),
    (props(teamHostStatus="both"), "sports/props/0/teamHostStatus"),
    (props(id=["a"]), "sports/props/0/id"),
]


@pytest.mark.parametrize(("fields", "where"), REFUSED)
def test_a_sports_payload_that_breaks_a_rule_is_refused_at_its_field(
    fields: dict[str, Any], where: str
) -> None:
    found = sports_problems(**fields)

    assert where in [field for field, _ in found]
    assert len({field for field, _ in found}) == 1
    assert all(message for _, message in found)


def test_the_payload_that_the_table_changes_is_valid() -> None:
    assert sports_problems() == []
    assert sports_problems(**props()) == []
    assert sports_problems(**markets()) == []
    assert len(REFUSED) >= 60
