"""Routes of the discovery API: events, markets, tags and a search; read only.

There is no authentication and no header is read. An answer is one reading transaction on the tables;
the engine is never asked. Routes for comments and named creators, which this installation does not
have, return empty lists.
"""

from typing import Any, Final

from litestar import Litestar, MediaType, Response, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.discovery import catalog, responses, search, sports, tags
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.http import UnknownRecord
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, json_response
from foretell.edge.openapi import json_responses, operation_with
from foretell.edge.parameters import wallet
from foretell.edge.query import Query

TITLE: Final = "Foretell discovery API"
ABOUT: Final = (
    "Events, markets, tags, sports, teams and series. Read only; no authentication. Ids are decimal strings; outcomes,"
    " their prices and token ids are JSON lists in a string."
)

Answer = Response[bytes]
Context = NamedDependency[DiscoveryContext]

PROFILE_ADDRESS: Final = wallet("address", "a wallet")
EVENT: Final = json_responses(responses.Event, "The event.")
MARKET: Final = json_responses(responses.MarketResponse, "The market.")
TAG: Final = json_responses(responses.TagResponse, "The tag.")
NO_PARAMETERS: Final = operation_with()
ONE_EVENT: Final = operation_with(*catalog.ONE_EVENT_PARAMETERS)
ONE_MARKET: Final = operation_with(*catalog.ONE_MARKET_PARAMETERS)
ONE_TAG: Final = operation_with(*tags.ONE_TAG_PARAMETERS)
RELATED_TAGS: Final = operation_with(*tags.RELATED_TAGS_PARAMETERS)


@get(["/", "/status"], media_type=MediaType.TEXT)
async def get_status() -> str:
    """Answer when the API is reachable."""
    return "OK"


@get(
    "/events",
    responses=json_responses(list[responses.Event], "A page of events."),
    operation_class=operation_with(*catalog.EVENTS_PARAMETERS),
)
async def get_events(request: AnyRequest, context: Context) -> Answer:
    """Return events with their markets and tags."""
    return json_response(await catalog.list_events(context, Query.of(request)))


@get(
    "/events/keyset",
    responses=json_responses(responses.EventKeyset, "A page of events."),
    operation_class=operation_with(*catalog.EVENT_KEYSET_PARAMETERS),
)
async def get_events_after(request: AnyRequest, context: Context) -> Answer:
    """Return events after a cursor, and the cursor of the next page."""
    return json_response(await catalog.list_events_after(context, Query.of(request)))


@get(
    "/events/pagination",
    responses=json_responses(responses.EventPage, "A page of events."),
    operation_class=operation_with(*catalog.EVENTS_PARAMETERS),
)
async def get_event_page(request: AnyRequest, context: Context) -> Answer:
    """Return events, and the number of all that match."""
    return json_response(await catalog.list_event_page(context, Query.of(request)))


@get("/events/{event_id:str}", responses=EVENT, operation_class=ONE_EVENT)
async def get_event(request: AnyRequest, context: Context, event_id: FromPath[str]) -> Answer:
    """Return the event of an id."""
    return json_response(await catalog.find_event(context, Query.of(request), event_id))


@get("/events/slug/{slug:str}", responses=EVENT, operation_class=ONE_EVENT)
async def get_event_by_slug(request: AnyRequest, context: Context, slug: FromPath[str]) -> Answer:
    """Return the event of a slug."""
    return json_response(await catalog.find_event_by_slug(context, Query.of(request), slug))


@get(
    "/events/{event_id:str}/tags",
    responses=json_responses(list[responses.TagResponse], "The tags."),
    operation_class=NO_PARAMETERS,
)
async def get_event_tags(request: AnyRequest, context: Context, event_id: FromPath[str]) -> Answer:
    """Return the tags of an event."""
    return json_response(await catalog.list_event_tags(context, Query.of(request), event_id))


@get(
    "/events/{event_id:str}/comments/count",
    responses=json_responses(responses.Count, "Always zero."),
    operation_class=NO_PARAMETERS,
)
async def get_comment_count(
    request: AnyRequest, context: Context, event_id: FromPath[str]
) -> Answer:
    """Return the number of an event's comments: always zero."""
    await catalog.check_event(context, Query.of(request), event_id)
    return json_response(responses.Count(count=0))


@get(
    "/markets",
    responses=json_responses(list[responses.MarketResponse], "A page of markets."),
    operation_class=operation_with(*catalog.MARKETS_PARAMETERS),
)
async def get_markets(request: AnyRequest, context: Context) -> Answer:
    """Return markets with their events."""
    return json_response(await catalog.list_markets(context, Query.of(request)))


@get(
    "/markets/keyset",
    responses=json_responses(responses.MarketKeyset, "A page of markets."),
    operation_class=operation_with(*catalog.MARKET_KEYSET_PARAMETERS),
)
async def get_markets_after(request: AnyRequest, context: Context) -> Answer:
    """Return markets after a cursor, and the cursor of the next page."""
    return json_response(await catalog.list_markets_after(context, Query.of(request)))


@get("/markets/{market_id:str}", responses=MARKET, operation_class=ONE_MARKET)
async def get_market(request: AnyRequest, context: Context, market_id: FromPath[str]) -> Answer:
    """Return the market of an id or a condition id."""
    return json_response(await catalog.find_market(context, Query.of(request), market_id))


@get("/markets/slug/{slug:str}", responses=MARKET, operation_class=ONE_MARKET)
async def get_market_by_slug(request: AnyRequest, context: Context, slug: FromPath[str]) -> Answer:
    """Return the market of a slug."""
    return json_response(await catalog.find_market_by_slug(context, Query.of(request), slug))


@get(
    "/markets/{market_id:str}/tags",
    responses=json_responses(list[responses.TagResponse], "The tags."),
    operation_class=NO_PARAMETERS,
)
async def get_market_tags(
    request: AnyRequest, context: Context, market_id: FromPath[str]
) -> Answer:
    """Return the tags of a market's event."""
    return json_response(await catalog.list_market_tags(context, Query.of(request), market_id))


@get(
    "/markets/{market_id:str}/description",
    responses=json_responses(responses.Description, "The market's rules."),
    operation_class=ONE_MARKET,
)
async def get_market_description(
    request: AnyRequest, context: Context, market_id: FromPath[str]
) -> Answer:
    """Return the rules of a market."""
    return json_response(await catalog.describe_market(context, Query.of(request), market_id))


@get(
    "/tags",
    responses=json_responses(list[responses.TagResponse], "A page of tags."),
    operation_class=operation_with(*tags.TAGS_PARAMETERS),
)
async def get_tags(request: AnyRequest, context: Context) -> Answer:
    """Return tags."""
    return json_response(await tags.list_tags(context, Query.of(request)))


@get("/tags/{tag_id:str}", responses=TAG, operation_class=ONE_TAG)
async def get_tag(request: AnyRequest, context: Context, tag_id: FromPath[str]) -> Answer:
    """Return the tag of an id."""
    return json_response(await tags.find_tag(context, Query.of(request), tag_id))


@get("/tags/slug/{slug:str}", responses=TAG, operation_class=ONE_TAG)
async def get_tag_by_slug(request: AnyRequest, context: Context, slug: FromPath[str]) -> Answer:
    """Return the tag of a slug."""
    return json_response(await tags.find_tag_by_slug(context, Query.of(request), slug))


@get(
    ["/tags/{tag_id:str}/related-tags", "/tags/{tag_id:str}/related-tags/tags"],
    responses=json_responses(list[Any], "Always empty."),
    operation_class=RELATED_TAGS,
)
async def get_related_tags(request: AnyRequest, context: Context, tag_id: FromPath[str]) -> Answer:
    """Return the tags related to a tag: always none."""
    await tags.check_tag(context, Query.of(request), tag_id)
    return json_response([])


@get(
    ["/tags/slug/{slug:str}/related-tags", "/tags/slug/{slug:str}/related-tags/tags"],
    responses=json_responses(list[Any], "Always empty."),
    operation_class=RELATED_TAGS,
)
async def get_related_tags_by_slug(
    request: AnyRequest, context: Context, slug: FromPath[str]
) -> Answer:
    """Return the tags related to a tag: always none."""
    await tags.check_tag_by_slug(context, Query.of(request), slug)
    return json_response([])


@get(
    "/public-search",
    responses=json_responses(responses.SearchResult, "The matches."),
    operation_class=operation_with(*search.PARAMETERS),
)
async def get_search(request: AnyRequest, context: Context) -> Answer:
    """Return the events and tags that match a query."""
    return json_response(await search.public_search(context, Query.of(request)))


@get(
    [
        "/comments",
        "/comments/{comment_id:str}",
        "/comments/user_address/{address:str}",
        "/events/creators",
    ],
    responses=json_responses(list[Any], "An empty list."),
)
async def get_nothing() -> Answer:
    """Return the comments or named creators: there are none."""
    return json_response([])


@get(
    "/sports",
    responses=json_responses(list[responses.Sport], "The sports."),
    operation_class=NO_PARAMETERS,
)
async def get_sports(request: AnyRequest, context: Context) -> Answer:
    """Return the sports of created events."""
    return json_response(await sports.list_sports(context, Query.of(request)))


@get(
    "/sports/market-types",
    responses=json_responses(responses.MarketTypes, "The types."),
    operation_class=NO_PARAMETERS,
)
async def get_market_types(request: AnyRequest, context: Context) -> Answer:
    """Return the types of created sports markets."""
    return json_response(await sports.list_market_types(context, Query.of(request)))


@get(
    "/teams",
    responses=json_responses(list[responses.Team], "A page of teams."),
    operation_class=operation_with(*sports.TEAMS_PARAMETERS),
)
async def get_teams(request: AnyRequest, context: Context) -> Answer:
    """Return the teams of created events."""
    return json_response(await sports.list_teams(context, Query.of(request)))


@get(
    "/series",
    responses=json_responses(list[responses.SeriesResponse], "A page of series."),
    operation_class=operation_with(*sports.SERIES_PARAMETERS),
)
async def get_series_list(request: AnyRequest, context: Context) -> Answer:
    """Return series, which are the leagues of created events."""
    return json_response(await sports.list_series(context, Query.of(request)))


@get(
    "/series/{series_id:str}",
    responses=json_responses(responses.SeriesResponse, "The series."),
    operation_class=operation_with(*sports.ONE_SERIES_PARAMETERS),
)
async def get_series(request: AnyRequest, context: Context, series_id: FromPath[str]) -> Answer:
    """Return the series of an id with its newest events."""
    return json_response(await sports.find_series(context, Query.of(request), series_id))


@get(
    "/series/{series_id:str}/comments/count",
    responses=json_responses(responses.Count, "Always zero."),
    operation_class=NO_PARAMETERS,
)
async def get_series_comment_count(
    request: AnyRequest, context: Context, series_id: FromPath[str]
) -> Answer:
    """Return the number of a series' comments: always zero."""
    await sports.check_series(context, Query.of(request), series_id)
    return json_response(responses.Count(count=0))


@get(
    [
        "/events/creators/{record_id:str}",
        "/profiles/user_address/{record_id:str}",
    ]
)
async def get_unknown(record_id: FromPath[str]) -> Answer:
    """Refuse the id of a named creator or a profile: there is none."""
    raise UnknownRecord("id")


@get("/public-profile", operation_class=operation_with(PROFILE_ADDRESS))
async def get_profile(request: AnyRequest) -> Answer:
    """Refuse the address of a profile: there are no profiles."""
    Query.of(request).check([PROFILE_ADDRESS])
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
    get_sports,
    get_market_types,
    get_teams,
    get_series_list,
    get_series,
    get_series_comment_count,
    get_nothing,
    get_unknown,
    get_profile,
)


def build_app(context: DiscoveryContext) -> Litestar:
    """Return the application of the discovery API, its paths starting at /."""
    return build_application(
        title=TITLE,
        about=ABOUT,
        routes=ROUTES,
        context=context,
        body_of=discovery_body,
    )
