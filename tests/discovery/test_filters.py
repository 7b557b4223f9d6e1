from typing import Any

import pytest
from tests.rigs.values import a_word, an_address

from foretell.discovery.filters import read_event_filter, read_market_filter
from foretell.domain.errors.http import MalformedQuery
from foretell.edge.query import Query
from foretell.store.queries.catalog_filters import EventFilter, MarketFilter
from foretell.store.queries.sorted_pages import SortField

VOLUME = SortField.VOLUME


def a_query(**parameters: str) -> Query:
    return Query(list(parameters.items()))


def test_without_parameters_the_filter_lets_every_event_pass() -> None:
    ends = {SortField.CREATED: (None, None), SortField.ENDS: (None, None)}
    amounts = {SortField.LIQUIDITY: (None, None), SortField.VOLUME: (None, None)}
    assert read_event_filter(a_query()) == EventFilter(
        event_slugs=[],
        tag_ids=[],
        tag_slugs=[],
        excluded_tag_ids=[],
        series_ids=[],
        series_slugs=[],
        ranges=ends | amounts,
    )


@pytest.mark.parametrize(
    "parameters",
    [
        {"active": "false"},
        {"archived": "true"},
        {"featured": "true"},
        {"cyom": "true"},
        {"recurrence": "daily"},
        {"creator": "somebody"},
    ],
)
def test_no_event_passes_a_filter_for_a_feature_that_is_absent(parameters: dict[str, str]) -> None:
    assert read_event_filter(a_query(**parameters)) is None


@pytest.mark.parametrize(
    "parameters",
    [
        {"active": "false"},
        {"market_maker_address": an_address("amm")},
        {"rewards_min_size": "1"},
        {"uma_resolution_status": "settled"},
        {"uma_resolution_status": "disputed", "closed": "true"},
        {"uma_resolution_status": "resolved", "closed": "false"},
    ],
)
def test_no_market_passes_a_filter_for_a_feature_that_is_absent(parameters: dict[str, str]) -> None:
    assert read_market_filter(a_query(**parameters)) is None


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
        ({"series_id": "3,4"}, "series_ids", [3, 4]),
        ({"series_slug": "nba"}, "series_slugs", ["nba"]),
        ({"creator": an_address("bob").upper().replace("0X", "0x")}, "creator", an_address("bob")),
    ],
)
def test_events_are_filtered_by(parameters: dict[str, str], field: str, value: Any) -> None:
    assert getattr(read_event_filter(a_query(**parameters)), field) == value


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
        ({"game_id": "2052711"}, "game_ids", ["2052711"]),
        ({"sports_market_types": "moneyline,totals"}, "market_types", ["moneyline", "totals"]),
        ({"rewards_min_size": "0"}, "is_closed", None),
        ({"uma_resolution_status": "resolved"}, "is_closed", True),
        ({"uma_resolution_status": "proposed"}, "is_closed", False),
        ({"uma_resolution_status": "disputed"}, "answer_step", "disputed"),
        ({"uma_resolution_status": "resolved", "closed": "true"}, "is_closed", True),
    ],
)
def test_markets_are_filtered_by(parameters: dict[str, str], field: str, value: Any) -> None:
    chosen = read_market_filter(a_query(**parameters))
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
def test_events_are_filtered_by_ranges(
    parameters: dict[str, str], field: SortField, least_and_most: tuple[int | None, int | None]
) -> None:
    chosen = read_event_filter(a_query(**parameters))
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
def test_malformed_values_are_refused(parameters: dict[str, str]) -> None:
    with pytest.raises(MalformedQuery):
        read_market_filter(a_query(**parameters))
