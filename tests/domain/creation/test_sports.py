import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.payloads import (
    ABSENT,
    AWAY,
    SOURCE,
    a_payload,
    a_prop,
    a_sports_event,
    a_sports_market,
    a_sports_payload,
    a_team,
    a_template,
    an_option,
    sports_fields,
    sports_problems,
)

from foretell.domain.creation.sports_markets import SPORTS_MARKETS_MAX

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "market-creation.md"
BARE = dict.fromkeys(
    [
        "section",
        "eventVariant",
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
    ],
    ABSENT,
)
OWN_DETAILS = {"sourceProvider": ABSENT, "sourceEventId": ABSENT, "sourceGameId": ABSENT}


def fields_refused(**fields: Any) -> set[str]:
    return {field for field, _ in sports_problems(**fields)}


@pytest.mark.spec(20)
@pytest.mark.parametrize(
    ("event", "refused"),
    [
        ({}, set()),
        ({"mainCategorySlug": "Sports"}, set()),
        ({"mainCategorySlug": "weather"}, {"mainCategorySlug"}),
        ({"marketMode": "binary"}, {"marketMode"}),
        ({"marketMode": "multi_unique"}, {"marketMode"}),
        (
            {"mainCategorySlug": "weather", "marketMode": "multi_unique"},
            {"mainCategorySlug", "marketMode"},
        ),
    ],
)
def test_a_sports_payload_is_of_the_sports_category_and_of_independent_markets(
    event: dict[str, Any], refused: set[str]
) -> None:
    assert fields_refused(event=event) == refused


@pytest.mark.spec(21)
@pytest.mark.parametrize("source", ["sourceEventId", "sourceGameId"])
def test_a_provider_and_one_id_are_enough_beside_a_market(source: str) -> None:
    ids = {"sourceEventId": ABSENT, "sourceGameId": ABSENT, source: "77"}

    event = a_sports_event(**BARE | ids)

    assert event.details.has_source
    assert event.details.teams == ()
    assert [market.key for market in event.markets] == ["first-goal-1"]


@pytest.mark.spec(21)
@pytest.mark.parametrize("fields", [{"leagueSlug": "obos"}, {"eventDate": "2035-06-02"}])
def test_beside_a_source_the_details_are_overrides(fields: dict[str, Any]) -> None:
    assert sports_problems(**BARE | fields) == []


@pytest.mark.spec(21)
def test_without_a_source_the_league_the_day_and_the_teams_are_required() -> None:
    refused = fields_refused(**BARE | OWN_DETAILS)

    assert refused == {"sports/leagueSlug", "sports/eventDate", "sports/teams"}
    assert sports_problems(**OWN_DETAILS) == []


@pytest.mark.spec(21)
@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"sourceProvider": ABSENT}, {"sports/sourceProvider"}),
        (
            {**BARE, "sourceEventId": ABSENT},
            {"sports/leagueSlug", "sports/eventDate", "sports/teams"},
        ),
    ],
)
def test_half_a_source_is_none(fields: dict[str, Any], refused: set[str]) -> None:
    assert refused <= fields_refused(**fields)


@pytest.mark.spec(22)
@pytest.mark.parametrize("name", ["teams", "eventDate", "startTime"])
def test_a_template_needs_each_detail_of_the_game(name: str) -> None:
    assert sports_problems(**{name: ABSENT}) == [
        (f"sports/{name}", "is required for a template"),
    ]


def test_an_option_of_a_sports_payload_is_a_market_too() -> None:
    payload = a_sports_payload(
        template=ABSENT,
        event={"options": [an_option(1), an_option(2, id="first-goal-1")]},
    )

    assert [market.key for market in payload.markets] == ["first-goal-1", "town-1"]
    assert [market.outcome_yes for market in payload.markets] == ["Scores first", "Yes"]


def test_options_suffice_beside_a_source() -> None:
    payload = a_sports_payload(
        **BARE | {"markets": ABSENT, "event": {"options": [an_option(1)]}},
    )

    assert [market.key for market in payload.markets] == ["town-1"]


@pytest.mark.parametrize("name", ["slug", "question"])
def test_an_option_differs_from_every_sports_market(name: str) -> None:
    option = an_option(1, **{name: a_sports_market()[name]})

    found = fields_refused(event={"options": [option]})

    assert found == {f"options/0/{name}"}


@pytest.mark.spec(29)
def test_a_listed_market_takes_the_place_of_the_standard_one_of_its_id() -> None:
    own = a_sports_market(id="moneyline-home", title="Brann wins")

    markets = a_sports_event(markets=[own]).markets

    keys = [market.key for market in markets]
    assert keys.count("moneyline-home") == 1
    assert keys[0] == "moneyline-home"
    assert markets[0].title == "Brann wins"


def test_the_slug_of_a_market_continues_that_of_the_event() -> None:
    slugs = [market.slug for market in a_sports_payload().markets]

    assert slugs == [
        "brann-molde-home",
        "brann-molde-draw",
        "brann-molde-away",
        "brann-molde-btts",
        "brann-molde-spread-minus-1-5",
        "brann-molde-spread-1-5",
        "brann-molde-total-2-5",
        "brann-molde-first-goal-1",
    ]


@given(
    spreads=st.lists(st.integers(-400, 400), max_size=12, unique=True),
    totals=st.lists(st.integers(1, 400), max_size=12, unique=True),
    count=st.integers(0, 8),
    has_draw=st.booleans(),
)
def test_every_market_of_an_event_has_a_key_a_slug_and_a_question_of_its_own(
    spreads: list[int], totals: list[int], count: int, *, has_draw: bool
) -> None:
    template = a_template(
        includeDraw=has_draw,
        includeSpreads=bool(spreads),
        includeTotals=bool(totals),
        spreadLines=[each / 4 for each in spreads],
        totalLines=[each / 4 for each in totals],
    )
    listed = [a_sports_market(number) for number in range(count)]

    payload = a_sports_payload(template=template, markets=listed)

    assert len(payload.markets) == 3 + has_draw + len(spreads) + len(totals) + count
    for texts in (
        [market.key for market in payload.markets],
        [market.slug for market in payload.markets],
        [market.question for market in payload.markets],
    ):
        assert len(set(texts)) == len(payload.markets)
    assert all(market.outcome_yes != market.outcome_no for market in payload.markets)


@pytest.mark.spec(22, 28)
def test_the_example_of_the_reference_page_makes_eight_markets() -> None:
    section = PAGE.read_text().split("## Sports")[1]
    example = json.loads(section.split("```json")[1].split("```")[0])

    payload = a_payload(**sports_fields(example["sports"]) | example)

    assert [market.key for market in payload.markets] == [
        "moneyline-home",
        "moneyline-draw",
        "moneyline-away",
        "btts",
        "spread-minus-1-5",
        "spread-1-5",
        "total-2-5",
        "first-goal-9",
    ]
    assert payload.sports is not None
    assert payload.sports.sides_without_logo == {"away"}


@pytest.mark.parametrize(("count", "is_fine"), [(300, True), (301, False)])
def test_an_event_has_at_most_300_markets(count: int, *, is_fine: bool) -> None:
    listed = [a_sports_market(number) for number in range(count - 7)]

    assert (sports_problems(markets=listed) == []) is is_fine
    assert SPORTS_MARKETS_MAX == 300


@pytest.mark.spec(27)
@pytest.mark.parametrize(
    ("home", "away", "expected"),
    [
        ({}, {}, set()),
        ({"logo": ABSENT}, {}, {"home"}),
        ({}, {"logo": ABSENT}, {"away"}),
        ({"logo": None}, {"logo": None}, {"home", "away"}),
    ],
)
def test_the_logo_that_a_team_lacks_must_be_uploaded(
    home: dict[str, Any], away: dict[str, Any], expected: set[str]
) -> None:
    event = a_sports_event(teams=[a_team(**home), a_team(AWAY, **away)])

    assert event.sides_without_logo == expected
    assert event.logo_sides == {"home", "away"}


def test_without_teams_a_logo_is_taken_by_the_markets_that_name_its_side() -> None:
    event = a_sports_event(**BARE)

    assert event.logo_sides == {"home"}
    assert not event.sides_without_logo
    assert event.team("home") is None


def test_an_icon_other_than_a_side_names_an_image() -> None:
    event = a_sports_event(**BARE, markets=[a_sports_market(iconAssetKey="ball")])

    assert event.icon_ids == {"ball", "first-goal-1"}
    assert event.logo_sides == set()


def test_props_are_markets_of_their_section() -> None:
    props = [a_prop(), a_prop(2, id=ABSENT, statType="receiving_yards", teamHostStatus=ABSENT)]

    markets = a_sports_event(
        **BARE | {"section": "props", "markets": ABSENT, "props": props}
    ).markets

    first, second = markets
    assert (first.key, first.slug) == ("prop-of-1", "player-1-points-20-5")
    assert first.question == "Brann against Molde: Player 1 over or under 20.5 points?"
    assert (first.outcomes, first.market_type) == (("Over", "Under"), "points")
    assert (str(first.line), first.icon_asset_key, first.player_name) == (
        "20.5",
        "away",
        "Player 1",
    )
    assert (second.key, second.icon_asset_key) == ("prop-2", None)
    assert second.short_title == "O/U 20.5 receiving yards"


@pytest.mark.parametrize(
    ("variant", "market_type"),
    [("exact_score", "soccer_exact_score"), ("halftime_result", "soccer_halftime_result")],
)
def test_a_variant_gives_its_markets_their_type(variant: str, market_type: str) -> None:
    untyped = a_sports_market(sportsMarketType=ABSENT, outcomes=ABSENT)

    event = a_sports_event(eventVariant=variant, template=ABSENT, markets=[untyped])

    [market] = event.markets
    assert (market.market_type, market.outcomes) == (market_type, ("Yes", "No"))
    assert SOURCE["sourceProvider"] == event.details.source_provider
