"""Prices of several tokens by query, and several orders or volumes by one request."""

from typing import Final

from litestar import get, post
from litestar.status_codes import HTTP_207_MULTI_STATUS

from foretell.domain.errors.order import BatchTooLong, InvalidSide, MalformedBatch
from foretell.edge.codec import AnyRequest, JsonResponse, json_response, read_body
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2
from foretell.edge.query import Query
from foretell.trading.handlers import bulk_reads, quotes
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context, authenticate
from foretell.trading.wire.parameters import SIDE, TOKENS, WITH_DAY

Texts = dict[str, str]


@get(
    "/prices",
    opt=describe(
        Success(dict[str, Texts], "By token and side."),
        TOKENS,
        SIDE,
        tag=refused.MARKET_DATA,
        refusals=(*refused.BATCH, InvalidSide),
    ),
)
async def get_prices_of(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the best prices of the tokens in the query, of one side or both."""
    query = Query.of(request)
    tokens, side = query.read(TOKENS), query.read(SIDE) or ""
    query.check_known()
    wanted = [quotes.TokenQuery(token_id, side) for token_id in tokens]
    return json_response(quotes.prices(context.books, wanted, context.price_side))


@get(
    "/midpoints",
    opt=describe(
        Success(Texts, "By token."), TOKENS, tag=refused.MARKET_DATA, refusals=refused.BATCH
    ),
)
async def get_midpoints_of(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the midpoints of the tokens in the query."""
    return json_response(quotes.midpoints(context.books, _tokens(request)))


@get(
    "/spreads",
    opt=describe(
        Success(Texts, "By token."), TOKENS, tag=refused.MARKET_DATA, refusals=refused.BATCH
    ),
)
async def get_spreads_of(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the spreads of the tokens in the query."""
    return json_response(quotes.spreads(context.books, _tokens(request)))


@post(
    "/data/orders",
    status_code=HTTP_207_MULTI_STATUS,
    opt=describe(
        Success(list[bulk_reads.OrderResult], "A result for each id, in their order.", status=207),
        tag=refused.ORDERS,
        security=L2,
        body=list[bulk_reads.OrderQuery],
        refusals=(*refused.TABLES, *refused.PUBLIC_READ, MalformedBatch, BatchTooLong),
    ),
)
async def find_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Return at most 500 orders that the address ever placed, each with a status of its own."""
    caller, raw = await authenticate(request, context)
    found = await bulk_reads.find_orders(context, caller.address, bulk_reads.parse_orders(raw))
    return json_response(found, HTTP_207_MULTI_STATUS)


@post(
    "/data/volumes",
    status_code=HTTP_207_MULTI_STATUS,
    opt=describe(
        Success(
            list[bulk_reads.VolumeResult], "A result for each market, in their order.", status=207
        ),
        WITH_DAY,
        tag=refused.MARKET_DATA,
        body=list[bulk_reads.VolumeQuery],
        refusals=(*refused.PUBLIC_READ, MalformedBatch, BatchTooLong),
    ),
)
async def find_volumes(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the traded collateral of at most 100 markets, each with a status of its own."""
    query = Query.of(request)
    is_day_wanted = query.read(WITH_DAY)
    query.check_known()
    wanted = bulk_reads.parse_volumes(await read_body(request))
    found = await bulk_reads.find_volumes(context, wanted, is_day_wanted=is_day_wanted)
    return json_response(found, HTTP_207_MULTI_STATUS)


def _tokens(request: AnyRequest) -> list[quotes.TokenQuery]:
    query = Query.of(request)
    tokens = query.read(TOKENS)
    query.check_known()
    return [quotes.TokenQuery(token_id) for token_id in tokens]


ROUTES: Final = (get_prices_of, get_midpoints_of, get_spreads_of, find_orders, find_volumes)
