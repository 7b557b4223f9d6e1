"""Query parameters: the values that they accept, refuse and have by default."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery, MissingParameter
from foretell.edge import parameters
from foretell.edge.parameters import ENTRIES_MAX, ID_MAX, TEXT_CHARS_MAX, Parameter

SORTS = ("TOKENS", "CASH")
LIMIT = parameters.integer("limit", 100, 1, 500)
OFFSET = parameters.integer("offset", 0, -500, 500)
MARKET = parameters.conditions("market", "condition ids")
USER = parameters.wallet("user", "a wallet")

EVERY_KIND: dict[str, Parameter[Any]] = {
    "text": parameters.text("x", ""),
    "required text": parameters.required_text("x", ""),
    "entries": parameters.entries("x", ""),
    "ids": parameters.ids("x", ""),
    "conditions": parameters.conditions("x", ""),
    "required conditions": parameters.required_conditions("x", ""),
    "wallet": parameters.wallet("x", ""),
    "optional wallet": parameters.optional_wallet("x", ""),
    "integer": parameters.integer("x", 7, 0, 9),
    "clamped integer": parameters.clamped_integer("x", 7, 0, 9),
    "optional integer": parameters.optional_integer("x", -5, 9),
    "boolean": parameters.boolean("x", "", default=True),
    "optional boolean": parameters.optional_boolean("x", ""),
    "choice": parameters.choice("x", "", ("ASC", "DESC"), "DESC"),
    "optional choice": parameters.optional_choice("x", "", ("ASC", "DESC")),
    "units": parameters.units("x", ""),
    "units with a default": parameters.units_or("x", "", default=2),
    "instant": parameters.instant_ms("x", ""),
    "ignored": parameters.ignored("x"),
}
REQUIRED = ("required text", "required conditions", "wallet")
DEFAULTS: dict[str, object] = {
    "text": None,
    "entries": [],
    "ids": [],
    "conditions": [],
    "optional wallet": None,
    "integer": 7,
    "clamped integer": 7,
    "optional integer": None,
    "boolean": True,
    "optional boolean": None,
    "choice": "DESC",
    "optional choice": None,
    "units": None,
    "units with a default": 2_000_000,
    "instant": None,
    "ignored": None,
}


@pytest.mark.parametrize("values", [[], [""], ["", ""]])
@pytest.mark.parametrize("kind", DEFAULTS)
def test_an_absent_or_empty_parameter_has_its_default(kind: str, values: list[str]) -> None:
    assert EVERY_KIND[kind].parse(values) == DEFAULTS[kind]


@pytest.mark.parametrize("values", [[], [""], ["", ""]])
@pytest.mark.parametrize("kind", REQUIRED)
def test_a_required_parameter_that_is_absent_is_refused_by_name(
    kind: str, values: list[str]
) -> None:
    assert EVERY_KIND[kind].is_required
    with pytest.raises(MissingParameter, match="x is required"):
        EVERY_KIND[kind].parse(values)


@pytest.mark.parametrize(
    ("kind", "value", "parsed"),
    [
        ("text", "a b", "a b"),
        ("required text", "a b", "a b"),
        ("ids", "1,2", [1, 2]),
        ("wallet", "0x" + "Ab" * 20, "0x" + "ab" * 20),
        ("optional wallet", "0x" + "Ab" * 20, "0x" + "ab" * 20),
        ("required conditions", a_word("a"), [a_word("a")]),
        ("integer", "5", 5),
        ("clamped integer", "9", 9),
        ("clamped integer", "10", 9),
        ("clamped integer", str(ID_MAX), 9),
        ("optional integer", "-5", -5),
        ("boolean", "TRUE", True),
        ("optional boolean", "0", False),
        ("choice", "asc", "ASC"),
        ("optional choice", "Desc", "DESC"),
        ("units with a default", "3", 3_000_000),
        ("ignored", "anything", None),
    ],
)
def test_a_well_formed_value_has_its_type(kind: str, value: str, parsed: object) -> None:
    assert EVERY_KIND[kind].parse([value]) == parsed


def test_the_first_value_that_is_not_empty_counts() -> None:
    assert EVERY_KIND["text"].parse(["", "one", "two"]) == "one"


@pytest.mark.spec(107)
@pytest.mark.parametrize(("value", "parsed"), [("1", 1), ("100", 100), ("500", 500), ("007", 7)])
def test_an_integer_in_its_range_is_read(value: str, parsed: int) -> None:
    assert LIMIT.parse([value]) == parsed


@pytest.mark.spec(107)
@pytest.mark.parametrize("values", [[], [""]])
def test_an_absent_integer_has_its_default(values: list[str]) -> None:
    assert LIMIT.parse(values) == 100


@pytest.mark.case("G-04")
@pytest.mark.spec(107)
@pytest.mark.parametrize(
    "value",
    [
        "0",
        "501",
        "-1",
        "--1",
        "-",
        "+5",
        "5.0",
        "5 ",
        " 5",
        "5\n",
        "1e2",
        "0x5",
        "five",
        "1_0",
        "\u0665",
        "\u00b2",
        "0005",
        "9" * 13,
        "9" * TEXT_CHARS_MAX,
        "NaN",
        "5,6",
    ],
    ids=range(21),
)
def test_an_integer_out_of_its_range_or_shape_is_refused(value: str) -> None:
    with pytest.raises(MalformedQuery, match="limit must be an integer from 1 to 500") as refusal:
        LIMIT.parse([value])
    assert refusal.value.details == {"field": "limit"}


def test_an_integer_of_ten_thousand_digits_is_refused() -> None:
    with pytest.raises(MalformedQuery, match="limit must be "):
        LIMIT.parse(["9" * 10_000])


@given(st.integers(-500, 500))
def test_an_integer_in_its_range_is_itself(number: int) -> None:
    assert OFFSET.parse([str(number)]) == number


@given(st.integers(501))
def test_an_integer_outside_its_range_is_refused_on_both_sides(number: int) -> None:
    with pytest.raises(MalformedQuery):
        OFFSET.parse([str(number)])
    with pytest.raises(MalformedQuery):
        OFFSET.parse([str(-number)])


@pytest.mark.parametrize(
    ("value", "parsed"),
    [("true", True), ("TRUE", True), ("1", True), ("false", False), ("False", False), ("0", False)],
)
def test_a_boolean_is_read_in_any_case(value: str, *, parsed: bool) -> None:
    closed = parameters.boolean("closed", "", default=not parsed)
    assert closed.parse([value]) is parsed


@pytest.mark.parametrize("values", [[], [""]])
@pytest.mark.parametrize("default", [True, False])
def test_an_absent_boolean_has_its_default(values: list[str], *, default: bool) -> None:
    assert parameters.boolean("closed", "", default=default).parse(values) is default


@pytest.mark.parametrize("value", ["yes", "no", "2", "-1", "t", " true", "true ", "null"])
def test_a_value_that_is_no_boolean_is_refused(value: str) -> None:
    with pytest.raises(MalformedQuery, match="closed must be true or false"):
        parameters.boolean("closed", "", default=True).parse([value])


@pytest.mark.parametrize(
    ("values", "parsed"),
    [([], "CASH"), ([""], "CASH"), (["TOKENS"], "TOKENS"), (["tokens"], "TOKENS")],
)
def test_a_choice_is_read_in_any_case_and_spelled_in_its_own(
    values: list[str], parsed: str
) -> None:
    assert parameters.choice("sortBy", "", SORTS, "CASH").parse(values) == parsed


@pytest.mark.parametrize("value", ["price", "TOKEN", "TOKENS,CASH", " CASH"])
def test_a_value_that_is_no_choice_is_refused_naming_them(value: str) -> None:
    with pytest.raises(MalformedQuery, match="sortBy must be one of TOKENS, CASH"):
        parameters.choice("sortBy", "", SORTS, "CASH").parse([value])


@pytest.mark.parametrize(
    ("values", "parsed"),
    [
        ([], []),
        ([""], []),
        ([","], []),
        (["a"], ["a"]),
        (["a,b", "c"], ["a", "b", "c"]),
        (["a,,b,"], ["a", "b"]),
        (["a", "a"], ["a", "a"]),
    ],
)
def test_a_list_is_comma_separated_or_repeated_or_both(
    values: list[str], parsed: list[str]
) -> None:
    assert EVERY_KIND["entries"].parse(values) == parsed


@pytest.mark.spec(106)
@pytest.mark.parametrize("count", [0, 1, 2, ENTRIES_MAX])
def test_condition_ids_are_read_up_to_their_limit(count: int) -> None:
    words = [a_word(f"{number}") for number in range(count)]
    upper_case = [word.upper().replace("0X", "0x") for word in words]
    assert MARKET.parse([",".join(upper_case)]) == words
    assert MARKET.parse(upper_case) == words


@pytest.mark.case("G-04")
@pytest.mark.parametrize("values", [["a," * (ENTRIES_MAX + 1)], ["a"] * (ENTRIES_MAX + 1)])
@pytest.mark.parametrize("kind", ["entries", "ids", "conditions"])
def test_a_list_beyond_its_limit_is_refused(kind: str, values: list[str]) -> None:
    with pytest.raises(MalformedQuery, match=f"at most {ENTRIES_MAX} entries"):
        EVERY_KIND[kind].parse(values)


@pytest.mark.parametrize("declare", [parameters.entries, parameters.ids])
def test_a_list_may_have_a_limit_of_its_own(declare: Any) -> None:
    declared = declare("x", "", entries_max=2)
    declared.parse(["1,2"])
    with pytest.raises(MalformedQuery, match="at most 2 entries"):
        declared.parse(["1,2,3"])


@pytest.mark.spec(106)
@pytest.mark.parametrize(
    "value",
    [
        "0x",
        "1",
        a_word("a")[:-1],
        a_word("a")[2:],
        a_word("a") + "0",
        f"{a_word('a')},x",
        f"{a_word('a')}; {a_word('b')}",
        f"{a_word('a')}, {a_word('b')}",
        an_address("alice"),
    ],
)
def test_a_malformed_condition_id_is_refused(value: str) -> None:
    with pytest.raises(MalformedQuery, match="market must be condition ids") as refusal:
        MARKET.parse([value])
    assert refusal.value.details == {"field": "market"}


def test_a_wallet_is_read_in_any_case() -> None:
    upper_case = "0x" + an_address("alice")[2:].upper()
    assert USER.parse([upper_case]) == an_address("alice")


@pytest.mark.parametrize("value", ["alice", an_address("alice")[:-1], a_word("a")])
def test_a_malformed_wallet_is_refused(value: str) -> None:
    with pytest.raises(MalformedQuery, match="user must be an address"):
        USER.parse([value])


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("0", 0),
        ("1", 10**6),
        ("0.5", 500_000),
        (".5", 500_000),
        ("1.", 10**6),
        ("0.0000001", 1),
        ("1e-7", 1),
        ("1E3", 10**9),
    ],
)
def test_a_least_amount_is_rounded_up_to_base_units(value: str, units: int) -> None:
    assert EVERY_KIND["units"].parse([value]) == units


@pytest.mark.parametrize(
    ("value", "at_ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01 00:00:00.5", 500),
    ],
)
def test_a_moment_without_an_offset_is_utc(value: str, at_ms: int) -> None:
    assert EVERY_KIND["instant"].parse([value]) == at_ms


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "a" * (TEXT_CHARS_MAX + 1)),
        ("text", "a\0b"),
        ("required text", "a\0b"),
        ("entries", "a\0b"),
        ("entries", "a" * (TEXT_CHARS_MAX + 1)),
        ("entries", ",".join("a" * 501)),
        ("ids", str(ID_MAX + 1)),
        ("ids", "-1"),
        ("ids", "one"),
        ("conditions", "0x12"),
        ("required conditions", "0x12"),
        ("wallet", "0x12"),
        ("optional wallet", "0x12"),
        ("integer", "10"),
        ("clamped integer", "-1"),
        ("clamped integer", str(ID_MAX + 1)),
        ("optional integer", "1.0"),
        ("boolean", "yes"),
        ("optional boolean", "yes"),
        ("choice", "UP"),
        ("optional choice", "UP"),
        ("units", "-1"),
        ("units", "nan"),
        ("units", "Infinity"),
        ("units", "."),
        ("units", "1e30"),
        ("units", "9" * 30),
        ("units with a default", "-1"),
        ("instant", "yesterday"),
        ("instant", "2027-13-01"),
    ],
)
def test_a_malformed_value_is_refused_by_name(kind: str, value: str) -> None:
    with pytest.raises(MalformedQuery, match=r"^x must be "):
        EVERY_KIND[kind].parse([value])


def test_a_text_may_have_a_limit_of_its_own() -> None:
    title = parameters.text("title", "", chars_max=3)
    assert title.parse(["abc"]) == "abc"
    with pytest.raises(MalformedQuery, match="title must be at most 3 characters"):
        title.parse(["abcd"])


@given(st.sampled_from(sorted(EVERY_KIND)), st.text(min_size=1, max_size=40))
def test_every_text_is_read_or_refused(kind: str, value: str) -> None:
    refusals: list[ForetellError] = []
    try:
        EVERY_KIND[kind].parse([value])
    except (MalformedQuery, MissingParameter) as error:
        refusals.append(error)
    assert all(error.details == {"field": "x"} for error in refusals)
