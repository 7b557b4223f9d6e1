"""Pages of lists: the sort order, limit and offset, and the cursor of the next page."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.edge.parameters import (
    ID_MAX,
    Parameter,
    boolean,
    clamped_integer,
    entries,
    integer,
    text,
)
from foretell.edge.query import Query
from foretell.store.queries.sorted_pages import Cursor, ListPage, SortField, SortValue

PAGE_MAX: Final = 500
SORT_FIELDS_MAX: Final = 5
CURSOR_CHARS_MAX: Final = 2048
EVENTS: Final = "events"
MARKETS: Final = "markets"
"""Names of lists with cursors: a cursor has the name of its list."""

SortOrder = Parameter[tuple[SortField, ...]]

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

SERIES_SORTS: Final[Mapping[str, SortField]] = MappingProxyType(
    {
        "id": SortField.ID,
        "slug": SortField.SLUG,
        "ticker": SortField.SLUG,
        "title": SortField.TITLE,
        "createdat": SortField.CREATED,
        "updatedat": SortField.UPDATED,
    }
)


def find_sort(name: str, sorts: Mapping[str, SortField]) -> SortField:
    """Return the sort field of a name in camel or snake case, or refuse an unknown one."""
    field = sorts.get(name.replace("_", "").lower())
    if field is None:
        raise UnknownSortField(", ".join(sorts))
    return field


def _sort_order(sorts: Mapping[str, SortField]) -> SortOrder:
    def find(names: Sequence[str]) -> tuple[SortField, ...]:
        return tuple(dict.fromkeys(find_sort(name.strip(), sorts) for name in names))

    about = f"at most {SORT_FIELDS_MAX} of {', '.join(sorts)}"
    return entries("order", about, entries_max=SORT_FIELDS_MAX).convert(find)


LIMIT: Final = clamped_integer(
    "limit", 20, 0, PAGE_MAX, f"rows of a page; a larger number counts as {PAGE_MAX}"
)
OFFSET: Final = integer("offset", 0, 0, 10**9, "rows before the page")
UNUSED_OFFSET: Final = OFFSET.hidden()
"""The offset of a list with cursors: it is checked and changes nothing."""
ASCENDING: Final = boolean("ascending", "least first", default=False)
CURSOR: Final = text("after_cursor", "next_cursor of the page before", chars_max=CURSOR_CHARS_MAX)
EVENT_ORDER: Final = _sort_order(EVENT_SORTS)
MARKET_ORDER: Final = _sort_order(MARKET_SORTS)
TAG_ORDER: Final = _sort_order(TAG_SORTS)
SERIES_ORDER: Final = _sort_order(SERIES_SORTS)


def read_page(query: Query, order: SortOrder) -> ListPage:
    """Return the part of a list to show and its order, by default the newest rows first."""
    return ListPage(
        limit=query.read(LIMIT),
        offset=query.read(OFFSET),
        fields=query.read(order),
        is_ascending=query.read(ASCENDING),
    )


def read_keyset_page(query: Query, name: str, order: SortOrder) -> ListPage:
    """Return the part of the list of this name after a cursor, and one more row if the list continues."""
    limit = query.read(LIMIT)
    query.read(UNUSED_OFFSET)
    page = ListPage(limit=limit + 1, fields=query.read(order), is_ascending=query.read(ASCENDING))
    cursor = query.read(CURSOR)
    return page if cursor is None else page._replace(after=parse_cursor(cursor, name, page))


def encode_cursor(cursor: Cursor, name: str, page: ListPage) -> str:
    """Return a cursor as a text for clients; it is valid for the list of this name in the same order only."""
    fields = [field.name for field in page.fields]
    raw = msgspec.json.encode([name, fields, page.is_ascending, cursor.values, cursor.row_id])
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def parse_cursor(text: str, name: str, page: ListPage) -> Cursor:
    """Return the row after which a client's cursor continues this list, or refuse."""
    kind = tuple[str, list[str], bool, tuple[SortValue, ...], int]
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        list_name, fields, is_ascending, values, row_id = msgspec.json.decode(raw, type=kind)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise MalformedQuery("after_cursor", "a next_cursor of this list") from error
    if list_name != name:
        raise MalformedQuery("after_cursor", f"a next_cursor of the list of {name}")
    is_same = fields == [field.name for field in page.fields] and is_ascending == page.is_ascending
    if not is_same or len(values) != len(fields) or abs(row_id) > ID_MAX:
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
