"""Query parameters that several APIs share."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address

from foretell.domain.errors.http import MalformedQuery
from foretell.edge.paging import (
    IDS_MAX,
    parse_boolean,
    parse_choice,
    parse_conditions,
    parse_integer,
    parse_list,
    parse_wallet,
)


def limit(text: str | None) -> int:
    return parse_integer(text, "limit", 100, 1, 500)


@pytest.mark.spec(107)
@pytest.mark.parametrize(
    ("text", "value"),
    [(None, 100), ("", 100), ("1", 1), ("100", 100), ("500", 500), ("007", 7)],
)
def test_an_integer_in_its_range_is_read_and_an_absent_one_has_its_default(
    text: str | None, value: int
) -> None:
    assert limit(text) == value


@pytest.mark.spec(107)
@pytest.mark.parametrize(
    "text",
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
        "9" * 10_000,
        "NaN",
        "5,6",
    ],
    ids=range(21),
)
def test_an_integer_out_of_its_range_or_shape_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery, match="limit must be an integer from 1 to 500") as refusal:
        limit(text)
    assert refusal.value.details == {"field": "limit"}


@given(st.integers(-500, 500))
def test_an_integer_in_its_range_is_itself(number: int) -> None:
    assert parse_integer(str(number), "offset", 0, -500, 500) == number


@given(st.integers(501))
def test_an_integer_outside_its_range_is_refused_on_both_sides(number: int) -> None:
    with pytest.raises(MalformedQuery):
        parse_integer(str(number), "offset", 0, -500, 500)
    with pytest.raises(MalformedQuery):
        parse_integer(str(-number), "offset", 0, -500, 500)


@pytest.mark.parametrize(
    ("text", "value"),
    [("true", True), ("TRUE", True), ("1", True), ("false", False), ("False", False), ("0", False)],
)
def test_a_boolean_is_read_in_any_case(text: str, *, value: bool) -> None:
    assert parse_boolean(text, "closed", default=not value) is value


@pytest.mark.parametrize("text", [None, ""])
@pytest.mark.parametrize("default", [True, False])
def test_an_absent_boolean_has_its_default(text: str | None, *, default: bool) -> None:
    assert parse_boolean(text, "closed", default=default) is default


@pytest.mark.parametrize("text", ["yes", "no", "2", "-1", "t", " true", "true ", "null"])
def test_what_is_no_boolean_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery, match="closed must be true or false"):
        parse_boolean(text, "closed", default=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [(None, "CASH"), ("", "CASH"), ("TOKENS", "TOKENS"), ("tokens", "TOKENS"), ("Cash", "CASH")],
)
def test_a_choice_is_read_in_any_case_and_spelled_in_its_own(text: str | None, value: str) -> None:
    assert parse_choice(text, "sortBy", "CASH", ["TOKENS", "CASH"]) == value


@pytest.mark.parametrize("text", ["price", "TOKEN", "TOKENS,CASH", " CASH"])
def test_what_is_no_choice_is_refused_naming_them(text: str) -> None:
    with pytest.raises(MalformedQuery, match="sortBy must be one of TOKENS, CASH"):
        parse_choice(text, "sortBy", "CASH", ["TOKENS", "CASH"])


@pytest.mark.parametrize(
    ("values", "entries"),
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
    values: list[str], entries: list[str]
) -> None:
    assert parse_list(values, "id") == entries


@pytest.mark.spec(106)
@pytest.mark.parametrize("count", [0, 1, 2, IDS_MAX])
def test_condition_ids_are_read_up_to_their_bound(count: int) -> None:
    words = [a_word(f"{number}") for number in range(count)]
    shouted = [word.upper().replace("0X", "0x") for word in words]
    assert parse_conditions([",".join(shouted)]) == words
    assert parse_conditions(shouted) == words


@pytest.mark.parametrize("values", [["a," * (IDS_MAX + 1)], ["a"] * (IDS_MAX + 1)])
def test_a_list_beyond_its_bound_is_refused(values: list[str]) -> None:
    with pytest.raises(MalformedQuery, match=f"at most {IDS_MAX} entries"):
        parse_list(values, "id")


@pytest.mark.spec(106)
@pytest.mark.parametrize(
    "text",
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
def test_a_condition_id_that_is_malformed_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery, match="market must be condition ids") as refusal:
        parse_conditions([text])
    assert refusal.value.details == {"field": "market"}


def test_a_wallet_is_read_in_any_case() -> None:
    shouted = "0x" + an_address("alice")[2:].upper()
    assert parse_wallet(shouted) == an_address("alice")


@pytest.mark.parametrize("text", [None, "", "alice", an_address("alice")[:-1], a_word("a")])
def test_a_wallet_is_required_and_well_formed(text: str | None) -> None:
    with pytest.raises(MalformedQuery, match="user must be an address"):
        parse_wallet(text)
