"""The public search: events and tags that contain every word of a query, and profiles whose names begin with it."""

from dataclasses import replace
from typing import Final

import msgspec
from litestar.openapi.spec import OpenAPIType, Schema
from msgspec import UNSET

from foretell.discovery.catalog import render_events
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.filters import EXCLUDED_TAG_IDS, RECURRENCE, RESOLVED
from foretell.discovery.pages import ASCENDING, EVENT_SORTS, PAGE_MAX, find_sort
from foretell.discovery.profiles import find_profiles
from foretell.discovery.responses import Event, FoundTag, Pagination, SearchResult
from foretell.discovery.search_index import SearchIndex, words_of
from foretell.edge.parameters import (
    boolean,
    clamped_integer,
    entries,
    ignored,
    integer,
    optional_choice,
    required_text,
    text,
)
from foretell.edge.query import Query
from foretell.store.database import Transaction
from foretell.store.queries.catalog_filters import EventFilter, load_event_ids_and_total
from foretell.store.queries.sorted_pages import ListPage, SortField
from foretell.store.queries.tags import load_top_tags

EVENTS_FOUND_MAX: Final = 1000
"""The newest matching events that are ranked; older ones are not considered."""

TAGS_SEARCHED_MAX: Final = 5000
RANKING: Final = (SortField.IS_OPEN, SortField.VOLUME_DAY)
"""Open events come first, then those with the largest volume of the last day."""

TEXT: Final = required_text("q", "words, all of which are to be found")
LIMIT: Final = clamped_integer(
    "limit_per_type",
    25,
    0,
    PAGE_MAX,
    f"events, tags and profiles of a page, each; more count as {PAGE_MAX}",
)
PAGE: Final = integer("page", 1, 1, 10_000, "page of events, from 1 on")
SEARCH_TAGS: Final = boolean("search_tags", "whether tags are searched, too", default=True)
SEARCH_PROFILES: Final = boolean(
    "search_profiles",
    "whether profiles are searched, too, whose names begin with the query",
    default=False,
)
STATUS: Final = optional_choice(
    "events_status", "events that are open, or those that are resolved", ("active", RESOLVED)
)
TAG_SLUGS: Final = entries("events_tag", "tag slugs, any of them")
KEEP_CLOSED: Final = boolean(
    "keep_closed_markets", "whether events show their closed markets", default=True
)
SORT: Final = replace(
    text("sort", "field that events are sorted by, in place of the ranking"),
    schema=Schema(type=OpenAPIType.STRING, enum=list(EVENT_SORTS)),
).convert(lambda name: None if name is None else find_sort(name, EVENT_SORTS))
IGNORED: Final = ignored("cache", "optimized", "presets", "type", "locale", "mirror")
PARAMETERS: Final = (
    TEXT,
    LIMIT,
    PAGE,
    SEARCH_TAGS,
    SEARCH_PROFILES,
    STATUS,
    TAG_SLUGS,
    EXCLUDED_TAG_IDS,
    KEEP_CLOSED,
    SORT,
    ASCENDING,
    RECURRENCE,
    IGNORED,
)


async def public_search(context: DiscoveryContext, query: Query) -> SearchResult:
    """Return the events, tags and profiles that match a query."""
    wanted = query.read(TEXT)
    words, index = words_of(wanted), context.search_index
    chosen, page = _read_filter(query), _read_page(query)
    has_tags = query.read(SEARCH_TAGS)
    has_profiles = query.read(SEARCH_PROFILES)
    has_closed_markets = query.read(KEEP_CLOSED)
    query.read(IGNORED)
    query.check_known()
    async with context.database.public_reading() as tx:
        if words:
            await index.refresh(tx)
        events, total = await _find_events(tx, context, (words, chosen, page))
        tags = await _find_tags(tx, index, words, page.limit) if has_tags else []
        profiles = await find_profiles(tx, wanted, page.limit) if has_profiles else UNSET
    if not has_closed_markets:
        events = [_without_closed_markets(event) for event in events]
    return SearchResult(
        events=events,
        tags=tags,
        profiles=profiles,
        pagination=Pagination(has_more=page.offset + len(events) < total, total_results=total),
    )


def _read_filter(query: Query) -> EventFilter | None:
    """Return the filter of events, or None when no event can pass."""
    status = query.read(STATUS)
    tag_slugs, excluded_tag_ids = query.read(TAG_SLUGS), query.read(EXCLUDED_TAG_IDS)
    if query.read(RECURRENCE) is not None:
        return None
    return EventFilter(
        tag_slugs=tag_slugs,
        excluded_tag_ids=excluded_tag_ids,
        is_closed=None if status is None else status == RESOLVED,
    )


def _read_page(query: Query) -> ListPage:
    limit, field = query.read(LIMIT), query.read(SORT)
    return ListPage(
        limit=limit,
        offset=(query.read(PAGE) - 1) * limit,
        fields=RANKING if field is None else (field,),
        is_ascending=query.read(ASCENDING),
    )


async def _find_events(
    tx: Transaction,
    context: DiscoveryContext,
    wanted: tuple[list[str], EventFilter | None, ListPage],
) -> tuple[list[Event], int]:
    words, chosen, page = wanted
    if chosen is None or not words:
        return [], 0
    ids = await context.search_index.find_events(words, EVENTS_FOUND_MAX)
    if not ids:
        return [], 0
    found, total = await load_event_ids_and_total(tx, replace(chosen, event_ids=ids), page)
    return await render_events(tx, context, [row.row_id for row in found]), total


async def _find_tags(
    tx: Transaction, index: SearchIndex, words: list[str], limit: int
) -> list[FoundTag]:
    ids = await index.find_tags(words) if words and limit else []
    if not ids:
        return []
    return [
        FoundTag(id=str(tag.tag_id), label=tag.label, slug=tag.slug, event_count=tag.event_count)
        for tag in await load_top_tags(tx, ids, limit, TAGS_SEARCHED_MAX)
    ]


def _without_closed_markets(event: Event) -> Event:
    assert event.markets is not UNSET
    open_markets = [market for market in event.markets if not market.closed]
    return msgspec.structs.replace(event, markets=open_markets)
