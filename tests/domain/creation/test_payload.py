import contextlib
import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from eth_utils.crypto import keccak
from hypothesis import example, given
from hypothesis import strategies as st
from tests.rigs.payloads import ABSENT, RULES, RULES_TEXT, a_payload, a_raw_payload, sports_fields
from tests.rigs.values import CHAIN_ID, NOW_MS, an_address

from foretell.domain.creation.payload import (
    ANCILLARY_BYTES_MAX,
    CATEGORIES_MAX,
    CATEGORIES_MIN,
    PAYLOAD_BYTES_MAX,
    RULES_CHARS_MIN,
    Category,
    MarketDraft,
    MarketMode,
    Payload,
    PayloadRules,
    ResolutionType,
    ancillary_text,
    parse_payload,
    payload_hash,
)
from foretell.domain.errors.families import InvalidFields
from foretell.domain.values.slugs import SLUG_CHARS_MAX

FIVE = ["a", "b", "c", "d", "e"]


def problems(**fields: Any) -> list[tuple[str, str]]:
    """Return the problems of a payload, none when it is valid."""
    now_ms = fields.pop("now_ms", NOW_MS)
    try:
        parse_payload(a_raw_payload(**fields), RULES, now_ms)
    except InvalidFields as refusal:
        return [(problem["field"], problem["message"]) for problem in refusal.details["problems"]]
    return []


def fields_refused(**fields: Any) -> set[str]:
    return {field for field, _ in problems(**fields)}


def test_a_payload_that_keeps_every_rule_is_read() -> None:
    assert a_payload() == Payload(
        chain_id=CHAIN_ID,
        resolution_type=ResolutionType.DIRECT,
        creator=an_address("creator"),
        title="Rain in Bergen",
        slug="rain-in-bergen",
        ends_at_ms=2_064_312_000_000,
        main_category_slug="weather",
        categories=(
            Category("Weather", "weather"),
            Category("Norway", "norway"),
            Category("Rain", "rain"),
            Category("Europe", "europe"),
            Category("Daily", "daily"),
        ),
        market_mode=MarketMode.BINARY,
        resolution_source="https://example.org/station",
        resolution_rules=RULES_TEXT,
        markets=(
            MarketDraft(
                key="binary",
                slug="rain-in-bergen",
                question="Will it rain in Bergen?",
                title="Rain in Bergen",
                short_title="Rain in Bergen",
                outcome_yes="Yes",
                outcome_no="No",
            ),
        ),
    )


@pytest.mark.spec(7)
@given(st.binary(max_size=300))
@example(b' {"title": "space before"}')
@example(b'{"title": "line end"}\n')
@example(b'\xef\xbb\xbf{"title": "byte order mark"}')
@example('{"title": "Cafe\u0301"}'.encode())
def test_the_hash_is_that_of_the_very_bytes(raw: bytes) -> None:
    assert payload_hash(raw) == "0x" + keccak(raw).hex()


@pytest.mark.spec(10, 67)
@pytest.mark.parametrize(
    "name",
    [
        "creator",
        "title",
        "slug",
        "endDateIso",
        "mainCategorySlug",
        "categories",
        "marketMode",
        "resolutionRules",
        "binaryQuestion",
        "binaryOutcomeYes",
        "binaryOutcomeNo",
    ],
)
@pytest.mark.parametrize(
    "value",
    [ABSENT, None, 7, True, {"a": 1}],
    ids=["absent", "None", "7", "True", "object"],
)
def test_each_required_field_is_reported_when_missing_or_of_another_type(
    name: str, value: object
) -> None:
    assert fields_refused(**{name: value}) == {name}


@pytest.mark.spec(10)
def test_all_problems_are_reported_at_once() -> None:
    refused = fields_refused(
        chainId=1,
        resolutionType="other",
        creator="0x",
        title="",
        slug="!",
        endDateIso="2001-01-01T00:00:00Z",
        mainCategorySlug="雨",
        categories=["a"],
        marketMode="ternary",
        resolutionSource="nowhere",
        resolutionRules="short",
    )

    assert refused == {
        "chainId",
        "resolutionType",
        "creator",
        "title",
        "slug",
        "endDateIso",
        "mainCategorySlug",
        "categories",
        "marketMode",
        "resolutionSource",
        "resolutionRules",
    }


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"[]", "must be a JSON object"),
        (b'"text"', "must be a JSON object"),
        (b"{", "must be strict JSON: line 1, column 2 is not JSON"),
        (b'{"title": 1, "title": 2}', "must be strict JSON: the key 'title' is there twice"),
        (b" " * (PAYLOAD_BYTES_MAX + 1), f"must have at most {PAYLOAD_BYTES_MAX} bytes"),
    ],
)
def test_a_payload_that_is_not_an_object_is_refused_as_a_whole(raw: bytes, message: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        parse_payload(raw, RULES, NOW_MS)

    (problem,) = refused.value.details["problems"]
    assert problem["field"] == "payload"
    assert problem["message"].startswith(message)


@pytest.mark.spec(8)
def test_a_payload_without_chain_is_for_the_default_one() -> None:
    rules = PayloadRules(supported_chain_ids=(137, 80002), default_chain_id=137)

    silent = parse_payload(a_raw_payload(chainId=ABSENT), rules, NOW_MS)
    saying = parse_payload(a_raw_payload(chainId=80002), rules, NOW_MS)

    assert silent.chain_id == 137
    assert saying.chain_id == 80002


@pytest.mark.spec(8)
@pytest.mark.parametrize("chain_id", [1, 0, -1, "80002", True, 80002.0])
def test_another_chain_is_refused(chain_id: object) -> None:
    assert fields_refused(chainId=chain_id) == {"chainId"}


@pytest.mark.spec(9)
def test_the_resolution_type_is_the_direct_one_by_default() -> None:
    assert a_payload(resolutionType="alt_moov2").resolution_type is ResolutionType.OPTIMISTIC
    assert a_payload(resolutionType=ABSENT).resolution_type is ResolutionType.DIRECT
    assert a_payload(resolutionType="dro_moov2").resolution_type is ResolutionType.DIRECT


@pytest.mark.spec(9)
@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("uma_moov2", "must be one of dro_moov2, alt_moov2"),
        ("DRO_MOOV2", "must be one of dro_moov2, alt_moov2"),
        (5, "must be one of dro_moov2, alt_moov2"),
    ],
)
def test_other_resolution_types_are_refused(word: object, message: str) -> None:
    assert problems(resolutionType=word) == [("resolutionType", message)]


def test_the_alias_of_the_optimistic_type_is_accepted_when_enabled() -> None:
    rules = replace(RULES, accepts_uma_moov2=True)

    payload = parse_payload(a_raw_payload(resolutionType="uma_moov2"), rules, NOW_MS)

    assert payload.resolution_type is ResolutionType.OPTIMISTIC


@pytest.mark.spec(14)
@pytest.mark.parametrize("mode", ["ternary", "BINARY", "", 1, None, ABSENT])
def test_other_modes_are_refused(mode: object) -> None:
    message = "must be one of binary, multi_multiple, multi_unique"
    assert problems(marketMode=mode) == [("marketMode", message)]


@pytest.mark.spec(20)
@pytest.mark.parametrize("sports", [[], "game", 7, True])
def test_sports_is_an_object(sports: object) -> None:
    found = problems(**sports_fields(sports))

    assert found == [("sports", "must be an object")]


def test_a_payload_without_sports_may_be_of_the_sports_category() -> None:
    assert a_payload(mainCategorySlug="Sports", sports=None).main_category_slug == "sports"


@pytest.mark.spec(11)
def test_the_slug_is_normalized_before_the_markets_is_derived() -> None:
    payload = a_payload(slug="Ünï  Code!!")

    assert payload.slug == "uni-code"
    assert [market.slug for market in payload.markets] == ["uni-code"]
    assert payload.slugs == ("uni-code",)


@pytest.mark.parametrize("name", ["slug", "mainCategorySlug"])
def test_a_slug_has_letters_and_no_more_than_fit(name: str) -> None:
    assert problems(**{name: "雨"}) == [(name, "must have a letter from a to z or a digit")]
    assert fields_refused(**{name: "a" * (SLUG_CHARS_MAX + 1)}) == {name}
    assert "a" * SLUG_CHARS_MAX in asdict(a_payload(**{name: "a" * SLUG_CHARS_MAX})).values()


@pytest.mark.case("F-11")
@pytest.mark.spec(12)
@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("2027-01-15T08:00:00Z", True),
        ("2027-01-15T07:59:59.999Z", True),
        ("2027-01-15T09:00:00+01:00", True),
        ("2027-01-15T08:00:00.001Z", False),
        ("2027-01-15T08:00:00-00:01", False),
        ("9999-12-31T23:59:59Z", False),
    ],
)
def test_the_end_is_in_the_future_by_a_millisecond(text: str, *, is_refused: bool) -> None:
    wanted = [("endDateIso", "must be in the future")] if is_refused else []

    assert problems(now_ms=1_800_000_000_000, endDateIso=text) == wanted


@pytest.mark.case("F-11")
@pytest.mark.spec(13)
@pytest.mark.parametrize(
    "categories",
    [
        ["a", "b", "c", "d"],
        ["a", "b", "c", "d", "d"],
        ["Café", "cafe", "CAFE!", " cafe ", "ca-fe"],
        ["a", "b", "c", "d", {"label": "Other", "slug": "D"}],
        ["weather", "b", "c", "d", {"label": "x", "slug": "Weather"}],
    ],
)
def test_fewer_than_five_categories_of_their_own_are_refused(categories: list[Any]) -> None:
    assert problems(categories=categories, mainCategorySlug="weather") == [
        ("categories", f"must have at least {CATEGORIES_MIN} unique entries")
    ]


@pytest.mark.spec(13)
def test_five_categories_of_both_forms_pass_and_repetitions_are_dropped() -> None:
    payload = a_payload(
        categories=[
            "A",
            "b",
            {"label": "Label C", "slug": "C!"},
            "d",
            "a",
            {"label": "E", "slug": "e"},
        ]
    )

    assert payload.categories == (
        Category("A", "a"),
        Category("b", "b"),
        Category("Label C", "c"),
        Category("d", "d"),
        Category("E", "e"),
    )


@pytest.mark.parametrize(
    ("entry", "refused"),
    [
        (7, {"categories/5"}),
        (None, {"categories/5"}),
        ("雨", {"categories/5"}),
        ("x" * 200, {"categories/5"}),
        ({}, {"categories/5/label", "categories/5/slug"}),
        ({"label": "x"}, {"categories/5/slug"}),
        ({"name": "x", "slug": "x"}, {"categories/5/label"}),
        ({"label": "x", "slug": "雨"}, {"categories/5/slug"}),
    ],
)
def test_a_category_of_neither_form_is_reported_with_its_index(
    entry: object, refused: set[str]
) -> None:
    assert fields_refused(categories=[*FIVE, entry]) == refused


def test_categories_are_bounded() -> None:
    many = [f"c{index}" for index in range(CATEGORIES_MAX + 1)]

    assert fields_refused(categories=many) == {"categories"}
    assert fields_refused(categories=[]) == {"categories"}


@pytest.mark.parametrize(
    ("main", "slugs"),
    [("a", ("a", "b", "c", "d", "e")), ("other", ("other", "a", "b", "c", "d", "e"))],
)
def test_the_main_category_is_a_tag_and_does_not_count_as_an_entry(
    main: str, slugs: tuple[str, ...]
) -> None:
    payload = a_payload(categories=FIVE, mainCategorySlug=main)

    assert tuple(tag.slug for tag in payload.tags) == slugs


@pytest.mark.spec(15)
@pytest.mark.parametrize("source", [ABSENT, None])
def test_the_source_may_be_absent(source: object) -> None:
    assert a_payload(resolutionSource=source).resolution_source is None


@pytest.mark.spec(15)
@pytest.mark.parametrize("source", ["nowhere", "ftp://example.org", "https://a@example.org", 5, ""])
def test_a_source_that_is_no_web_address_is_refused(source: object) -> None:
    assert fields_refused(resolutionSource=source) == {"resolutionSource"}


def test_the_source_is_known_by_its_other_name() -> None:
    payload = a_payload(resolutionSource=ABSENT, resolutionSourceUrl="https://example.org/b")

    assert payload.resolution_source == "https://example.org/b"


@pytest.mark.case("F-11")
@pytest.mark.spec(16)
@pytest.mark.parametrize(
    ("rules", "is_refused"),
    [
        ("x" * (RULES_CHARS_MIN - 1), True),
        ("x" * RULES_CHARS_MIN, False),
        ("  " + "x" * (RULES_CHARS_MIN - 1) + "\n", True),
        ("  " + "x" * RULES_CHARS_MIN + "\n", False),
        ("e\u0301" * (RULES_CHARS_MIN // 2), False),
        ("e\u0301" * (RULES_CHARS_MIN // 2 - 1) + "x", True),
        ("\U0001f327" * (RULES_CHARS_MIN - 1), True),
        ("\U0001f327" * RULES_CHARS_MIN, False),
    ],
)
def test_rules_have_sixty_code_points_after_trimming(rules: str, *, is_refused: bool) -> None:
    assert fields_refused(resolutionRules=rules) == ({"resolutionRules"} if is_refused else set())


def test_rules_may_have_several_lines() -> None:
    text = RULES_TEXT + "\n\nSecond part.\r\n\tIndented."

    assert a_payload(resolutionRules=text).resolution_rules == text


@pytest.mark.spec(17)
def test_outcomes_have_their_own_labels_and_differ() -> None:
    (market,) = a_payload(binaryOutcomeYes=" Up ", binaryOutcomeNo="Down").markets

    assert (market.outcome_yes, market.outcome_no) == ("Up", "Down")
    assert problems(binaryOutcomeYes="Up", binaryOutcomeNo="UP") == [
        ("binaryOutcomeNo", "must differ from binaryOutcomeYes")
    ]


def test_the_question_s_text_is_the_convention_of_the_adapter() -> None:
    (market,) = a_payload().markets

    assert ancillary_text(market, RULES_TEXT) == (
        f"q: title: Will it rain in Bergen?, description: {RULES_TEXT} res_data: p1: 0, p2: 1,"
        " p3: 0.5. Where p1 corresponds to No, p2 to Yes, p3 to unknown"
    )


def test_a_text_that_does_not_fit_on_the_chain_is_refused() -> None:
    (market,) = a_payload().markets
    room = ANCILLARY_BYTES_MAX - len(ancillary_text(market, "").encode())

    message = (
        f"must be shorter: question and rules together make {ANCILLARY_BYTES_MAX + 1} bytes, and"
        f" {ANCILLARY_BYTES_MAX} fit on the chain"
    )

    assert a_payload(resolutionRules="x" * room).resolution_rules == "x" * room
    assert problems(resolutionRules="x" * (room + 1)) == [("resolutionRules", message)]
    assert fields_refused(resolutionRules="\U0001f327" * 3000) == {"resolutionRules"}


@pytest.mark.case("G-08")
def test_unknown_keys_are_left_alone() -> None:
    assert a_payload(other={"status": "finalized"}, fee=1) == a_payload()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.sampled_from(sorted(json.loads(a_raw_payload()))), VALUES, max_size=4))
def test_any_values_are_read_or_refused_with_their_fields(fields: dict[str, Any]) -> None:
    with contextlib.suppress(InvalidFields):
        assert a_payload(**fields).markets


@given(st.binary(max_size=400))
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    with pytest.raises(InvalidFields):
        parse_payload(raw, RULES, NOW_MS)
