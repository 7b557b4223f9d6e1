import itertools
from decimal import Decimal
from typing import Any

import pytest
from tests.rigs.payloads import ABSENT, a_sports_event, a_template, sports_problems

from foretell.domain.creation.sports_types import SportsMarket, line_slug, line_text

ALONE: dict[str, Any] = {"markets": ABSENT}
SWITCHES = list(itertools.product([False, True], repeat=4))


@pytest.mark.spec(28)
@pytest.mark.parametrize(("draw", "both", "spreads", "totals"), SWITCHES)
def test_each_switch_of_the_template_adds_its_markets(
    *, draw: bool, both: bool, spreads: bool, totals: bool
) -> None:
    template = a_template(
        includeDraw=draw,
        includeBothTeamsToScore=both,
        includeSpreads=spreads,
        includeTotals=totals,
        spreadLines=[-1.5, 0, 1.5],
        totalLines=[2.5, 3.5],
    )

    keys = [market.key for market in a_sports_event(template=template, **ALONE).markets]

    assert keys == [
        "moneyline-home",
        *["moneyline-draw"] * draw,
        "moneyline-away",
        *["btts"] * both,
        *["spread-minus-1-5", "spread-0", "spread-1-5"] * spreads,
        *["total-2-5", "total-3-5"] * totals,
    ]


@pytest.mark.spec(28)
@pytest.mark.parametrize("template", [{}, {"includeDraw": None, "spreadLines": None}])
def test_an_empty_template_is_the_moneyline_of_both_teams(template: dict[str, Any]) -> None:
    keys = [market.key for market in a_sports_event(template=template, **ALONE).markets]

    assert keys == ["moneyline-home", "moneyline-away"]


def test_the_markets_of_a_template_name_the_game() -> None:
    event = a_sports_event(**ALONE)

    assert event.markets == (
        SportsMarket(
            key="moneyline-home",
            slug="home",
            question="Will Brann win against Molde on 2035-06-01?",
            title="Brann",
            short_title="BRA",
            outcomes=("Yes", "No"),
            market_type="moneyline",
            icon_asset_key="home",
        ),
        SportsMarket(
            key="moneyline-draw",
            slug="draw",
            question="Will Brann against Molde on 2035-06-01 end in a draw?",
            title="Draw",
            short_title="Draw",
            outcomes=("Yes", "No"),
            market_type="moneyline",
        ),
        SportsMarket(
            key="moneyline-away",
            slug="away",
            question="Will Molde win against Brann on 2035-06-01?",
            title="Molde",
            short_title="MOL",
            outcomes=("Yes", "No"),
            market_type="moneyline",
            icon_asset_key="away",
        ),
        SportsMarket(
            key="btts",
            slug="btts",
            question="Brann against Molde on 2035-06-01: will both teams score?",
            title="Both teams to score",
            short_title="Both score",
            outcomes=("Yes", "No"),
            market_type="both_teams_to_score",
        ),
        SportsMarket(
            key="spread-minus-1-5",
            slug="spread-minus-1-5",
            question=(
                "Brann against Molde on 2035-06-01: which side covers the spread of -1.5 for Brann?"
            ),
            title="Spread BRA -1.5",
            short_title="BRA -1.5",
            outcomes=("Brann", "Molde"),
            market_type="spreads",
            line=Decimal("-1.5"),
        ),
        SportsMarket(
            key="spread-1-5",
            slug="spread-1-5",
            question=(
                "Brann against Molde on 2035-06-01: which side covers the spread of +1.5 for Brann?"
            ),
            title="Spread BRA +1.5",
            short_title="BRA +1.5",
            outcomes=("Brann", "Molde"),
            market_type="spreads",
            line=Decimal("1.5"),
        ),
        SportsMarket(
            key="total-2-5",
            slug="total-2-5",
            question=("Brann against Molde on 2035-06-01: is the total score over or under 2.5?"),
            title="Total 2.5",
            short_title="O/U 2.5",
            outcomes=("Over", "Under"),
            market_type="totals",
            line=Decimal("2.5"),
        ),
    )


@pytest.mark.spec(28)
@pytest.mark.parametrize("lines", [[2], ["2.5"], [2.5, "3"], [0.25]])
def test_a_line_is_a_number_or_its_digits(lines: list[Any]) -> None:
    event = a_sports_event(template=a_template(totalLines=lines), **ALONE)

    totals = [market.line for market in event.markets if market.market_type == "totals"]
    assert totals == [Decimal(str(line)) for line in lines]


@pytest.mark.spec(28)
@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"includeDraw": "true"}, "includeDraw"),
        ({"includeBothTeamsToScore": 1}, "includeBothTeamsToScore"),
        ({"includeSpreads": "yes"}, "includeSpreads"),
        ({"includeTotals": []}, "includeTotals"),
        ({"spreadLines": 1.5}, "spreadLines"),
        ({"spreadLines": "1.5"}, "spreadLines"),
        ({"totalLines": {"0": 2.5}}, "totalLines"),
        ({"spreadLines": []}, "spreadLines"),
        ({"totalLines": ABSENT}, "totalLines"),
        ({"spreadLines": ["one"]}, "spreadLines/0"),
        ({"spreadLines": ["1e3"]}, "spreadLines/0"),
        ({"spreadLines": [True]}, "spreadLines/0"),
        ({"spreadLines": [None]}, "spreadLines/0"),
        ({"spreadLines": [[1.5]]}, "spreadLines/0"),
        ({"spreadLines": [1.125]}, "spreadLines/0"),
        ({"spreadLines": [10_001]}, "spreadLines/0"),
        ({"spreadLines": [1e300]}, "spreadLines/0"),
        ({"spreadLines": [1.5, "1.50"]}, "spreadLines/1"),
        ({"totalLines": [0]}, "totalLines/0"),
        ({"totalLines": [-2.5]}, "totalLines/0"),
        ({"totalLines": [2.5, 2.5]}, "totalLines/1"),
        ({"totalLines": [each / 4 for each in range(1, 102)]}, "totalLines"),
    ],
)
def test_a_field_of_a_template_that_breaks_its_rule_is_refused(
    fields: dict[str, Any], where: str
) -> None:
    found = [field for field, _ in sports_problems(template=a_template(**fields))]

    assert found == [f"sports/template/{where}"]


@pytest.mark.parametrize(
    ("line", "text", "signed", "slug"),
    [
        ("2.50", "2.5", "+2.5", "2-5"),
        ("-1.5", "-1.5", "-1.5", "minus-1-5"),
        ("0", "0", "0", "0"),
        ("-0.0", "0", "0", "0"),
        ("100", "100", "+100", "100"),
    ],
)
def test_a_line_has_one_text_and_one_slug(line: str, text: str, signed: str, slug: str) -> None:
    found = Decimal(line)
    assert (line_text(found), line_text(found, has_sign=True)) == (text, signed)
    assert line_slug(found) == slug
