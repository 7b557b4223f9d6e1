from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_word, an_address

from foretell.discovery.lists import (
    EVENT_SORTS,
    MARKET_SORTS,
    PAGE_MAX,
    TAG_SORTS,
    encode_cursor,
    event_filter,
    keyset_page,
    list_page,
    market_filter,
    parse_cursor,
)
from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.edge.query import ID_MAX, Query
from foretell.store.queries.catalog_filters import (
    Cursor,
    EventFilter,
    ListPage,
    MarketFilter,
    SortField,
)

ID, VOLUME, TITLE = SortField.ID, SortField.VOLUME, SortField.TITLE


def a_query(**parameters: str) -> Query:
    return Query(list(parameters.items()))


def test_without_parameters_a_list_holds_the_newest_twenty_of_all() -> None:
    assert list_page(a_query(), EVENT_SORTS) == ListPage(limit=20)
    ends = {SortField.CREATED: (None, None), SortField.ENDS: (None, None)}
    amounts = {SortField.LIQUIDITY: (None, None), SortField.VOLUME: (None, None)}
    assert event_filter(a_query()) == EventFilter(
        event_slugs=[], tag_ids=[], tag_slugs=[], excluded_tag_ids=[], ranges=ends | amounts
    )


def test_a_longer_page_than_the_longest_is_cut() -> None:
    assert list_page(a_query(limit="1000"), EVENT_SORTS).limit == PAGE_MAX
    assert list_page(a_query(limit="0", offset="7"), EVENT_SORTS) == ListPage(0, 7)


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
def test_fields_are_known_in_both_spellings_and_each_counts_once(
    order: str, fields: tuple[SortField, ...]
) -> None:
    assert list_page(a_query(order=order), EVENT_SORTS).fields == fields


@pytest.mark.parametrize(
    ("order", "sorts"),
    [
        ("luck", EVENT_SORTS),
        ("id,luck", MARKET_SORTS),
        ("bestBid", EVENT_SORTS),
        ("volume", TAG_SORTS),
    ],
)
def test_what_a_list_is_not_sorted_by_is_refused(order: str, sorts: dict[str, SortField]) -> None:
    with pytest.raises(UnknownSortField):
        list_page(a_query(order=order), sorts)


def test_too_many_fields_are_refused() -> None:
    with pytest.raises(MalformedQuery):
        list_page(a_query(order="id,slug,title,volume,liquidity,competitive"), EVENT_SORTS)


@pytest.mark.parametrize(
    "parameters",
    [
        {"active": "false"},
        {"archived": "true"},
        {"featured": "true"},
        {"cyom": "true"},
        {"recurrence": "daily"},
        {"series_slug": "nba"},
        {"series_id": "3"},
        {"creator": "somebody"},
    ],
)
def test_no_event_is_what_this_installation_has_not(parameters: dict[str, str]) -> None:
    assert event_filter(a_query(**parameters)) is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"active": "false"},
        {"market_maker_address": an_address("amm")},
        {"game_id": "1"},
        {"sports_market_types": "moneyline"},
        {"rewards_min_size": "1"},
        {"uma_resolution_status": "settled"},
        {"uma_resolution_status": "disputed", "closed": "true"},
        {"uma_resolution_status": "resolved", "closed": "false"},
    ],
)
def test_no_market_is_what_this_installation_has_not(parameters: dict[str, str]) -> None:
    assert market_filter(a_query(**parameters)) is None


@pytest.mark.parametrize(
    ("parameters", "field", "value"),
    [
        ({"active": "true"}, "is_closed", None),
        ({"archived": "false"}, "is_closed", None),
        ({"closed": "true"}, "is_closed", True),
        ({"closed": "false"}, "is_closed", False),
        ({"id": "1,2"}, "event_ids", [1, 2]),
        ({"slug": "a,b"}, "event_slugs", ["a", "b"]),
        ({"tag": "world"}, "tag_slugs", ["world"]),
        ({"tag_slug": "world", "related_tags": "true"}, "tag_slugs", ["world"]),
        ({"tag_id": "3"}, "tag_ids", [3]),
        ({"exclude_tag_id": "3,4"}, "excluded_tag_ids", [3, 4]),
        ({"creator": an_address("bob").upper().replace("0X", "0x")}, "creator", an_address("bob")),
    ],
)
def test_events_are_chosen_by(parameters: dict[str, str], field: str, value: Any) -> None:
    assert getattr(event_filter(a_query(**parameters)), field) == value


@pytest.mark.parametrize(
    ("parameters", "field", "value"),
    [
        ({"id": "1,2"}, "market_ids", [1, 2]),
        ({"slug": "a"}, "slugs", ["a"]),
        ({"condition_ids": a_word("x")}, "condition_ids", [a_word("x")]),
        ({"conditionId": a_word("x")}, "condition_ids", [a_word("x")]),
        ({"condition_id": a_word("x")}, "condition_ids", [a_word("x")]),
        ({"question_ids": a_word("x")}, "question_ids", [a_word("x")]),
        ({"clob_token_ids": "12,13"}, "token_ids", ["12", "13"]),
        ({"event_id": "4"}, "event_ids", [4]),
        ({"eventSlug": "e"}, "event_slugs", ["e"]),
        ({"rewards_min_size": "0"}, "is_closed", None),
        ({"uma_resolution_status": "resolved"}, "is_closed", True),
        ({"uma_resolution_status": "proposed"}, "is_closed", False),
        ({"uma_resolution_status": "disputed"}, "answer_step", "disputed"),
        ({"uma_resolution_status": "resolved", "closed": "true"}, "is_closed", True),
    ],
)
def test_markets_are_chosen_by(parameters: dict[str, str], field: str, value: Any) -> None:
    chosen = market_filter(a_query(**parameters))
    assert isinstance(chosen, MarketFilter)
    assert getattr(chosen, field) == value


@pytest.mark.parametrize(
    ("parameters", "field", "least_and_most"),
    [
        ({"volume_min": "1.5", "volume_max": "2"}, VOLUME, (1_500_000, 2_000_000)),
        ({"liquidity_min": "1"}, SortField.LIQUIDITY, (1_000_000, None)),
        ({"start_date_max": "1970-01-01T00:00:01Z"}, SortField.CREATED, (None, 1000)),
        ({"end_date_min": "1970-01-02"}, SortField.ENDS, (86_400_000, None)),
    ],
)
def test_events_are_chosen_by_ranges(
    parameters: dict[str, str], field: SortField, least_and_most: tuple[int | None, int | None]
) -> None:
    chosen = event_filter(a_query(**parameters))
    assert chosen is not None
    assert chosen.ranges is not None
    assert chosen.ranges[field] == least_and_most


@pytest.mark.parametrize(
    "parameters",
    [
        {"id": "x"},
        {"closed": "x"},
        {"volume_num_min": "x"},
        {"end_date_min": "x"},
        {"condition_ids": "0x1"},
        {"question_ids": "0x1"},
        {"clob_token_ids": "0x1"},
        {"tag_id": "x"},
    ],
)
def test_values_that_do_not_parse_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(MalformedQuery):
        market_filter(a_query(**parameters))


def test_a_page_after_a_cursor_is_a_row_longer_and_has_no_offset() -> None:
    page = ListPage(3, fields=(VOLUME,))
    text = encode_cursor(Cursor((5,), 7), page)
    query = a_query(limit="3", offset="9", order="volume", after_cursor=text)
    assert keyset_page(query, EVENT_SORTS) == ListPage(4, fields=(VOLUME,), after=Cursor((5,), 7))


values = st.none() | st.integers(-ID_MAX, ID_MAX) | st.floats(-1e9, 1e9)


@given(
    values=st.tuples(values, st.none() | st.text(st.characters(codec="utf-8", min_codepoint=1))),
    row_id=st.integers(1, ID_MAX),
    is_ascending=st.booleans(),
)
def test_a_cursor_means_the_same_row_when_it_comes_back(
    *, values: tuple[Any, Any], row_id: int, is_ascending: bool
) -> None:
    page = ListPage(1, fields=(VOLUME, TITLE), is_ascending=is_ascending)
    cursor = Cursor(values, row_id)
    assert parse_cursor(encode_cursor(cursor, page), page) == cursor


PAGE = ListPage(1, fields=(VOLUME,))


@pytest.mark.parametrize(
    "text",
    [
        "!",
        "bm9uc2Vuc2U",
        encode_cursor(Cursor((5,), 7), PAGE)[:-3],
        encode_cursor(Cursor((5,), 7), PAGE._replace(is_ascending=True)),
        encode_cursor(Cursor((5,), 7), PAGE._replace(fields=(ID,))),
        encode_cursor(Cursor((5, 6), 7), PAGE),
        encode_cursor(Cursor(("five",), 7), PAGE),
        encode_cursor(Cursor((2**63,), 7), PAGE),
        encode_cursor(Cursor((5,), 2**63), PAGE),
        encode_cursor(Cursor((1e300,), 7), PAGE),
    ],
    ids=["text", "json", "cut", "way", "order", "long", "type", "huge", "row", "float"],
)
def test_a_cursor_of_another_list_is_refused(text: str) -> None:
    with pytest.raises(MalformedQuery, match="after_cursor must be a next_cursor"):
        parse_cursor(text, PAGE)


@pytest.mark.parametrize("value", [5, "a\0b"])
def test_a_cursor_of_a_text_holds_a_text_that_a_database_takes(value: str | int) -> None:
    page = ListPage(1, fields=(TITLE,))
    with pytest.raises(MalformedQuery):
        parse_cursor(encode_cursor(Cursor((value,), 7), page), page)


@given(st.text(max_size=60))
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    with pytest.raises(MalformedQuery):
        parse_cursor(text, PAGE)
