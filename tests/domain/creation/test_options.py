"""Options of a payload with several markets."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.rigs.payloads import ABSENT, RULES_TEXT, a_payload, an_option, event_fields

from foretell.domain.creation.options import OPTIONS_MAX
from foretell.domain.creation.payload import (
    ANCILLARY_BYTES_MAX,
    MarketDraft,
    MarketMode,
    ancillary_text,
)
from foretell.domain.errors.families import InvalidFields


def problems(**fields: Any) -> list[tuple[str, str]]:
    with pytest.raises(InvalidFields) as refused:
        a_payload(**event_fields(**fields))
    return [(each["field"], each["message"]) for each in refused.value.details["problems"]]


def with_options(*options: object) -> list[tuple[str, str]]:
    return problems(options=options)


@pytest.mark.spec(14, 18)
@pytest.mark.parametrize("mode", ["multi_multiple", "multi_unique"])
def test_every_option_is_a_market_under_the_event_s_slug(mode: str) -> None:
    payload = a_payload(**event_fields(mode, count=2))

    assert payload.market_mode == mode
    assert payload.markets == (
        MarketDraft(
            key="town-1",
            slug="most-rain-town-1",
            question="Will it rain most in town 1?",
            title="Town 1",
            short_title="T1",
            outcome_yes="Yes",
            outcome_no="No",
        ),
        MarketDraft(
            key="town-2",
            slug="most-rain-town-2",
            question="Will it rain most in town 2?",
            title="Town 2",
            short_title="T2",
            outcome_yes="Yes",
            outcome_no="No",
        ),
    )
    assert payload.slugs == ("most-rain", "most-rain-town-1", "most-rain-town-2")


@pytest.mark.parametrize("question", [ABSENT, None, "", "  "])
def test_absent_fields_of_an_option_follow_from_its_title_and_index(question: object) -> None:
    option = an_option(2, id=ABSENT, slug=ABSENT, question=question, title="Ål  by")

    payload = a_payload(**event_fields(options=[an_option(1), option]))

    market = payload.markets[1]
    assert (market.key, market.slug) == ("option-2", "most-rain-al-by")
    assert market.question == "Most rain: Ål  by"


@pytest.mark.spec(18)
@pytest.mark.parametrize("name", ["id", "slug", "question"])
def test_two_options_share_no_key_no_slug_and_no_question(name: str) -> None:
    same = an_option(3, **{name: an_option(1)[name]})

    found = with_options(an_option(1), an_option(2), same)

    assert found == [(f"options/2/{name}", "must differ from that of 0")]


def test_slugs_are_compared_in_their_normal_form() -> None:
    found = with_options(an_option(1), an_option(2, slug="TOWN  1!"))

    assert found == [("options/1/slug", "must differ from that of 0")]


@pytest.mark.spec(18)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (ABSENT, "must be an array"),
        ({}, "must be an array"),
        ([], "must have at least 2 entries"),
        ([an_option(1)], "must have at least 2 entries"),
        ([an_option(n) for n in range(OPTIONS_MAX + 1)], "must have at most 60 entries"),
    ],
)
def test_there_are_between_two_and_sixty_options(options: object, message: str) -> None:
    assert problems(options=options) == [("options", message)]


def test_sixty_options_are_accepted() -> None:
    assert len(a_payload(**event_fields(count=OPTIONS_MAX)).markets) == OPTIONS_MAX


@pytest.mark.parametrize(
    ("fields", "fields_refused"),
    [
        ({"title": ABSENT}, ["options/1/title"]),
        ({"title": "…", "slug": ABSENT}, ["options/1/title"]),
        ({"shortName": " "}, ["options/1/shortName"]),
        ({"question": 7}, ["options/1/question"]),
        ({"id": ""}, ["options/1/id"]),
        ({"id": "x" * 65}, ["options/1/id"]),
        ({"slug": "x" * 119}, ["options/1/slug"]),
    ],
)
def test_an_invalid_field_of_an_option_is_reported_with_its_index(
    fields: dict[str, Any], fields_refused: Sequence[str]
) -> None:
    found = with_options(an_option(1), an_option(2, **fields))

    assert [field for field, _ in found] == fields_refused


def test_an_option_that_is_no_object_is_refused() -> None:
    assert ("options/1", "must be an object") in with_options(an_option(1), "town-2")


def test_options_with_questions_too_long_for_the_chain_are_refused() -> None:
    rules = "x" * (ANCILLARY_BYTES_MAX - 300)

    found = problems(
        resolutionRules=rules, options=[an_option(1), an_option(2, question="Q" * 301)]
    )

    assert [field for field, _ in found] == ["options/1/question"]


def test_a_half_is_offered_only_when_it_is_an_answer() -> None:
    market = a_payload().markets[0]

    assert ancillary_text(market, RULES_TEXT, may_be_unknown=False) == (
        f"q: title: Will it rain in Bergen?, description: {RULES_TEXT} res_data: p1: 0, p2: 1."
        " Where p1 corresponds to No, p2 to Yes"
    )


@pytest.mark.parametrize("mode", list(MarketMode))
def test_only_multi_unique_events_are_neg_risk(mode: MarketMode) -> None:
    fields = {} if mode is MarketMode.BINARY else event_fields(mode)

    assert a_payload(**fields).is_neg_risk is (mode is MarketMode.MULTI_UNIQUE)
