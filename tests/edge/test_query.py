from urllib.parse import urlencode

import pytest
from litestar.testing import RequestFactory

from foretell.domain.errors.http import MalformedQuery, UnknownParameter
from foretell.edge.parameters import conditions, entries, ignored, integer, text
from foretell.edge.query import PARAMETERS_MAX, Query

WORD = "0x" + "ab" * 32
LIMIT = integer("limit", 0, 0, 9)
MIRROR = ignored("mirror", "locale")


def a_query(*pairs: tuple[str, str]) -> Query:
    return Query(pairs)


def test_a_query_is_read_from_the_request() -> None:
    query = "a=1&list=x,y&list=z&empty=&sp=a+b%2Bc"
    request = RequestFactory().get(f"/?{query}")
    request.scope["query_string"] = query.encode()
    read = Query.of(request)
    assert read.read(integer("a", 0, 0, 9)) == 1
    assert read.read(entries("list", "")) == ["x", "y", "z"]
    assert read.read(text("empty", "")) is None
    assert read.read(text("sp", "")) == "a b+c"


def test_more_parameters_than_the_limit_are_refused() -> None:
    request = RequestFactory().get("/")
    request.scope["query_string"] = urlencode([("a", "1")] * (PARAMETERS_MAX + 1)).encode()
    with pytest.raises(MalformedQuery):
        Query.of(request)


def test_the_first_value_counts_under_any_spelling() -> None:
    query = a_query(("condition_id", "one"), ("condition_id", "two"), ("plain", "three"))
    assert query.read(text("conditionId", "", "condition_id")) == "one"
    assert query.read(text("plain", "")) == "three"


def test_a_refusal_names_the_first_spelling() -> None:
    query = a_query(("condition_id", "0x12"))
    with pytest.raises(MalformedQuery, match="conditionId must be condition ids"):
        query.read(conditions("conditionId", "", "condition_id"))


@pytest.mark.parametrize(
    "pairs",
    [
        [("market", f"{WORD},{WORD}")],
        [("market", WORD), ("market", WORD)],
        [("market[]", WORD), ("market", WORD)],
    ],
)
def test_a_list_may_be_comma_separated_repeated_or_bracketed(pairs: list[tuple[str, str]]) -> None:
    assert a_query(*pairs).read(conditions("market", "")) == [WORD, WORD]


def test_unknown_names_are_ignored() -> None:
    a_query(("foo", "1")).check_known()


def test_unknown_names_are_refused_when_the_client_is_strict() -> None:
    query = a_query(("strict", "true"), ("limit", "1"), ("mirror", "1"), ("foo", "1"))
    query.read(LIMIT)
    query.read(MIRROR)
    with pytest.raises(UnknownParameter, match="foo"):
        query.check_known()


def test_known_names_pass_a_strict_client() -> None:
    query = a_query(("strict", "true"), ("limit", "1"), ("mirror", "1"), ("locale", "en"))
    query.read(LIMIT)
    query.read(MIRROR)
    query.check_known()


def test_a_malformed_strict_is_refused() -> None:
    with pytest.raises(MalformedQuery, match="strict must be true or false"):
        a_query(("strict", "maybe")).check_known()
