from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.discovery.pages import (
    EVENT_ORDER,
    EVENTS,
    MARKET_ORDER,
    MARKETS,
    PAGE_MAX,
    TAG_ORDER,
    SortOrder,
    encode_cursor,
    parse_cursor,
    read_keyset_page,
    read_page,
)
from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.edge.parameters import ID_MAX
from foretell.edge.query import Query
from foretell.store.queries.sorted_pages import Cursor, ListPage, SortField

ID, VOLUME, TITLE = SortField.ID, SortField.VOLUME, SortField.TITLE


def a_query(**parameters: str) -> Query:
    return Query(list(parameters.items()))


def test_without_parameters_a_page_has_the_newest_twenty_rows() -> None:
    assert read_page(a_query(), EVENT_ORDER) == ListPage(limit=20)


def test_a_limit_beyond_the_maximum_counts_as_the_maximum() -> None:
    assert read_page(a_query(limit="1000"), EVENT_ORDER).limit == PAGE_MAX
    assert read_page(a_query(limit="0", offset="7"), EVENT_ORDER) == ListPage(0, 7)


@pytest.mark.parametrize(
    ("order", "fields"),
    [
        ("volume24hr", (SortField.VOLUME_DAY,)),
        ("volume_24hr", (SortField.VOLUME_DAY,)),
        ("startDate,end_date", (SortField.CREATED, SortField.ENDS)),
        ("CREATED_AT", (SortField.CREATED,)),
        ("id,id", (ID,)),
        ("createdAt,startDate", (SortField.CREATED,)),
    ],
)
def test_sort_fields_have_two_spellings_and_each_counts_once(
    order: str, fields: tuple[SortField, ...]
) -> None:
    assert read_page(a_query(order=order), EVENT_ORDER).fields == fields


@pytest.mark.parametrize(
    ("names", "order"),
    [
        ("luck", EVENT_ORDER),
        ("id,luck", MARKET_ORDER),
        ("bestBid", EVENT_ORDER),
        ("volume", TAG_ORDER),
    ],
)
def test_an_unknown_sort_field_is_refused(names: str, order: SortOrder) -> None:
    with pytest.raises(UnknownSortField):
        read_page(a_query(order=names), order)


def test_too_many_sort_fields_are_refused() -> None:
    with pytest.raises(MalformedQuery):
        read_page(a_query(order="id,slug,title,volume,liquidity,competitive"), EVENT_ORDER)


def test_a_page_after_a_cursor_is_a_row_longer_and_has_no_offset() -> None:
    page = ListPage(3, fields=(VOLUME,))
    text = encode_cursor(Cursor((5,), 7), EVENTS, page)
    query = a_query(limit="3", offset="9", order="volume", after_cursor=text)
    assert read_keyset_page(query, EVENTS, EVENT_ORDER) == ListPage(
        4, fields=(VOLUME,), after=Cursor((5,), 7)
    )


values = st.none() | st.integers(-ID_MAX, ID_MAX) | st.floats(-1e9, 1e9)


@given(
    values=st.tuples(values, st.none() | st.text(st.characters(codec="utf-8", min_codepoint=1))),
    row_id=st.integers(1, ID_MAX),
    is_ascending=st.booleans(),
)
def test_a_cursor_comes_back_as_the_same_row(
    *, values: tuple[Any, Any], row_id: int, is_ascending: bool
) -> None:
    page = ListPage(1, fields=(VOLUME, TITLE), is_ascending=is_ascending)
    cursor = Cursor(values, row_id)
    assert parse_cursor(encode_cursor(cursor, EVENTS, page), EVENTS, page) == cursor


PAGE = ListPage(1, fields=(VOLUME,))


@pytest.mark.parametrize(
    "text",
    [
        "!",
        "bm9uc2Vuc2U",
        encode_cursor(Cursor((5,), 7), EVENTS, PAGE)[:-3],
        encode_cursor(Cursor((5,), 7), MARKETS, PAGE),
        encode_cursor(Cursor((5,), 7), EVENTS, PAGE._replace(is_ascending=True)),
        encode_cursor(Cursor((5,), 7), EVENTS, PAGE._replace(fields=(ID,))),
        encode_cursor(Cursor((5, 6), 7), EVENTS, PAGE),
        encode_cursor(Cursor(("five",), 7), EVENTS, PAGE),
        encode_cursor(Cursor((2**63,), 7), EVENTS, PAGE),
        encode_cursor(Cursor((5,), 2**63), EVENTS, PAGE),
        encode_cursor(Cursor((1e300,), 7), EVENTS, PAGE),
    ],
    ids=["text", "json", "cut", "list", "way", "order", "long", "type", "huge", "row", "float"],
)
def test_a_cursor_of_another_list_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery, match="after_cursor must be a next_cursor"):
        parse_cursor(text, EVENTS, PAGE)


@pytest.mark.parametrize("value", [5, "a\0b"])
def test_a_cursor_of_a_text_field_holds_a_text_that_a_database_accepts(value: str | int) -> None:
    page = ListPage(1, fields=(TITLE,))
    with pytest.raises(MalformedQuery):
        parse_cursor(encode_cursor(Cursor((value,), 7), EVENTS, page), EVENTS, page)


@given(st.text(max_size=60))
def test_no_random_text_is_a_cursor(text: str) -> None:
    with pytest.raises(MalformedQuery):
        parse_cursor(text, EVENTS, PAGE)
