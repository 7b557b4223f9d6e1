from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from litestar.testing import RequestFactory

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery, MissingParameter, UnknownParameter
from foretell.edge.query import ID_MAX, PARAMETERS_MAX, TEXT_CHARS_MAX, Query

WORD = "0x" + "ab" * 32
WALLET = "0x" + "Ab" * 20

Read = Callable[[Query], Any]


def a_query(*pairs: tuple[str, str]) -> Query:
    return Query(pairs)


def test_a_query_is_read_off_the_request() -> None:
    query = "a=1&list=x,y&list=z&empty=&sp=a+b%2Bc"
    request = RequestFactory().get(f"/?{query}")
    request.scope["query_string"] = query.encode()
    read = Query.of(request)
    assert read.integer("a", 0, 0, 9) == 1
    assert read.entries("list") == ["x", "y", "z"]
    assert read.text("empty") is None
    assert read.text("sp") == "a b+c"


def test_more_parameters_than_the_bound_are_refused() -> None:
    request = RequestFactory().get("/")
    request.scope["query_string"] = urlencode([("a", "1")] * (PARAMETERS_MAX + 1)).encode()
    with pytest.raises(MalformedQuery):
        Query.of(request)


def test_the_first_value_counts_and_any_spelling_does() -> None:
    query = a_query(("condition_id", "one"), ("condition_id", "two"), ("plain", "three"))
    assert query.text("conditionId", "condition_id") == "one"
    assert query.required("plain") == "three"


@pytest.mark.parametrize(
    "pairs",
    [
        [("market", f"{WORD},{WORD}")],
        [("market", WORD), ("market", WORD)],
        [("market[]", WORD), ("market", WORD)],
    ],
)
def test_a_list_may_be_comma_separated_repeated_or_bracketed(pairs: list[tuple[str, str]]) -> None:
    assert a_query(*pairs).conditions("market") == [WORD, WORD]


def test_what_is_absent_has_its_default() -> None:
    query = a_query()
    assert query.text("x") is None
    assert query.entries("x") == []
    assert query.ids("x") == []
    assert query.conditions("x") == []
    assert query.optional_wallet("x") is None
    assert query.integer("x", 7, 0, 9) == 7
    assert query.optional_integer("x", 0, 9) is None
    assert query.boolean("x", default=True) is True
    assert query.optional_boolean("x") is None
    assert query.choice("x", "DESC", ("ASC", "DESC")) == "DESC"
    assert query.units("x") is None
    assert query.instant_ms("x") is None


def test_what_is_there_has_its_type() -> None:
    query = a_query(("user", WALLET), ("n", "5"), ("b", "TRUE"), ("c", "asc"), ("ids", "1,2"))
    assert query.wallet("user") == query.optional_wallet("user") == WALLET.lower()
    assert query.integer("n", 0, 0, 9) == query.optional_integer("n", 0, 9) == 5
    assert query.boolean("b", default=False) is query.optional_boolean("b") is True
    assert query.choice("c", "DESC", ("ASC", "DESC")) == "ASC"
    assert query.ids("ids") == [1, 2]


@pytest.mark.parametrize(
    ("text", "units"),
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
def test_a_least_amount_is_rounded_up_to_base_units(text: str, units: int) -> None:
    assert a_query(("sizeThreshold", text)).units("sizeThreshold") == units


@pytest.mark.parametrize(
    ("text", "at_ms"),
    [
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-01-01T02:00:00+02:00", 0),
        ("1970-01-01 00:00:00.5", 500),
    ],
)
def test_a_moment_without_an_offset_is_utc(text: str, at_ms: int) -> None:
    assert a_query(("start", text)).instant_ms("start") == at_ms


READS: dict[str, Read] = {
    "text": lambda query: query.text("x"),
    "entries": lambda query: query.entries("x"),
    "ids": lambda query: query.ids("x"),
    "conditions": lambda query: query.conditions("x"),
    "wallet": lambda query: query.wallet("x"),
    "optional wallet": lambda query: query.optional_wallet("x"),
    "integer": lambda query: query.integer("x", 0, 0, 9),
    "optional integer": lambda query: query.optional_integer("x", -5, 9),
    "boolean": lambda query: query.boolean("x", default=True),
    "optional boolean": lambda query: query.optional_boolean("x"),
    "choice": lambda query: query.choice("x", "ASC", ("ASC", "DESC")),
    "units": lambda query: query.units("x"),
    "instant": lambda query: query.instant_ms("x"),
}


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("text", "a" * (TEXT_CHARS_MAX + 1)),
        ("text", "a\0b"),
        ("entries", "a\0b"),
        ("entries", "a" * (TEXT_CHARS_MAX + 1)),
        ("entries", ",".join("a" * 501)),
        ("ids", str(ID_MAX + 1)),
        ("ids", "-1"),
        ("ids", "one"),
        ("conditions", "0x12"),
        ("wallet", "0x12"),
        ("optional wallet", "0x12"),
        ("integer", "10"),
        ("optional integer", "1.0"),
        ("boolean", "yes"),
        ("optional boolean", "yes"),
        ("choice", "UP"),
        ("units", "-1"),
        ("units", "nan"),
        ("units", "Infinity"),
        ("units", "."),
        ("units", "1e30"),
        ("units", "9" * 30),
        ("instant", "yesterday"),
        ("instant", "2027-13-01"),
    ],
)
def test_what_does_not_spell_its_type_is_refused_by_name(kind: str, value: str) -> None:
    with pytest.raises(MalformedQuery, match=r"^x must be "):
        READS[kind](a_query(("x", value)))


@pytest.mark.parametrize("pairs", [[], [("user", "")]])
def test_what_is_required_and_absent_is_refused_by_name(pairs: list[tuple[str, str]]) -> None:
    with pytest.raises(MissingParameter, match="user is required"):
        a_query(*pairs).wallet("user")


def test_unknown_names_are_ignored() -> None:
    a_query(("foo", "1")).check_known()


def test_unknown_names_are_refused_when_the_client_is_strict() -> None:
    query = a_query(("strict", "true"), ("limit", "1"), ("mirror", "1"), ("foo", "1"))
    query.integer("limit", 0, 0, 9)
    query.skip("mirror")
    with pytest.raises(UnknownParameter, match="foo"):
        query.check_known()


def test_known_names_pass_a_strict_client() -> None:
    query = a_query(("strict", "true"), ("limit", "1"), ("mirror", "1"))
    query.integer("limit", 0, 0, 9)
    query.skip("mirror")
    query.check_known()


@given(st.sampled_from(sorted(READS)), st.text(min_size=1, max_size=40))
def test_no_text_is_anything_but_read_or_refused(kind: str, value: str) -> None:
    refused: list[ForetellError] = []
    try:
        READS[kind](a_query(("x", value)))
    except MalformedQuery as error:
        refused.append(error)
    assert all(error.details == {"field": "x"} for error in refused)
