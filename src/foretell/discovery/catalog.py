"""Events and markets: lists, and single ones by id, slug or condition."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

from foretell.discovery.context import DiscoveryContext
from foretell.discovery.filters import (
    EVENT_PARAMETERS,
    INCLUDE_TAG,
    MARKET_PARAMETERS,
    read_event_filter,
    read_market_filter,
)
from foretell.discovery.pages import (
    ASCENDING,
    CURSOR,
    EVENT_ORDER,
    EVENTS,
    LIMIT,
    MARKET_ORDER,
    MARKETS,
    OFFSET,
    UNUSED_OFFSET,
    encode_cursor,
    read_keyset_page,
    read_page,
)
from foretell.discovery.paths import parse_id, parse_slug
from foretell.discovery.render import render_event, render_market, render_tag
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
from foretell.edge.parameters import ignored
from foretell.edge.query import Query
from foretell.store.database import Transaction
from foretell.store.queries.catalog import (
    CatalogMarket,
    TaggedEvent,
    load_catalog_markets,
    load_events,
    load_markets_of_events,
    load_rules,
    load_tagged_events,
)
from foretell.store.queries.catalog_filters import (
    EventFilter,
    MarketFilter,
    count_events,
    load_event_ids,
    load_market_ids,
)
from foretell.store.queries.sorted_pages import Cursor, ListPage
from foretell.store.queries.tags import load_tags_of_events

ROWS_PER_PART: Final = 50
"""Rows that are rendered before the process serves other requests."""

ONE_ROW: Final = ListPage(limit=1)

EVENTS_PARAMETERS: Final = (LIMIT, OFFSET, EVENT_ORDER, ASCENDING, *EVENT_PARAMETERS)
EVENT_KEYSET_PARAMETERS: Final = (
    LIMIT,
    CURSOR,
    EVENT_ORDER,
    ASCENDING,
    UNUSED_OFFSET,
    *EVENT_PARAMETERS,
)
MARKETS_PARAMETERS: Final = (LIMIT, OFFSET, MARKET_ORDER, ASCENDING, *MARKET_PARAMETERS)
MARKET_KEYSET_PARAMETERS: Final = (
    LIMIT,
    CURSOR,
    MARKET_ORDER,
    ASCENDING,
    UNUSED_OFFSET,
    *MARKET_PARAMETERS,
)

ONE_EVENT_PARAMETERS: Final = (
    ignored("include_chat", "include_template", "creator", "mirror", "locale"),
)
ONE_MARKET_INCLUDE_TAG: Final = INCLUDE_TAG.hidden()
ONE_MARKET_IGNORED: Final = ignored("include_template", "creator", "mirror", "locale")
ONE_MARKET_PARAMETERS: Final = (ONE_MARKET_INCLUDE_TAG, ONE_MARKET_IGNORED)


async def list_events(context: DiscoveryContext, query: Query) -> list[Event]:
    """Return a page of events with their markets and tags."""
    chosen, page = read_event_filter(query), read_page(query, EVENT_ORDER)
    query.check_known()
    if chosen is None:
        return []
    async with context.database.public_reading() as tx:
        found = await load_event_ids(tx, chosen, page)
        return await render_events(tx, context, [cursor.row_id for cursor in found])


async def list_events_after(context: DiscoveryContext, query: Query) -> EventKeyset:
    """Return a page of events, and the cursor of the next one."""
    chosen, page = read_event_filter(query), read_keyset_page(query, EVENTS, EVENT_ORDER)
    query.check_known()
    if chosen is None:
        return EventKeyset(events=[])
    async with context.database.public_reading() as tx:
        found, cursor = _cut(await load_event_ids(tx, chosen, page), EVENTS, page)
        shown = await render_events(tx, context, [row.row_id for row in found])
    if cursor is None:
        return EventKeyset(events=shown)
    return EventKeyset(events=shown, next_cursor=cursor)


async def list_event_page(context: DiscoveryContext, query: Query) -> EventPage:
    """Return a page of events, and the number of all that match."""
    chosen, page = read_event_filter(query), read_page(query, EVENT_ORDER)
    query.check_known()
    if chosen is None:
        return EventPage(data=[], pagination=Pagination(has_more=False, total_results=0))
    async with context.database.public_reading() as tx:
        found = await load_event_ids(tx, chosen, page)
        total = await count_events(tx, chosen)
        shown = await render_events(tx, context, [row.row_id for row in found])
    has_more = page.offset + len(found) < total
    return EventPage(data=shown, pagination=Pagination(has_more=has_more, total_results=total))


async def find_event(context: DiscoveryContext, query: Query, id_text: str) -> Event:
    """Return the event of an id."""
    query.check(ONE_EVENT_PARAMETERS)
    return await _find_event(context, EventFilter(event_ids=[parse_id(id_text)]), "id")


async def find_event_by_slug(context: DiscoveryContext, query: Query, slug: str) -> Event:
    """Return the event of a slug."""
    query.check(ONE_EVENT_PARAMETERS)
    return await _find_event(context, EventFilter(event_slugs=[parse_slug(slug)]), "slug")


async def list_event_tags(
    context: DiscoveryContext, query: Query, id_text: str
) -> list[TagResponse]:
    """Return the tags of an event."""
    query.check_known()
    event_id = parse_id(id_text)
    async with context.database.public_reading() as tx:
        await _check_event(tx, event_id)
        tags = (await load_tags_of_events(tx, [event_id])).get(event_id, [])
    return [render_tag(tag) for tag in tags]


async def check_event(context: DiscoveryContext, query: Query, id_text: str) -> None:
    """Refuse an id that belongs to no event."""
    query.check_known()
    async with context.database.public_reading() as tx:
        await _check_event(tx, parse_id(id_text))


async def list_markets(context: DiscoveryContext, query: Query) -> list[MarketResponse]:
    """Return a page of markets with their events."""
    chosen, page = read_market_filter(query), read_page(query, MARKET_ORDER)
    has_tags = query.read(INCLUDE_TAG)
    query.check_known()
    if chosen is None:
        return []
    async with context.database.public_reading() as tx:
        found = await load_market_ids(tx, chosen, page)
        ids = [row.row_id for row in found]
        return await _render_markets(tx, context, ids, has_tags=has_tags)


async def list_markets_after(context: DiscoveryContext, query: Query) -> MarketKeyset:
    """Return a page of markets, and the cursor of the next one."""
    chosen, page = read_market_filter(query), read_keyset_page(query, MARKETS, MARKET_ORDER)
    has_tags = query.read(INCLUDE_TAG)
    query.check_known()
    if chosen is None:
        return MarketKeyset(markets=[])
    async with context.database.public_reading() as tx:
        found, cursor = _cut(await load_market_ids(tx, chosen, page), MARKETS, page)
        ids = [row.row_id for row in found]
        shown = await _render_markets(tx, context, ids, has_tags=has_tags)
    if cursor is None:
        return MarketKeyset(markets=shown)
    return MarketKeyset(markets=shown, next_cursor=cursor)


async def find_market(context: DiscoveryContext, query: Query, id_text: str) -> MarketResponse:
    """Return the market of a market id or a condition id."""
    return await _find_market(context, query, _market_of(id_text), "id")


async def find_market_by_slug(context: DiscoveryContext, query: Query, slug: str) -> MarketResponse:
    """Return the market of a slug."""
    return await _find_market(context, query, MarketFilter(slugs=[parse_slug(slug)]), "slug")


async def list_market_tags(
    context: DiscoveryContext, query: Query, id_text: str
) -> list[TagResponse]:
    """Return the tags of a market's event."""
    query.check_known()
    async with context.database.public_reading() as tx:
        found = await load_market_ids(tx, _market_of(id_text), ONE_ROW)
        markets = await load_catalog_markets(tx, [row.row_id for row in found])
        if not markets:
            raise UnknownRecord("id")
        event_id = markets[0].event_id
        tags = (await load_tags_of_events(tx, [event_id])).get(event_id, [])
    return [render_tag(tag) for tag in tags]


async def describe_market(context: DiscoveryContext, query: Query, id_text: str) -> Description:
    """Return the rules of a market."""
    query.read(ONE_MARKET_INCLUDE_TAG)
    query.read(ONE_MARKET_IGNORED)
    query.check_known()
    async with context.database.public_reading() as tx:
        found = await load_market_ids(tx, _market_of(id_text), ONE_ROW)
        rules = await load_rules(tx, found[0].row_id) if found else None
    if rules is None:
        raise UnknownRecord("id")
    return Description(description=rules)


async def render_events(
    tx: Transaction, context: DiscoveryContext, event_ids: Sequence[int]
) -> list[Event]:
    """Return the answers for events with their markets, in the order of the ids."""
    if not event_ids:
        return []
    events = await load_tagged_events(tx, event_ids)
    markets = await load_markets_of_events(tx, event_ids)
    return await show_events(context, events, markets)


async def show_events(
    context: DiscoveryContext,
    events: Sequence[TaggedEvent],
    markets: Mapping[int, Sequence[CatalogMarket]] | None = None,
) -> list[Event]:
    """Return the answers for events, with their markets if these are given."""
    shown: list[Event] = []
    for position, (event, tags) in enumerate(events):
        if position % ROWS_PER_PART == 0:
            await asyncio.sleep(0)
        own_markets = (
            None if markets is None else _delayed(markets.get(event.event_id, []), context)
        )
        shown.append(render_event(event, context.blob_base_url, tags, own_markets))
    return shown


async def _render_markets(
    tx: Transaction,
    context: DiscoveryContext,
    market_ids: Sequence[int],
    *,
    has_tags: bool,
) -> list[MarketResponse]:
    markets = _delayed(await load_catalog_markets(tx, market_ids), context)
    event_ids = sorted({market.event_id for market in markets})
    event_by_id = {event.event_id: event for event in await load_events(tx, event_ids)}
    tags = await load_tags_of_events(tx, event_ids) if has_tags else {}
    shown: list[MarketResponse] = []
    for position, market in enumerate(markets):
        if position % ROWS_PER_PART == 0:
            await asyncio.sleep(0)
        shown.append(
            render_market(
                market,
                event_by_id[market.event_id],
                context.blob_base_url,
                tags.get(market.event_id, []) if has_tags else None,
                has_event=True,
            )
        )
    return shown


def _delayed(
    markets: Sequence[CatalogMarket], context: DiscoveryContext
) -> Sequence[CatalogMarket]:
    """Return the markets, those of games with the operator's delay of orders."""
    delay_s = context.sports_delay_s
    return [
        market if market.sports is None else market._replace(seconds_delay=delay_s)
        for market in markets
    ]


async def _find_event(context: DiscoveryContext, chosen: EventFilter, field: str) -> Event:
    async with context.database.public_reading() as tx:
        found = await load_event_ids(tx, chosen, ONE_ROW)
        shown = await render_events(tx, context, [row.row_id for row in found])
    if not shown:
        raise UnknownRecord(field)
    return shown[0]


async def _find_market(
    context: DiscoveryContext, query: Query, chosen: MarketFilter, field: str
) -> MarketResponse:
    has_tags = query.read(ONE_MARKET_INCLUDE_TAG)
    query.read(ONE_MARKET_IGNORED)
    query.check_known()
    async with context.database.public_reading() as tx:
        found = await load_market_ids(tx, chosen, ONE_ROW)
        ids = [row.row_id for row in found]
        shown = await _render_markets(tx, context, ids, has_tags=has_tags)
    if not shown:
        raise UnknownRecord(field)
    return shown[0]


async def _check_event(tx: Transaction, event_id: int) -> None:
    chosen = EventFilter(event_ids=[event_id])
    if not await load_event_ids(tx, chosen, ONE_ROW):
        raise UnknownRecord("id")


def _market_of(id_text: str) -> MarketFilter:
    if id_text[:2].lower() == "0x":
        try:
            return MarketFilter(condition_ids=[parse_bytes32(id_text)])
        except MalformedHex as error:
            raise MalformedQuery("id", "a number, or 0x and 64 hex digits") from error
    return MarketFilter(market_ids=[parse_id(id_text)])


def _cut(found: Sequence[Cursor], name: str, page: ListPage) -> tuple[Sequence[Cursor], str | None]:
    """Return the rows of a page, and the cursor of the next page if there is one."""
    rows = found[: page.limit - 1]
    if len(found) < page.limit or not rows:
        return rows, None
    return rows, encode_cursor(rows[-1], name, page)
