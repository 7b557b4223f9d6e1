"""How a list is asked for: its filters, its order, its page, and the cursor after which it goes on.

Where a filter asks for something that nothing here has, such as a series, no row passes it: that is
told apart from a filter that lets everything through.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec

from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.values.hexadecimal import Bytes32, parse_address, parse_bytes32
from foretell.domain.values.tokens import is_token_id
from foretell.edge.query import ID_MAX, Query
from foretell.store.index.oracle_answers import AnswerStep
from foretell.store.queries.catalog_filters import (
    Cursor,
    EventFilter,
    ListPage,
    MarketFilter,
    SortField,
    SortValue,
)

PAGE_DEFAULT: Final = 20
PAGE_MAX: Final = 500
OFFSET_MAX: Final = 10**9
SORT_FIELDS_MAX: Final = 5
CURSOR_CHARS_MAX: Final = 2048
RESOLVED: Final = "resolved"

Parsed = TypeVar("Parsed")

_SHARED_SORTS: Final = {
    "id": SortField.ID,
    "slug": SortField.SLUG,
    "title": SortField.TITLE,
    "question": SortField.TITLE,
    "startdate": SortField.CREATED,
    "creationdate": SortField.CREATED,
    "createdat": SortField.CREATED,
    "updatedat": SortField.UPDATED,
    "enddate": SortField.ENDS,
    "closedtime": SortField.CLOSED,
    "volume": SortField.VOLUME,
    "volumenum": SortField.VOLUME,
    "volumeclob": SortField.VOLUME,
    "volume24hr": SortField.VOLUME_DAY,
    "volume1wk": SortField.VOLUME_WEEK,
    "volume1mo": SortField.VOLUME_MONTH,
    "volume1yr": SortField.VOLUME_YEAR,
    "liquidity": SortField.LIQUIDITY,
    "liquiditynum": SortField.LIQUIDITY,
    "liquidityclob": SortField.LIQUIDITY,
    "competitive": SortField.COMPETITIVE,
    "featuredorder": SortField.FEATURED,
}
EVENT_SORTS: Final[Mapping[str, SortField]] = MappingProxyType(_SHARED_SORTS)
MARKET_SORTS: Final[Mapping[str, SortField]] = MappingProxyType(
    {
        **_SHARED_SORTS,
        "bestbid": SortField.BEST_BID,
        "lasttradeprice": SortField.LAST_PRICE,
    }
)
TAG_SORTS: Final[Mapping[str, SortField]] = MappingProxyType(
    {
        "id": SortField.ID,
        "slug": SortField.SLUG,
        "label": SortField.TITLE,
        "createdat": SortField.CREATED,
        "publishedat": SortField.CREATED,
        "updatedat": SortField.UPDATED,
    }
)


def event_filter(query: Query) -> EventFilter | None:
    """Return which events are asked for, or None when none can be."""
    fields = _shared_fields(query)
    excluded = query.ids("exclude_tag_id")
    series = [query.text("recurrence"), query.text("series_slug"), query.text("series_id")]
    event_ids, slugs = query.ids("id"), query.entries("slug")
    amounts = {
        SortField.LIQUIDITY: (query.units("liquidity_min"), query.units("liquidity_max")),
        SortField.VOLUME: (query.units("volume_min"), query.units("volume_max")),
    }
    query.skip("include_chat", "include_template", "include_children")
    if fields is None or any(series):
        return None
    fields["ranges"] |= amounts
    return EventFilter(
        **fields, event_ids=event_ids or None, event_slugs=slugs, excluded_tag_ids=excluded
    )


def market_filter(query: Query) -> MarketFilter | None:
    """Return which markets are asked for, or None when none can be."""
    fields = _shared_fields(query)
    named: dict[str, Any] = {
        "market_ids": query.ids("id"),
        "slugs": query.entries("slug"),
        "condition_ids": query.conditions("condition_ids", "conditionId", "condition_id"),
        "question_ids": _words(query, "question_ids"),
        "token_ids": _token_ids(query),
        "event_ids": query.ids("event_id", "eventId") or None,
        "event_slugs": query.entries("event_slug", "eventSlug"),
    }
    amounts = {
        SortField.LIQUIDITY: (query.units("liquidity_num_min"), query.units("liquidity_num_max")),
        SortField.VOLUME: (query.units("volume_num_min"), query.units("volume_num_max")),
    }
    absent = [
        query.entries("market_maker_address"),
        query.text("game_id"),
        query.entries("sports_market_types"),
        query.units("rewards_min_size"),
    ]
    status = query.text("uma_resolution_status")
    query.skip("include_tag")
    if fields is None or any(absent) or status not in {None, RESOLVED, *AnswerStep}:
        return None
    if status is not None:
        if fields["is_closed"] is (status != RESOLVED):
            return None
        fields["is_closed"] = status == RESOLVED
        named["answer_step"] = None if status == RESOLVED else status
    fields["ranges"] |= amounts
    return MarketFilter(**fields, **named)


def list_page(query: Query, sorts: Mapping[str, SortField]) -> ListPage:
    """Return which part of the list is asked for, in which order: the newest first if none is said."""
    return ListPage(
        limit=page_limit(query),
        offset=query.integer("offset", 0, 0, OFFSET_MAX),
        fields=_sort_fields(query, sorts),
        is_ascending=query.boolean("ascending", default=False),
    )


def page_limit(query: Query, name: str = "limit", default: int = PAGE_DEFAULT) -> int:
    """Return how many rows are asked for, at most what a page holds."""
    return min(query.integer(name, default, 0, ID_MAX), PAGE_MAX)


def keyset_page(query: Query, sorts: Mapping[str, SortField]) -> ListPage:
    """Return the part of the list after the cursor, one row longer so that its end is seen."""
    page = list_page(query, sorts)
    cursor = query.text("after_cursor", chars_max=CURSOR_CHARS_MAX)
    after = None if cursor is None else parse_cursor(cursor, page)
    return page._replace(limit=page.limit + 1, offset=0, after=after)


def encode_cursor(cursor: Cursor, page: ListPage) -> str:
    """Return the cursor as clients hold it, bound to the order of its list."""
    names = [field.name for field in page.fields]
    raw = msgspec.json.encode([names, page.is_ascending, cursor.values, cursor.row_id])
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def parse_cursor(text: str, page: ListPage) -> Cursor:
    """Return the place that a client's cursor means in this very list, or refuse."""
    kind = tuple[list[str], bool, tuple[SortValue, ...], int]
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        names, is_ascending, values, row_id = msgspec.json.decode(raw, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise MalformedQuery("after_cursor", "a next_cursor of this list") from error
    is_same = names == [field.name for field in page.fields] and is_ascending == page.is_ascending
    if not is_same or len(values) != len(names) or abs(row_id) > ID_MAX:
        raise MalformedQuery("after_cursor", "a next_cursor of this list in this order")
    if not all(map(_is_value_of, page.fields, values)):
        raise MalformedQuery("after_cursor", "a next_cursor of this list")
    return Cursor(values, row_id)


def _is_value_of(field: SortField, value: SortValue) -> bool:
    if value is None:
        return True
    if isinstance(value, str):
        return field.is_text and "\0" not in value
    return not field.is_text and abs(value) <= ID_MAX


def _shared_fields(query: Query) -> dict[str, Any] | None:
    """Return the filters of events and markets alike, or None when nothing can pass them."""
    never = [query.optional_boolean(name) for name in ("archived", "featured", "cyom")]
    is_active = query.optional_boolean("active")
    creator_name, creator = query.text("creator"), None
    fields = {
        "tag_ids": query.ids("tag_id"),
        "tag_slugs": query.entries("tag_slug", "tag"),
        "is_closed": query.optional_boolean("closed"),
        "ranges": {
            SortField.CREATED: (
                query.instant_ms("start_date_min"),
                query.instant_ms("start_date_max"),
            ),
            SortField.ENDS: (query.instant_ms("end_date_min"), query.instant_ms("end_date_max")),
        },
    }
    query.skip("related_tags", "mirror", "locale")
    if creator_name is not None:
        creator = _or_none(parse_address, creator_name)
    is_unknown_creator = creator_name is not None and creator is None
    if any(never) or is_active is False or is_unknown_creator:
        return None
    return fields | {"creator": creator}


def _or_none(parse: Callable[[str], Parsed], text: str) -> Parsed | None:
    try:
        return parse(text)
    except MalformedHex:
        return None


def _words(query: Query, name: str) -> list[Bytes32]:
    try:
        return [parse_bytes32(entry, name) for entry in query.entries(name)]
    except MalformedHex as error:
        raise MalformedQuery(name, "a list of 0x and 64 hex digits") from error


def _token_ids(query: Query) -> list[AssetId]:
    entries = query.entries("clob_token_ids")
    if not all(map(is_token_id, entries)):
        raise MalformedQuery("clob_token_ids", "a list of decimal integers")
    return [AssetId(entry) for entry in entries]


def _sort_fields(query: Query, sorts: Mapping[str, SortField]) -> tuple[SortField, ...]:
    names = query.entries("order", entries_max=SORT_FIELDS_MAX)
    fields = [sorts.get(name.strip().replace("_", "").lower()) for name in names]
    if None in fields:
        raise UnknownSortField(", ".join(sorts))
    return tuple(field for field in dict.fromkeys(fields) if field is not None)
