"""The discovery API: which events, markets and tags there are, and a search. All of it is read only.

Nobody needs to say who they are, and whatever headers come along are not looked at. Every answer is
one reading transaction on the tables; the engine is never asked. Routes for what this installation
has not, such as series, sports and comments, answer that there is none.
"""

from typing import Any, Final

from litestar import Litestar, MediaType, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.discovery import catalog, responses, search
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.lists import EVENT_SORTS, MARKET_SORTS, OFFSET_MAX, PAGE_MAX, TAG_SORTS
from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response
from foretell.edge.openapi import (
    answering,
    booleans,
    choices,
    integers,
    lists,
    numbers,
    taking,
    texts,
)
from foretell.edge.query import Query

TITLE: Final = "Foretell discovery API"
ABOUT: Final = (
    "Events, markets and tags. Read only; no authentication. Ids are decimal strings; outcomes,"
    " their prices and token ids are JSON lists in a string."
)

Answer = Response[bytes]
Services = NamedDependency[DiscoveryContext]

LIMIT: Final = integers("limit", 20, 0, PAGE_MAX, "rows of a page; a larger number counts as 500")
OFFSET: Final = integers("offset", 0, 0, OFFSET_MAX)
ASCENDING: Final = booleans("ascending", "least first", default=False)
CURSOR: Final = texts("after_cursor", "next_cursor of the page before")
SHARED: Final = (
    booleans("active", "every listed row is active"),
    booleans("closed", "whether resolved"),
    booleans("archived", "no listed row is archived"),
    booleans("featured", "no listed row is featured"),
    booleans("cyom", "no listed row is"),
    lists("tag_id", "tag ids, any of them"),
    lists("tag_slug", "tag slugs, any of them; also as tag"),
    texts("creator", "address of the creator"),
    texts("start_date_min", "ISO 8601"),
    texts("start_date_max", "ISO 8601"),
    texts("end_date_min", "ISO 8601"),
    texts("end_date_max", "ISO 8601"),
)
EVENT_FILTERS: Final = (
    lists("id", "event ids"),
    lists("slug", "event slugs"),
    lists("exclude_tag_id", "tag ids, none of them"),
    numbers("liquidity_min", ""),
    numbers("liquidity_max", ""),
    numbers("volume_min", ""),
    numbers("volume_max", ""),
    *SHARED,
)
MARKET_FILTERS: Final = (
    lists("id", "market ids"),
    lists("slug", "market slugs"),
    lists("condition_ids", "condition ids"),
    lists("clob_token_ids", "token ids"),
    lists("question_ids", "question ids"),
    lists("event_id", "event ids"),
    lists("event_slug", "event slugs"),
    texts("uma_resolution_status", "proposed, disputed or resolved"),
    numbers("liquidity_num_min", ""),
    numbers("liquidity_num_max", ""),
    numbers("volume_num_min", ""),
    numbers("volume_num_max", ""),
    booleans("include_tag", "with the tags of the event", default=False),
    *SHARED,
)
EVENT_ORDER: Final = lists("order", f"some of {', '.join(EVENT_SORTS)}")
MARKET_ORDER: Final = lists("order", f"some of {', '.join(MARKET_SORTS)}")
TAG_ORDER: Final = lists("order", f"some of {', '.join(TAG_SORTS)}")
EVENT: Final = answering(responses.Event, "The event.")
MARKET: Final = answering(responses.MarketResponse, "The market.")
TAG: Final = answering(responses.TagResponse, "The tag.")
PLAIN: Final = taking()


@get(["/", "/status"], media_type=MediaType.TEXT)
async def get_status() -> str:
    """Say that the API is there."""
    return "OK"


@get(
    "/events",
    responses=answering(list[responses.Event], "A page of events."),
    operation_class=taking(LIMIT, OFFSET, EVENT_ORDER, ASCENDING, *EVENT_FILTERS),
)
async def get_events(request: AnyRequest, context: Services) -> Answer:
    """Return events with their markets and tags."""
    return json_response(await catalog.list_events(context, Query.of(request)))


@get(
    "/events/keyset",
    responses=answering(responses.EventKeyset, "A page of events."),
    operation_class=taking(LIMIT, CURSOR, EVENT_ORDER, ASCENDING, *EVENT_FILTERS),
)
async def get_events_after(request: AnyRequest, context: Services) -> Answer:
    """Return events after a cursor, and the cursor of the next page."""
    return json_response(await catalog.list_events_after(context, Query.of(request)))


@get(
    "/events/pagination",
    responses=answering(responses.EventPage, "A page of events."),
    operation_class=taking(LIMIT, OFFSET, EVENT_ORDER, ASCENDING, *EVENT_FILTERS),
)
async def get_event_page(request: AnyRequest, context: Services) -> Answer:
    """Return events, and how many there are."""
    return json_response(await catalog.list_event_page(context, Query.of(request)))


@get("/events/{event_id:str}", responses=EVENT, operation_class=PLAIN)
async def get_event(request: AnyRequest, context: Services, event_id: FromPath[str]) -> Answer:
    """Return the event of an id."""
    return json_response(await catalog.find_event(context, Query.of(request), event_id))


@get("/events/slug/{slug:str}", responses=EVENT, operation_class=PLAIN)
async def get_event_by_slug(request: AnyRequest, context: Services, slug: FromPath[str]) -> Answer:
    """Return the event of a slug."""
    return json_response(await catalog.find_event_by_slug(context, Query.of(request), slug))


@get(
    "/events/{event_id:str}/tags",
    responses=answering(list[responses.TagResponse], "Its tags."),
    operation_class=PLAIN,
)
async def get_event_tags(request: AnyRequest, context: Services, event_id: FromPath[str]) -> Answer:
    """Return the tags of an event."""
    return json_response(await catalog.list_event_tags(context, Query.of(request), event_id))


@get(
    "/events/{event_id:str}/comments/count",
    responses=answering(responses.Count, "None."),
    operation_class=PLAIN,
)
async def get_comment_count(
    request: AnyRequest, context: Services, event_id: FromPath[str]
) -> Answer:
    """Return how many comments an event has: nobody can write one."""
    await catalog.check_event(context, Query.of(request), event_id)
    return json_response(responses.Count(count=0))


@get(
    "/markets",
    responses=answering(list[responses.MarketResponse], "A page of markets."),
    operation_class=taking(LIMIT, OFFSET, MARKET_ORDER, ASCENDING, *MARKET_FILTERS),
)
async def get_markets(request: AnyRequest, context: Services) -> Answer:
    """Return markets with their events."""
    return json_response(await catalog.list_markets(context, Query.of(request)))


@get(
    "/markets/keyset",
    responses=answering(responses.MarketKeyset, "A page of markets."),
    operation_class=taking(LIMIT, CURSOR, MARKET_ORDER, ASCENDING, *MARKET_FILTERS),
)
async def get_markets_after(request: AnyRequest, context: Services) -> Answer:
    """Return markets after a cursor, and the cursor of the next page."""
    return json_response(await catalog.list_markets_after(context, Query.of(request)))


@get("/markets/{market_id:str}", responses=MARKET, operation_class=PLAIN)
async def get_market(request: AnyRequest, context: Services, market_id: FromPath[str]) -> Answer:
    """Return the market of an id or a condition id."""
    return json_response(await catalog.find_market(context, Query.of(request), market_id))


@get("/markets/slug/{slug:str}", responses=MARKET, operation_class=PLAIN)
async def get_market_by_slug(request: AnyRequest, context: Services, slug: FromPath[str]) -> Answer:
    """Return the market of a slug."""
    return json_response(await catalog.find_market_by_slug(context, Query.of(request), slug))


@get(
    "/markets/{market_id:str}/tags",
    responses=answering(list[responses.TagResponse], "Its tags."),
    operation_class=PLAIN,
)
async def get_market_tags(
    request: AnyRequest, context: Services, market_id: FromPath[str]
) -> Answer:
    """Return the tags of a market's event."""
    return json_response(await catalog.list_market_tags(context, Query.of(request), market_id))


@get(
    "/markets/{market_id:str}/description",
    responses=answering(responses.Description, "Its rules."),
    operation_class=PLAIN,
)
async def get_market_description(
    request: AnyRequest, context: Services, market_id: FromPath[str]
) -> Answer:
    """Return the rules of a market."""
    return json_response(await catalog.describe_market(context, Query.of(request), market_id))


@get(
    "/tags",
    responses=answering(list[responses.TagResponse], "A page of tags."),
    operation_class=taking(LIMIT, OFFSET, TAG_ORDER, ASCENDING, booleans("is_carousel", "none is")),
)
async def get_tags(request: AnyRequest, context: Services) -> Answer:
    """Return tags."""
    return json_response(await catalog.list_tags(context, Query.of(request)))


@get("/tags/{tag_id:str}", responses=TAG, operation_class=PLAIN)
async def get_tag(request: AnyRequest, context: Services, tag_id: FromPath[str]) -> Answer:
    """Return the tag of an id."""
    return json_response(await catalog.find_tag(context, Query.of(request), tag_id))


@get("/tags/slug/{slug:str}", responses=TAG, operation_class=PLAIN)
async def get_tag_by_slug(request: AnyRequest, context: Services, slug: FromPath[str]) -> Answer:
    """Return the tag of a slug."""
    return json_response(await catalog.find_tag_by_slug(context, Query.of(request), slug))


@get(
    ["/tags/{tag_id:str}/related-tags", "/tags/{tag_id:str}/related-tags/tags"],
    responses=answering(list[Any], "None."),
    operation_class=PLAIN,
)
async def get_related_tags(request: AnyRequest, context: Services, tag_id: FromPath[str]) -> Answer:
    """Return the tags related to a tag: no relation is kept."""
    query = Query.of(request)
    query.skip("omit_empty", "status")
    await catalog.find_tag(context, query, tag_id)
    return json_response([])


@get(
    ["/tags/slug/{slug:str}/related-tags", "/tags/slug/{slug:str}/related-tags/tags"],
    responses=answering(list[Any], "None."),
    operation_class=PLAIN,
)
async def get_related_tags_by_slug(
    request: AnyRequest, context: Services, slug: FromPath[str]
) -> Answer:
    """Return the tags related to a tag: no relation is kept."""
    query = Query.of(request)
    query.skip("omit_empty", "status")
    await catalog.find_tag_by_slug(context, query, slug)
    return json_response([])


@get(
    "/public-search",
    responses=answering(responses.SearchResult, "What was found."),
    operation_class=taking(
        texts("q", "words, all of which are to be found", required=True),
        integers("limit_per_type", 25, 0, PAGE_MAX),
        integers("page", 1, 1, search.PAGES_MAX),
        booleans("search_tags", "", default=True),
        booleans("search_profiles", "", default=False),
        choices("events_status", "", search.STATUSES),
        lists("events_tag", "tag slugs, any of them"),
        lists("exclude_tag_id", "tag ids, none of them"),
        booleans("keep_closed_markets", "", default=True),
        choices("sort", "instead of the ranking", tuple(EVENT_SORTS)),
        ASCENDING,
    ),
)
async def get_search(request: AnyRequest, context: Services) -> Answer:
    """Return the events and tags that words find."""
    return json_response(await search.public_search(context, Query.of(request)))


@get(
    [
        "/comments",
        "/comments/{comment_id:str}",
        "/comments/user_address/{address:str}",
        "/events/creators",
        "/series",
        "/sports",
        "/teams",
    ],
    responses=answering(list[Any], "An empty list."),
)
async def get_nothing() -> Answer:
    """Return what this installation has none of: comments, series, sports, teams, named creators."""
    return json_response([])


@get("/sports/market-types", responses=answering(responses.MarketTypes, "None."))
async def get_market_types() -> Answer:
    """Return the kinds of sports markets: there is none."""
    return json_response(responses.MarketTypes(market_types=[]))


@get(
    [
        "/events/creators/{record_id:str}",
        "/profiles/user_address/{record_id:str}",
        "/series/{record_id:str}",
        "/series/{record_id:str}/comments/count",
    ]
)
async def get_unknown(record_id: FromPath[str]) -> Answer:
    """Refuse the id of a named creator, a profile or a series: there is none."""
    raise UnknownRecord("id")


@get("/public-profile", operation_class=taking(texts("address", "a wallet", required=True)))
async def get_profile(request: AnyRequest) -> Answer:
    """Refuse the address of a profile: nobody has one."""
    query = Query.of(request)
    query.wallet("address")
    query.check_known()
    raise UnknownRecord("address")


ROUTES: Final = (
    get_status,
    get_events,
    get_events_after,
    get_event_page,
    get_event,
    get_event_by_slug,
    get_event_tags,
    get_comment_count,
    get_markets,
    get_markets_after,
    get_market,
    get_market_by_slug,
    get_market_tags,
    get_market_description,
    get_tags,
    get_tag,
    get_tag_by_slug,
    get_related_tags,
    get_related_tags_by_slug,
    get_search,
    get_nothing,
    get_market_types,
    get_unknown,
    get_profile,
)


def build_app(context: DiscoveryContext) -> Litestar:
    """Return the API as an application of its own, its paths starting at /."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=ROUTES,
        context=context,
        body_of=discovery_body,
    )
