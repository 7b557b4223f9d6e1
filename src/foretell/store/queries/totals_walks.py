"""Pages of markets and events along the indexes of their totals, so that a page costs a page."""

import enum
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import sqlalchemy as sa

from foretell.store.queries.sorted_pages import (
    NULLABLE,
    Clause,
    Key,
    ListPage,
    SortField,
    page_query,
    split_page_query,
)

KEPT: Final = MappingProxyType(
    {
        SortField.VOLUME: "volume_units",
        SortField.VOLUME_DAY: "day_units",
        SortField.VOLUME_WEEK: "week_units",
        SortField.VOLUME_MONTH: "month_units",
        SortField.VOLUME_YEAR: "year_units",
        SortField.LIQUIDITY: "liquidity_units",
        SortField.COMPETITIVE: "evenness",
    }
)
"""Sort keys that the indexer computes, by the columns of their totals."""
REPEATED: Final = MappingProxyType(
    {
        SortField.SLUG: "slug",
        SortField.TITLE: "title",
        SortField.BEST_BID: "best_bid",
        SortField.LAST_PRICE: "last_price",
    }
)
"""Sort keys of other tables that are repeated in totals, so that they have an index there."""
INDEXED: Final = frozenset({*KEPT, *REPEATED, SortField.ID, SortField.CREATED, SortField.UPDATED})
"""Sort keys by which a page of all rows is found along an index."""
PRICED: Final = frozenset({SortField.BEST_BID, SortField.LAST_PRICE})
"""Repeated sort keys that some rows have no value of."""


class Walk(enum.Enum):
    """The rows of an index of kept totals along which a page is found."""

    ALL = enum.auto()
    OPEN = enum.auto()
    CLOSED = enum.auto()


def walk_of(fields: Sequence[SortField], *, is_closed: bool | None) -> Walk | None:
    """Return the walk along an index of totals that finds a page, or None if it is found otherwise.

    Rows that have no totals yet, because they were opened some seconds ago, are not on the way.
    """
    if len(fields) != 1:
        return None
    [field] = fields
    if field in KEPT or field in REPEATED:
        return Walk.OPEN if is_closed is False else Walk.ALL
    if field is SortField.ENDS and is_closed is False:
        return Walk.OPEN
    return Walk.CLOSED if field is SortField.CLOSED and is_closed else None


def walked(walk: Walk | None, totals: sa.Table) -> list[Clause]:
    """Return the condition of the index that a walk is along; a row's closing is filtered apart, as it is now."""
    is_open = totals.c.closed_at_s.is_(None)
    if walk is Walk.OPEN:
        return [is_open]
    return [~is_open] if walk is Walk.CLOSED else []


def kept_keys(totals: sa.Table, walk: Walk | None) -> dict[SortField, Key]:
    """Return the keys of kept totals; where rows may have none, they count as zero."""
    columns = {field: totals.c[name] for field, name in KEPT.items()}
    if walk is None:
        return {field: sa.func.coalesce(column, 0) for field, column in columns.items()}
    times = {SortField.ENDS: totals.c.ends_at_ms, SortField.CLOSED: totals.c.closed_at_s}
    repeated = {field: totals.c[name] for field, name in REPEATED.items() if name in totals.c}
    return {**columns, **times, **repeated, SortField.ID: next(iter(totals.primary_key))}


def walked_page(
    query: sa.Select[Any], keys: Mapping[SortField, Key], page: ListPage, walk: Walk | None
) -> sa.Select[Any]:
    """Return the query of a page along an index, or without a walk of one that is sorted."""
    if walk is None:
        return page_query(query, keys, page, NULLABLE)
    if page.fields[0] in PRICED:
        return split_page_query(query, keys, page)
    return page_query(query, keys, page, ())
