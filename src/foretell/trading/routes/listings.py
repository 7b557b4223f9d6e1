"""Public routes that list markets and their trades, without authentication."""

from typing import Any, Final

from litestar import get
from litestar.params import FromPath

from foretell.domain.errors.order import MalformedBatch
from foretell.edge.codec import AnyRequest, JsonResponse
from foretell.edge.documents.description import describe, tagged
from foretell.edge.query import Query
from foretell.edge.read_answers import read_json, tagged_json
from foretell.trading.context import TradingContext
from foretell.trading.handlers import markets
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context
from foretell.trading.wire.markets import (
    CompactMarketRecord,
    MarketRecord,
    SimplifiedMarketRecord,
    TapeRecord,
    TokenMarketRecord,
    market_record,
    simplified_record,
)
from foretell.trading.wire.pages import Page
from foretell.trading.wire.parameters import CURSOR


async def _page(
    request: AnyRequest,
    context: TradingContext,
    record_of: markets.RecordOf,
    *,
    is_sampling: bool,
) -> JsonResponse:
    query = Query.of(request)
    offset = query.read(CURSOR)
    query.check_known()
    page = await markets.market_page(context, offset, record_of, is_sampling=is_sampling)
    return tagged_json(request, page, kept_s=context.market_pages.limits.kept_s)


def _describe_page(kind: Any) -> dict[str, Any]:
    """Return the description of a route that lists pages of this type."""
    return describe(
        tagged(kind, "A page, the oldest first."),
        CURSOR,
        tag=refused.MARKET_DATA,
        refusals=(MalformedBatch, *refused.PUBLIC_READ),
    )


@get(
    "/markets",
    opt=_describe_page(Page[MarketRecord]),
)
async def get_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return every market with all fields."""
    return await _page(request, context, market_record, is_sampling=False)


@get(
    "/simplified-markets",
    opt=_describe_page(Page[SimplifiedMarketRecord]),
)
async def get_simplified_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return every market with the main fields."""
    return await _page(request, context, simplified_record, is_sampling=False)


@get(
    "/sampling-markets",
    opt=_describe_page(Page[MarketRecord]),
)
async def get_sampling_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the markets that take orders: none has rewards, so all of them are sampled."""
    return await _page(request, context, market_record, is_sampling=True)


@get(
    "/sampling-simplified-markets",
    opt=_describe_page(Page[SimplifiedMarketRecord]),
)
async def get_sampling_simplified_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the markets that take orders with the main fields."""
    return await _page(request, context, simplified_record, is_sampling=True)


@get(
    "/markets/{condition_id:str}",
    opt=describe(
        tagged(MarketRecord, "The market."),
        tag=refused.MARKET_DATA,
        refusals=(*refused.MARKET, *refused.PUBLIC_READ),
    ),
)
async def get_market(
    request: AnyRequest, condition_id: FromPath[str], context: Context
) -> JsonResponse:
    """Return one market."""
    return read_json(request, await markets.market(context, condition_id))


@get(
    "/clob-markets/{condition_id:str}",
    opt=describe(
        tagged(CompactMarketRecord, "The market in compact form."),
        tag=refused.MARKET_DATA,
        refusals=(*refused.MARKET, *refused.PUBLIC_READ),
    ),
)
async def get_compact_market(
    request: AnyRequest, condition_id: FromPath[str], context: Context
) -> JsonResponse:
    """Return the parameters that a client needs to trade one market."""
    return read_json(request, await markets.compact_market(context, condition_id))


@get(
    ["/live-activity/events/{condition_id:str}", "/markets/live-activity/{condition_id:str}"],
    opt=describe(
        tagged(list[TapeRecord], "The newest first."),
        tag=refused.MARKET_DATA,
        refusals=(*refused.MARKET, *refused.TABLES, *refused.PUBLIC_READ),
    ),
)
async def get_tape(
    request: AnyRequest, condition_id: FromPath[str], context: Context
) -> JsonResponse:
    """Return the last 100 trades of one market."""
    return read_json(request, await markets.market_tape(context, condition_id))


@get(
    "/markets-by-token/{token_id:str}",
    opt=describe(
        tagged(TokenMarketRecord, "The market."),
        tag=refused.MARKET_DATA,
        refusals=(*refused.MARKET, *refused.TOKEN, *refused.PUBLIC_READ),
    ),
)
async def get_market_of_token(
    request: AnyRequest, token_id: FromPath[str], context: Context
) -> JsonResponse:
    """Return the market that a token belongs to."""
    return read_json(request, await markets.market_of_token(context, token_id))


ROUTES: Final = (
    get_markets,
    get_simplified_markets,
    get_sampling_markets,
    get_sampling_simplified_markets,
    get_market,
    get_compact_market,
    get_tape,
    get_market_of_token,
)
