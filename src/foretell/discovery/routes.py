"""Routes of the discovery API: events, markets, tags and a search; read only.

There is no authentication and no header is read but If-None-Match. An answer is one reading transaction on the tables;
the engine is never asked. Routes for comments and named creators, which this installation does not
have, return empty lists.
"""

from pathlib import Path
from typing import Any, Final

from litestar import Litestar, MediaType, get
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.discovery import catalog, responses, search, sports_routes, tags
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.profiles import find_profile
from foretell.discovery.refusals import DOCUMENTED, discovery_body
from foretell.domain.errors.http import MissingParameter, UnknownRecord, UnknownSortField
from foretell.edge.application import build_application
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import STRICT, TEXT, Success, describe, tagged
from foretell.edge.documents.openapi import Api
from foretell.edge.parameters import wallet
from foretell.edge.query import Query
from foretell.edge.read_answers import read_json

TITLE: Final = "Foretell discovery API"
ABOUT: Final = (
    "Events, markets, tags, sports, teams and series. Read only; no authentication. Ids are decimal strings; outcomes,"
    " their prices and token ids are JSON lists in a string."
)

Context = NamedDependency[DiscoveryContext]

PROFILE_ADDRESS: Final = wallet("address", "address of an account or of its wallet")
EVENT: Final = tagged(responses.Event, "The event.")
MARKET: Final = tagged(responses.MarketResponse, "The market.")
TAG: Final = tagged(responses.TagResponse, "The tag.")
PROFILE: Final = tagged(responses.PublicProfileResponse, "The profile.")
ONE_EVENT: Final = catalog.ONE_EVENT_PARAMETERS
ONE_MARKET: Final = catalog.ONE_MARKET_PARAMETERS
ONE_TAG: Final = tags.ONE_TAG_PARAMETERS
RELATED_TAGS: Final = tags.RELATED_TAGS_PARAMETERS


@get(
    ["/", "/status"],
    media_type=MediaType.TEXT,
    opt=describe(Success(str, "OK", TEXT), tag="Status"),
)
async def get_status() -> str:
    """Answer when the API is reachable."""
    return "OK"


@get(
    "/events",
    opt=describe(
        tagged(list[responses.Event], "A page of events."),
        *catalog.EVENTS_PARAMETERS,
        tag="Events",
        refusals=(UnknownSortField,),
    ),
)
async def get_events(request: AnyRequest, context: Context) -> JsonResponse:
    """Return events with their markets and tags."""
    return read_json(request, await catalog.list_events(context, Query.of(request)))


@get(
    "/events/keyset",
    opt=describe(
        tagged(responses.EventKeyset, "A page of events."),
        *catalog.EVENT_KEYSET_PARAMETERS,
        tag="Events",
        refusals=(UnknownSortField,),
    ),
)
async def get_events_after(request: AnyRequest, context: Context) -> JsonResponse:
    """Return events after a cursor, and the cursor of the next page."""
    return read_json(request, await catalog.list_events_after(context, Query.of(request)))


@get(
    "/events/pagination",
    opt=describe(
        tagged(responses.EventPage, "A page of events."),
        *catalog.EVENTS_PARAMETERS,
        tag="Events",
        refusals=(UnknownSortField,),
    ),
)
async def get_event_page(request: AnyRequest, context: Context) -> JsonResponse:
    """Return events, and the number of all that match."""
    return read_json(request, await catalog.list_event_page(context, Query.of(request)))


@get(
    "/events/{event_id:str}",
    opt=describe(EVENT, *ONE_EVENT, tag="Events", refusals=(UnknownRecord,)),
)
async def get_event(request: AnyRequest, context: Context, event_id: FromPath[str]) -> JsonResponse:
    """Return the event of an id."""
    return read_json(request, await catalog.find_event(context, Query.of(request), event_id))


@get(
    "/events/slug/{slug:str}",
    opt=describe(EVENT, *ONE_EVENT, tag="Events", refusals=(UnknownRecord,)),
)
async def get_event_by_slug(
    request: AnyRequest, context: Context, slug: FromPath[str]
) -> JsonResponse:
    """Return the event of a slug."""
    return read_json(request, await catalog.find_event_by_slug(context, Query.of(request), slug))


@get(
    "/events/{event_id:str}/tags",
    opt=describe(
        tagged(list[responses.TagResponse], "The tags."),
        STRICT,
        tag="Events",
        refusals=(UnknownRecord,),
    ),
)
async def get_event_tags(
    request: AnyRequest, context: Context, event_id: FromPath[str]
) -> JsonResponse:
    """Return the tags of an event."""
    return read_json(request, await catalog.list_event_tags(context, Query.of(request), event_id))


@get(
    "/events/{event_id:str}/comments/count",
    opt=describe(
        Success(responses.Count, "Always zero."), STRICT, tag="Comments", refusals=(UnknownRecord,)
    ),
)
async def get_comment_count(
    request: AnyRequest, context: Context, event_id: FromPath[str]
) -> JsonResponse:
    """Return the number of an event's comments: always zero."""
    await catalog.check_event(context, Query.of(request), event_id)
    return json_response(responses.Count(count=0))


@get(
    "/markets",
    opt=describe(
        tagged(list[responses.MarketResponse], "A page of markets."),
        *catalog.MARKETS_PARAMETERS,
        tag="Markets",
        refusals=(UnknownSortField,),
    ),
)
async def get_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return markets with their events."""
    return read_json(request, await catalog.list_markets(context, Query.of(request)))


@get(
    "/markets/keyset",
    opt=describe(
        tagged(responses.MarketKeyset, "A page of markets."),
        *catalog.MARKET_KEYSET_PARAMETERS,
        tag="Markets",
        refusals=(UnknownSortField,),
    ),
)
async def get_markets_after(request: AnyRequest, context: Context) -> JsonResponse:
    """Return markets after a cursor, and the cursor of the next page."""
    return read_json(request, await catalog.list_markets_after(context, Query.of(request)))


@get(
    "/markets/{market_id:str}",
    opt=describe(MARKET, *ONE_MARKET, tag="Markets", refusals=(UnknownRecord,)),
)
async def get_market(
    request: AnyRequest, context: Context, market_id: FromPath[str]
) -> JsonResponse:
    """Return the market of an id or a condition id."""
    return read_json(request, await catalog.find_market(context, Query.of(request), market_id))


@get(
    "/markets/slug/{slug:str}",
    opt=describe(MARKET, *ONE_MARKET, tag="Markets", refusals=(UnknownRecord,)),
)
async def get_market_by_slug(
    request: AnyRequest, context: Context, slug: FromPath[str]
) -> JsonResponse:
    """Return the market of a slug."""
    return read_json(request, await catalog.find_market_by_slug(context, Query.of(request), slug))


@get(
    "/markets/{market_id:str}/tags",
    opt=describe(
        tagged(list[responses.TagResponse], "The tags."),
        STRICT,
        tag="Markets",
        refusals=(UnknownRecord,),
    ),
)
async def get_market_tags(
    request: AnyRequest, context: Context, market_id: FromPath[str]
) -> JsonResponse:
    """Return the tags of a market's event."""
    return read_json(request, await catalog.list_market_tags(context, Query.of(request), market_id))


@get(
    "/markets/{market_id:str}/description",
    opt=describe(
        tagged(responses.Description, "The market's rules."),
        *ONE_MARKET,
        tag="Markets",
        refusals=(UnknownRecord,),
    ),
)
async def get_market_description(
    request: AnyRequest, context: Context, market_id: FromPath[str]
) -> JsonResponse:
    """Return the rules of a market."""
    return read_json(request, await catalog.describe_market(context, Query.of(request), market_id))


@get(
    "/tags",
    opt=describe(
        tagged(list[responses.TagResponse], "A page of tags."),
        *tags.TAGS_PARAMETERS,
        tag="Tags",
        refusals=(UnknownSortField,),
    ),
)
async def get_tags(request: AnyRequest, context: Context) -> JsonResponse:
    """Return tags."""
    return read_json(request, await tags.list_tags(context, Query.of(request)))


@get("/tags/{tag_id:str}", opt=describe(TAG, *ONE_TAG, tag="Tags", refusals=(UnknownRecord,)))
async def get_tag(request: AnyRequest, context: Context, tag_id: FromPath[str]) -> JsonResponse:
    """Return the tag of an id."""
    return read_json(request, await tags.find_tag(context, Query.of(request), tag_id))


@get("/tags/slug/{slug:str}", opt=describe(TAG, *ONE_TAG, tag="Tags", refusals=(UnknownRecord,)))
async def get_tag_by_slug(
    request: AnyRequest, context: Context, slug: FromPath[str]
) -> JsonResponse:
    """Return the tag of a slug."""
    return read_json(request, await tags.find_tag_by_slug(context, Query.of(request), slug))


@get(
    ["/tags/{tag_id:str}/related-tags", "/tags/{tag_id:str}/related-tags/tags"],
    opt=describe(
        Success(list[Any], "Always empty."), *RELATED_TAGS, tag="Tags", refusals=(UnknownRecord,)
    ),
)
async def get_related_tags(
    request: AnyRequest, context: Context, tag_id: FromPath[str]
) -> JsonResponse:
    """Return the tags related to a tag: always none."""
    await tags.check_tag(context, Query.of(request), tag_id)
    return json_response([])


@get(
    ["/tags/slug/{slug:str}/related-tags", "/tags/slug/{slug:str}/related-tags/tags"],
    opt=describe(
        Success(list[Any], "Always empty."), *RELATED_TAGS, tag="Tags", refusals=(UnknownRecord,)
    ),
)
async def get_related_tags_by_slug(
    request: AnyRequest, context: Context, slug: FromPath[str]
) -> JsonResponse:
    """Return the tags related to a tag: always none."""
    await tags.check_tag_by_slug(context, Query.of(request), slug)
    return json_response([])


@get(
    "/public-search",
    opt=describe(
        tagged(responses.SearchResult, "The matches."),
        *search.PARAMETERS,
        tag="Search",
        refusals=(UnknownSortField, MissingParameter),
    ),
)
async def get_search(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the events, tags and profiles that match a query."""
    return read_json(request, await search.public_search(context, Query.of(request)))


@get(
    [
        "/comments",
        "/comments/{comment_id:str}",
        "/comments/user_address/{address:str}",
        "/events/creators",
    ],
    opt=describe(Success(list[Any], "An empty list."), tag="Placeholders"),
)
async def get_nothing() -> JsonResponse:
    """Return the comments or named creators: there are none."""
    return json_response([])


@get(
    [
        "/events/creators/{record_id:str}",
    ],
    opt=describe(Success(None, ""), tag="Placeholders", refusals=(UnknownRecord,)),
)
async def get_unknown(record_id: FromPath[str]) -> JsonResponse:
    """Refuse the id of a named creator: there is none."""
    raise UnknownRecord("id")


@get(
    "/public-profile",
    opt=describe(
        PROFILE,
        PROFILE_ADDRESS,
        tag="Profiles",
        refusals=(UnknownRecord,),
    ),
)
async def get_profile(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the profile of an address, or of its wallet."""
    query = Query.of(request)
    address = query.read(PROFILE_ADDRESS)
    query.check_known()
    return read_json(request, await find_profile(context, address))


@get(
    "/profiles/user_address/{address:str}",
    opt=describe(
        PROFILE,
        tag="Profiles",
        refusals=(UnknownRecord,),
    ),
)
async def get_profile_of(
    request: AnyRequest, address: FromPath[str], context: Context
) -> JsonResponse:
    """Return the profile of an address, or of its wallet."""
    return read_json(request, await find_profile(context, address))


ROUTES: Final = (
    *sports_routes.ROUTES,
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
    get_unknown,
    get_profile,
    get_profile_of,
)


def build_app(context: DiscoveryContext, npm_folder: Path | None = None) -> Litestar:
    """Return the application of the discovery API, its paths starting at /."""
    return build_application(
        api=Api("discovery", TITLE, ABOUT, DOCUMENTED),
        routes=ROUTES,
        context=context,
        body_of=discovery_body,
        npm_folder=npm_folder,
    )
