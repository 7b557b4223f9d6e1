"""Routes of the discovery API for sports: their markets' types, teams and series."""

from typing import Final

from litestar import get
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.discovery import responses, sports
from foretell.discovery.context import DiscoveryContext
from foretell.domain.errors.http import UnknownRecord, UnknownSortField
from foretell.edge.codec import AnyRequest, JsonResponse, json_response
from foretell.edge.documents.description import STRICT, Success, describe, tagged
from foretell.edge.query import Query
from foretell.edge.read_answers import read_json

Context = NamedDependency[DiscoveryContext]


@get("/sports", opt=describe(tagged(list[responses.Sport], "The sports."), STRICT, tag="Sports"))
async def get_sports(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the sports of created events."""
    return read_json(request, await sports.list_sports(context, Query.of(request)))


@get(
    "/sports/market-types",
    opt=describe(tagged(responses.MarketTypes, "The types."), STRICT, tag="Sports"),
)
async def get_market_types(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the types of created sports markets."""
    return read_json(request, await sports.list_market_types(context, Query.of(request)))


@get(
    "/teams",
    opt=describe(
        tagged(list[responses.Team], "A page of teams."),
        *sports.TEAMS_PARAMETERS,
        tag="Sports",
        refusals=(UnknownSortField,),
    ),
)
async def get_teams(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the teams of created events."""
    return read_json(request, await sports.list_teams(context, Query.of(request)))


@get(
    "/series",
    opt=describe(
        tagged(list[responses.SeriesResponse], "A page of series."),
        *sports.SERIES_PARAMETERS,
        tag="Series",
        refusals=(UnknownSortField,),
    ),
)
async def get_series_list(request: AnyRequest, context: Context) -> JsonResponse:
    """Return series, which are the leagues of created events."""
    return read_json(request, await sports.list_series(context, Query.of(request)))


@get(
    "/series/{series_id:str}",
    opt=describe(
        tagged(responses.SeriesResponse, "The series."),
        *sports.ONE_SERIES_PARAMETERS,
        tag="Series",
        refusals=(UnknownRecord,),
    ),
)
async def get_series(
    request: AnyRequest, context: Context, series_id: FromPath[str]
) -> JsonResponse:
    """Return the series of an id with its newest events."""
    return read_json(request, await sports.find_series(context, Query.of(request), series_id))


@get(
    "/series/{series_id:str}/comments/count",
    opt=describe(
        Success(responses.Count, "Always zero."), STRICT, tag="Comments", refusals=(UnknownRecord,)
    ),
)
async def get_series_comment_count(
    request: AnyRequest, context: Context, series_id: FromPath[str]
) -> JsonResponse:
    """Return the number of a series' comments: always zero."""
    await sports.check_series(context, Query.of(request), series_id)
    return json_response(responses.Count(count=0))


ROUTES: Final = (
    get_sports,
    get_market_types,
    get_teams,
    get_series_list,
    get_series,
    get_series_comment_count,
)
