"""Events, markets and tags: lists of them, and each by its id, its slug or its condition."""

import asyncio
from collections.abc import Sequence
from typing import Final

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.lists import (
    EVENT_SORTS,
    MARKET_SORTS,
    TAG_SORTS,
    encode_cursor,
    event_filter,
    keyset_page,
    list_page,
    market_filter,
)
from foretell.discovery.render import event_record, market_record, tag_record
from foretell.discovery.responses import (
    Description,
    Event,
    EventKeyset,
    EventPage,
    MarketKeyset,
    MarketResponse,
    Pagination,
    TagResponse,
)
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.http import MalformedQuery, UnknownRecord
from foretell.domain.values.hexadecimal import parse_bytes32
from foretell.edge.query import ID_MAX, Query
from foretell.store.database import Transaction
from foretell.store.queries.catalog import (
    load_catalog_markets,
    load_events,
    load_markets_of_events,
    load_tag_by_slug,
    load_tags,
    load_tags_of_events,
)
from foretell.store.queries.catalog_filters import (
    Cursor,
    EventFilter,
    ListPage,
    MarketFilter,
    count_events,
    load_event_ids,
    load_market_ids,
    load_tag_ids,
)

ROWS_PER_PART: Final = 50
"""So many rows become records before others in the process are let in."""

ONE_ROW: Final = ListPage(limit=1)


async def list_events(context: DiscoveryContext, query: Query) -> list[Event]:
    """Return a page of events with their markets and tags."""
    chosen, page = event_filter(query), list_page(query, EVENT_SORTS)
    query.check_known()
    if chosen is None:
        return []
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_event_ids(tx, chosen, page, now_ms)
        return await show_events(tx, context, [cursor.row_id for cursor in found], now_ms)


async def list_events_after(context: DiscoveryContext, query: Query) -> EventKeyset:
    """Return a page of events, and the cursor of the next one."""
    chosen, page = event_filter(query), keyset_page(query, EVENT_SORTS)
    query.check_known()
    if chosen is None:
        return EventKeyset(events=[])
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found, cursor = _cut(await load_event_ids(tx, chosen, page, now_ms), page)
        shown = await show_events(tx, context, [row.row_id for row in found], now_ms)
    if cursor is None:
        return EventKeyset(events=shown)
    return EventKeyset(events=shown, next_cursor=cursor)


async def list_event_page(context: DiscoveryContext, query: Query) -> EventPage:
    """Return a page of events, and how many there are."""
    chosen, page = event_filter(query), list_page(query, EVENT_SORTS)
    query.check_known()
    if chosen is None:
        return EventPage(data=[], pagination=Pagination(has_more=False, total_results=0))
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_event_ids(tx, chosen, page, now_ms)
        total = await count_events(tx, chosen, now_ms)
        shown = await show_events(tx, context, [row.row_id for row in found], now_ms)
    has_more = page.offset + len(found) < total
    return EventPage(data=shown, pagination=Pagination(has_more=has_more, total_results=total))


async def find_event(context: DiscoveryContext, query: Query, id_text: str) -> Event:
    """Return the event of an id."""
    query.skip("include_chat", "include_template", "creator", "mirror", "locale")
    query.check_known()
    return await _find_event(context, EventFilter(event_ids=[parse_id(id_text)]), "id")


async def find_event_by_slug(context: DiscoveryContext, query: Query, slug: str) -> Event:
    """Return the event of a slug."""
    query.skip("include_chat", "include_template", "creator", "mirror", "locale")
    query.check_known()
    return await _find_event(context, EventFilter(event_slugs=[parse_slug(slug)]), "slug")


async def list_event_tags(
    context: DiscoveryContext, query: Query, id_text: str
) -> list[TagResponse]:
    """Return the tags of an event."""
    query.check_known()
    event_id = parse_id(id_text)
    async with context.database.reading() as tx:
        await _check_event(tx, context, event_id)
        tags = (await load_tags_of_events(tx, [event_id])).get(event_id, [])
    return [tag_record(tag) for tag in tags]


async def check_event(context: DiscoveryContext, query: Query, id_text: str) -> None:
    """Refuse an id that is no event's."""
    query.check_known()
    async with context.database.reading() as tx:
        await _check_event(tx, context, parse_id(id_text))


async def list_markets(context: DiscoveryContext, query: Query) -> list[MarketResponse]:
    """Return a page of markets with their events."""
    chosen, page = market_filter(query), list_page(query, MARKET_SORTS)
    has_tags = query.boolean("include_tag", default=False)
    query.check_known()
    if chosen is None:
        return []
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_market_ids(tx, chosen, page, now_ms)
        ids = [row.row_id for row in found]
        return await _show_markets(tx, context, ids, now_ms, has_tags=has_tags)


async def list_markets_after(context: DiscoveryContext, query: Query) -> MarketKeyset:
    """Return a page of markets, and the cursor of the next one."""
    chosen, page = market_filter(query), keyset_page(query, MARKET_SORTS)
    has_tags = query.boolean("include_tag", default=False)
    query.check_known()
    if chosen is None:
        return MarketKeyset(markets=[])
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found, cursor = _cut(await load_market_ids(tx, chosen, page, now_ms), page)
        ids = [row.row_id for row in found]
        shown = await _show_markets(tx, context, ids, now_ms, has_tags=has_tags)
    if cursor is None:
        return MarketKeyset(markets=shown)
    return MarketKeyset(markets=shown, next_cursor=cursor)


async def find_market(context: DiscoveryContext, query: Query, id_text: str) -> MarketResponse:
    """Return the market of an id, which is a number or a condition's."""
    return await _find_market(context, query, _market_of(id_text), "id")


async def find_market_by_slug(context: DiscoveryContext, query: Query, slug: str) -> MarketResponse:
    """Return the market of a slug."""
    return await _find_market(context, query, MarketFilter(slugs=[parse_slug(slug)]), "slug")


async def list_market_tags(
    context: DiscoveryContext, query: Query, id_text: str
) -> list[TagResponse]:
    """Return the tags of a market's event."""
    query.check_known()
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_market_ids(tx, _market_of(id_text), ONE_ROW, now_ms)
        markets = await load_catalog_markets(tx, [row.row_id for row in found], now_ms)
        if not markets:
            raise UnknownRecord("id")
        event_id = markets[0].event_id
        tags = (await load_tags_of_events(tx, [event_id])).get(event_id, [])
    return [tag_record(tag) for tag in tags]


async def describe_market(context: DiscoveryContext, query: Query, id_text: str) -> Description:
    """Return the rules of a market."""
    market = await _find_market(context, query, _market_of(id_text), "id")
    return Description(description=market.description)


async def list_tags(context: DiscoveryContext, query: Query) -> list[TagResponse]:
    """Return a page of tags."""
    page = list_page(query, TAG_SORTS)
    has_carousel = query.optional_boolean("is_carousel")
    query.skip("include_template", "include_chat", "creator", "mirror", "locale")
    query.check_known()
    if has_carousel:
        return []
    async with context.database.reading() as tx:
        found = await load_tag_ids(tx, page)
        return [tag_record(tag) for tag in await load_tags(tx, [row.row_id for row in found])]


async def find_tag(context: DiscoveryContext, query: Query, id_text: str) -> TagResponse:
    """Return the tag of an id."""
    _skip_tag_fields(query)
    async with context.database.reading() as tx:
        tags = await load_tags(tx, [parse_id(id_text)])
    if not tags:
        raise UnknownRecord("id")
    return tag_record(tags[0])


async def find_tag_by_slug(context: DiscoveryContext, query: Query, slug: str) -> TagResponse:
    """Return the tag of a slug."""
    _skip_tag_fields(query)
    async with context.database.reading() as tx:
        tag = await load_tag_by_slug(tx, parse_slug(slug))
    if tag is None:
        raise UnknownRecord("slug")
    return tag_record(tag)


async def show_events(
    tx: Transaction, context: DiscoveryContext, event_ids: Sequence[int], now_ms: int
) -> list[Event]:
    """Return events as they are shown, in the order of the ids."""
    events = await load_events(tx, event_ids, now_ms)
    markets = await load_markets_of_events(tx, event_ids, now_ms)
    tags = await load_tags_of_events(tx, event_ids)
    shown: list[Event] = []
    for position, event in enumerate(events):
        if position % ROWS_PER_PART == 0:
            await asyncio.sleep(0)
        event_id = event.event_id
        shown.append(
            event_record(
                event, context.blob_base_url, tags.get(event_id, []), markets.get(event_id, [])
            )
        )
    return shown


def parse_id(text: str) -> int:
    """Return the number that a path names, or refuse what is none."""
    if not (text.isascii() and text.isdigit()) or int(text[:20]) > ID_MAX:
        raise MalformedQuery("id", "a number")
    return int(text[:20])


def parse_slug(text: str) -> str:
    """Return the slug that a path names, or refuse what can be none."""
    if "\0" in text:
        raise UnknownRecord("slug")
    return text


async def _show_markets(
    tx: Transaction,
    context: DiscoveryContext,
    market_ids: Sequence[int],
    now_ms: int,
    *,
    has_tags: bool,
) -> list[MarketResponse]:
    markets = await load_catalog_markets(tx, market_ids, now_ms)
    event_ids = sorted({market.event_id for market in markets})
    event_by_id = {event.event_id: event for event in await load_events(tx, event_ids, now_ms)}
    tags = await load_tags_of_events(tx, event_ids)
    shown: list[MarketResponse] = []
    for position, market in enumerate(markets):
        if position % ROWS_PER_PART == 0:
            await asyncio.sleep(0)
        shown.append(
            market_record(
                market,
                event_by_id[market.event_id],
                context.blob_base_url,
                tags.get(market.event_id, []) if has_tags else None,
                has_event=True,
            )
        )
    return shown


async def _find_event(context: DiscoveryContext, chosen: EventFilter, field: str) -> Event:
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_event_ids(tx, chosen, ONE_ROW, now_ms)
        shown = await show_events(tx, context, [row.row_id for row in found], now_ms)
    if not shown:
        raise UnknownRecord(field)
    return shown[0]


async def _find_market(
    context: DiscoveryContext, query: Query, chosen: MarketFilter, field: str
) -> MarketResponse:
    has_tags = query.boolean("include_tag", default=False)
    query.skip("include_template", "creator", "mirror", "locale")
    query.check_known()
    now_ms = context.now_ms()
    async with context.database.reading() as tx:
        found = await load_market_ids(tx, chosen, ONE_ROW, now_ms)
        ids = [row.row_id for row in found]
        shown = await _show_markets(tx, context, ids, now_ms, has_tags=has_tags)
    if not shown:
        raise UnknownRecord(field)
    return shown[0]


async def _check_event(tx: Transaction, context: DiscoveryContext, event_id: int) -> None:
    chosen = EventFilter(event_ids=[event_id])
    if not await load_event_ids(tx, chosen, ONE_ROW, context.now_ms()):
        raise UnknownRecord("id")


def _market_of(id_text: str) -> MarketFilter:
    if id_text[:2].lower() == "0x":
        try:
            return MarketFilter(condition_ids=[parse_bytes32(id_text)])
        except MalformedHex as error:
            raise MalformedQuery("id", "a number, or 0x and 64 hex digits") from error
    return MarketFilter(market_ids=[parse_id(id_text)])


def _cut(found: Sequence[Cursor], page: ListPage) -> tuple[Sequence[Cursor], str | None]:
    """Return the rows of the page that was asked for, and the cursor after it if there are more."""
    rows = found[: page.limit - 1]
    if len(found) < page.limit or not rows:
        return rows, None
    return rows, encode_cursor(rows[-1], page)


def _skip_tag_fields(query: Query) -> None:
    query.skip("include_template", "mirror", "locale")
    query.check_known()
