from decimal import Decimal
from typing import Any

import pytest
from tests.rigs.payloads import ABSENT, a_sports_event, a_sports_market, a_sports_payload

from foretell.domain.creation.payload import MarketDraft
from foretell.domain.creation.sports_types import SportsMarket, default_outcomes, is_market_type


def only_market(**fields: Any) -> SportsMarket:
    """Return the one market of a game without a template."""
    [market] = a_sports_event(template=ABSENT, markets=[a_sports_market(**fields)]).markets
    return market


@pytest.mark.spec(29)
def test_every_field_of_a_listed_market_is_read() -> None:
    payload = a_sports_payload(
        template=ABSENT,
        markets=[a_sports_market(line=1.5, groupItemTitle="First", groupItemThreshold="0")],
    )

    sports = SportsMarket(
        key="first-goal-1",
        slug="first-goal-1",
        question="Will player 1 score the first goal?",
        title="First goal: player 1",
        short_title="Player 1",
        outcomes=("Scores first", "Does not"),
        market_type="first_goal",
        line=Decimal("1.5"),
        icon_asset_key="home",
        group_item_title="First",
        group_item_threshold="0",
    )
    assert payload.markets == (
        MarketDraft(
            key="first-goal-1",
            slug="brann-molde-first-goal-1",
            question="Will player 1 score the first goal?",
            title="First goal: player 1",
            short_title="Player 1",
            outcome_yes="Scores first",
            outcome_no="Does not",
            sports=sports,
        ),
    )


@pytest.mark.spec(29)
@pytest.mark.parametrize("question", [ABSENT, None, "", "  "])
def test_absent_fields_of_a_market_follow_from_its_title_and_index(question: object) -> None:
    market = only_market(
        id=ABSENT,
        slug=ABSENT,
        question=question,
        outcomes=ABSENT,
        sportsMarketType=ABSENT,
        iconAssetKey=ABSENT,
    )

    assert (market.key, market.slug) == ("market-1", "first-goal-player-1")
    assert market.question == "Brann against Molde: First goal: player 1"
    assert (market.outcomes, market.market_type) == (("Yes", "No"), None)
    assert (market.icon_asset_key, market.line) == (None, None)


@pytest.mark.spec(29)
@pytest.mark.parametrize(
    ("market_type", "outcomes"),
    [
        ("moneyline", ("Brann", "Molde")),
        ("first_half_spreads", ("Brann", "Molde")),
        ("team_totals", ("Over", "Under")),
        ("cs2_odd_even_total_kills", ("Odd", "Even")),
        ("both_teams_to_score", ("Yes", "No")),
        ("a_type_of_our_own", ("Yes", "No")),
    ],
)
def test_absent_outcomes_follow_from_the_type(market_type: str, outcomes: tuple[str, str]) -> None:
    assert only_market(sportsMarketType=market_type, outcomes=ABSENT).outcomes == outcomes


def test_the_sides_of_unknown_teams_are_home_and_away() -> None:
    assert default_outcomes("moneyline", ()) == ("Home", "Away")


@pytest.mark.parametrize(
    ("text", "is_type"),
    [
        ("moneyline", True),
        ("cs2_total_1", True),
        ("x" * 64, True),
        ("x" * 65, False),
        ("Moneyline", False),
        ("a__b", False),
        ("_a", False),
        ("a_", False),
        ("a b", False),
        ("", False),
    ],
)
def test_a_type_is_in_snake_case(text: str, *, is_type: bool) -> None:
    assert is_market_type(text) is is_type
