"""The public search: events and tags that hold every word of the question."""

from dataclasses import replace
from typing import Final

import msgspec
from msgspec import UNSET

from foretell.discovery.catalog import show_events
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.lists import EVENT_SORTS, RESOLVED, page_limit
from foretell.discovery.responses import Event, FoundTag, Pagination, SearchResult
from foretell.discovery.search_index import folded, holds, words_of
from foretell.domain.errors.http import UnknownSortField
from foretell.edge.query import Query
from foretell.store.database import Transaction
from foretell.store.queries.catalog import load_all_tags
from foretell.store.queries.catalog_filters import (
    EventFilter,
    ListPage,
    SortField,
    count_events,
    load_event_ids,
)

EVENTS_FOUND_MAX: Final = 1000
"""So many of the newest events that fit are ranked; what lies behind them is not looked at."""

TAGS_SEARCHED_MAX: Final = 5000
PER_TYPE_DEFAULT: Final = 25
PAGES_MAX: Final = 10_000
STATUSES: Final = ("active", RESOLVED)
RANKING: Final = (SortField.IS_OPEN, SortField.VOLUME_DAY)
"""Events that trade come first, then those that traded most in the last day."""


async def public_search(context: DiscoveryContext, query: Query) -> SearchResult:
    """Return the events and tags that a question finds, ranked."""
    words = words_of(query.required("q"))
    chosen, page = _event_filter(query), _page(query)
    has_tags = query.boolean("search_tags", default=True)
    has_profiles = query.boolean("search_profiles", default=False)
    has_closed_markets = query.boolean("keep_closed_markets", default=True)
    query.skip("cache", "optimized", "presets", "type", "locale", "mirror")
    query.check_known()
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        events, total = await _find_events(tx, context, (words, chosen, page), now_ms)
        tags = await _find_tags(tx, words, page.limit) if has_tags else []
    if not has_closed_markets:
        events = [_without_closed_markets(event) for event in events]
    return SearchResult(
        events=events,
        tags=tags,
        profiles=[] if has_profiles else UNSET,
        pagination=Pagination(has_more=page.offset + len(events) < total, total_results=total),
    )


def _event_filter(query: Query) -> EventFilter | None:
    """Return which events may be found, or None when none can be."""
    status = query.choice("events_status", "", STATUSES)
    tag_slugs, excluded_tag_ids = query.entries("events_tag"), query.ids("exclude_tag_id")
    if query.text("recurrence") is not None:
        return None
    return EventFilter(
        tag_slugs=tag_slugs,
        excluded_tag_ids=excluded_tag_ids,
        is_closed=None if not status else status == RESOLVED,
    )


def _page(query: Query) -> ListPage:
    limit = page_limit(query, "limit_per_type", PER_TYPE_DEFAULT)
    sort = query.text("sort")
    field = None if sort is None else EVENT_SORTS.get(sort.replace("_", "").lower())
    if sort is not None and field is None:
        raise UnknownSortField(", ".join(EVENT_SORTS))
    return ListPage(
        limit=limit,
        offset=(query.integer("page", 1, 1, PAGES_MAX) - 1) * limit,
        fields=RANKING if field is None else (field,),
        is_ascending=query.boolean("ascending", default=False),
    )


async def _find_events(
    tx: Transaction,
    context: DiscoveryContext,
    wanted: tuple[list[str], EventFilter | None, ListPage],
    now_ms: int,
) -> tuple[list[Event], int]:
    words, chosen, page = wanted
    if chosen is None or not words:
        return [], 0
    await context.search_index.refresh(tx)
    chosen = replace(chosen, event_ids=await context.search_index.find(words, EVENTS_FOUND_MAX))
    found = await load_event_ids(tx, chosen, page, now_ms)
    total = await count_events(tx, chosen, now_ms)
    return await show_events(tx, context, [row.row_id for row in found], now_ms), total


async def _find_tags(tx: Transaction, words: list[str], limit: int) -> list[FoundTag]:
    tags = await load_all_tags(tx, TAGS_SEARCHED_MAX)
    found = [tag for tag in tags if words and holds(folded(f"{tag.label}\n{tag.slug}"), words)]
    return [
        FoundTag(id=str(tag.tag_id), label=tag.label, slug=tag.slug, event_count=tag.event_count)
        for tag in found[:limit]
    ]


def _without_closed_markets(event: Event) -> Event:
    assert event.markets is not UNSET
    open_markets = [market for market in event.markets if not market.closed]
    return msgspec.structs.replace(event, markets=open_markets)
