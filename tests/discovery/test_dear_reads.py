from typing import Final

import pytest

from foretell.discovery.dear_reads import DEAR_READS
from foretell.discovery.routes import ROUTES
from foretell.edge.documents.description import description_of

LISTS: Final = ("/events", "/events/keyset", "/events/pagination", "/markets", "/markets/keyset")
ALONG_AN_INDEX: Final = {
    *("id", "slug", "condition_ids", "conditionId", "condition_id", "clob_token_ids"),
    *("event_id", "eventId", "event_slug", "eventSlug", "game_id"),
}
READING_NO_ROW: Final = {
    *("active", "archived", "featured", "cyom", "recurrence", "market_maker_address"),
    *("rewards_min_size", "include_tag", "include_chat", "include_template", "include_children"),
    *("related_tags", "mirror", "locale", "strict"),
}
OF_PAGES: Final = {"limit", "offset", "after_cursor", "ascending", "order", "closed"}
WALKING: Final = {
    *("tag_id", "tag_slug", "tag", "exclude_tag_id", "creator", "series_id", "series_slug"),
    *("start_date_min", "start_date_max", "end_date_min", "end_date_max", "question_ids"),
    *("liquidity_min", "liquidity_max", "volume_min", "volume_max", "uma_resolution_status"),
    *("liquidity_num_min", "liquidity_num_max", "volume_num_min", "volume_num_max"),
    "sports_market_types",
}


def names_of(path: str) -> set[str]:
    """Return all spellings of the parameters that a route declares."""
    [handler] = [each for each in ROUTES if path in each.paths]
    return {name for each in description_of(handler).parameters for name in each.names}


@pytest.mark.parametrize(
    "query",
    [
        "order=title",
        "order=slug&ascending=true&closed=false",
        "order=bestBid&limit=20&offset=1000",
        "order=lastTradePrice&after_cursor=abc",
        "order=volume_24hr&active=true",
        "order[]=liquidity",
    ],
)
def test_an_order_along_an_index_is_cheap(query: str) -> None:
    assert not DEAR_READS["/markets"].is_dear(query.encode())


@pytest.mark.parametrize(
    "query",
    [
        "order=endDate",
        "order=title,volume",
        "order=title&order=volume",
        "order[]=title&order=volume",
        "order=title&tag_id=3",
        "order=title&limit=21",
        "order=title&offset=1001",
        "order=nothing",
    ],
)
def test_any_other_order_is_dear(query: str) -> None:
    assert DEAR_READS["/markets"].is_dear(query.encode())


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_dear_by_each_filter_that_may_read_all_rows_and_by_no_other(path: str) -> None:
    names = names_of(path)
    assert names <= ALONG_AN_INDEX | READING_NO_ROW | OF_PAGES | WALKING
    rule = DEAR_READS[path]
    dear = {name for name in names - {"order"} if rule.is_dear(f"limit=20&{name}=1".encode())}
    is_counted = path == "/events/pagination"
    assert dear == names & WALKING | ({"closed"} if is_counted else set())


@pytest.mark.parametrize(
    "query",
    [
        "volume_num_min=999999999",
        "creator=0x00000000000000000000000000000000000000aa",
        "tag_slug=none",
        "tag_id[]=3",
        "tag%5Fid=3",
        "id=1&volume_num_min=1",
        "limit=1&end_date_min=2030-01-01&order=id",
    ],
)
def test_a_filter_along_no_index_is_dear(query: str) -> None:
    assert DEAR_READS["/markets"].is_dear(query.encode())


@pytest.mark.parametrize(
    "query",
    [
        "",
        "limit=20&offset=20&active=true&closed=false&order=volume24hr&ascending=false",
        "condition_ids=0x12,0x13",
        "slug=rain&order=title&include_tag=true",
        "volume_num_min=",
        "volume_min=1&Creator=0x12",
        "order=volume24hr&utm_source=mail",
    ],
)
def test_a_filter_along_an_index_and_a_name_that_the_list_does_not_have_are_cheap(
    query: str,
) -> None:
    assert not DEAR_READS["/markets"].is_dear(query.encode())


@pytest.mark.parametrize(
    ("query", "is_dear"),
    [("league=nba&limit=100", False), ("name=Viking", True), ("abbreviation=VIK", True)],
)
def test_teams_are_found_by_their_league_alone(query: str, is_dear: bool) -> None:  # noqa: FBT001 - a case
    assert DEAR_READS["/teams"].is_dear(query.encode()) is is_dear
