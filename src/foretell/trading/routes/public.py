"""Public routes: books, prices, price histories and lists of markets, without authentication."""

from typing import Final

from litestar import Response, get, post
from litestar.params import FromPath

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import BooksTooLarge, InvalidSide, NeverTraded, NoPrice
from foretell.edge.codec import AnyRequest, JsonResponse, json_response, read_body
from foretell.edge.documents.description import Success, describe, tagged
from foretell.edge.query import Query
from foretell.edge.read_answers import tagged_json
from foretell.trading.books.books import BookRecord
from foretell.trading.handlers import price_history, quotes
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import Context
from foretell.trading.wire.parameters import (
    END_S,
    FIDELITY,
    HISTORY_TOKEN,
    INTERVAL,
    SIDE,
    START_S,
    TOKEN,
)

Texts = dict[str, str]


def _token(request: AnyRequest) -> str | None:
    query = Query.of(request)
    token_id = query.read(TOKEN)
    query.check_known()
    return token_id


def _json(raw: bytes) -> JsonResponse:
    return Response(raw, media_type="application/json")


@get(
    "/book",
    opt=describe(
        Success(BookRecord, "The book."), TOKEN, tag=refused.MARKET_DATA, refusals=refused.TOKEN
    ),
)
async def get_book(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's book; the best price is the last of each side."""
    return _json(quotes.book(context.books, _token(request)))


@post(
    "/books",
    status_code=200,
    opt=describe(
        Success(list[BookRecord], "The books of the tokens that trade."),
        tag=refused.MARKET_DATA,
        body=list[quotes.TokenQuery],
        refusals=(*refused.BATCH, BooksTooLarge),
    ),
)
async def get_books(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the books of at most 500 tokens."""
    return _json(quotes.books(context.books, quotes.parse_tokens(await read_body(request))))


@get(
    "/price",
    opt=describe(
        Success(quotes.PriceRecord, "The price."),
        TOKEN,
        SIDE,
        tag=refused.MARKET_DATA,
        refusals=(*refused.TOKEN, InvalidSide, NoPrice),
    ),
)
async def get_price(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the best price of a side: what a taker pays to buy, or receives to sell."""
    query = Query.of(request)
    token_id, side = query.read(TOKEN), query.read(SIDE)
    query.check_known()
    return json_response(quotes.price(context.books, token_id, side, context.price_side))


@post(
    "/prices",
    status_code=200,
    opt=describe(
        Success(dict[str, Texts], "By token and side."),
        tag=refused.MARKET_DATA,
        body=list[quotes.TokenQuery],
        refusals=(*refused.BATCH, InvalidSide),
    ),
)
async def get_prices(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the best prices of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.prices(context.books, wanted, context.price_side))


@get(
    "/midpoint",
    opt=describe(
        Success(quotes.MidpointRecord, "The midpoint."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_midpoint(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the midpoint of a token's best prices."""
    return json_response(quotes.midpoint(context.books, _token(request)))


@post(
    "/midpoints",
    status_code=200,
    opt=describe(
        Success(Texts, "By token."),
        tag=refused.MARKET_DATA,
        body=list[quotes.TokenQuery],
        refusals=refused.BATCH,
    ),
)
async def get_midpoints(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the midpoints of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.midpoints(context.books, wanted))


@get(
    "/spread",
    opt=describe(
        Success(quotes.SpreadRecord, "The spread."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_spread(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the distance between a token's best prices."""
    return json_response(quotes.spread(context.books, _token(request)))


@post(
    "/spreads",
    status_code=200,
    opt=describe(
        Success(Texts, "By token."),
        tag=refused.MARKET_DATA,
        body=list[quotes.TokenQuery],
        refusals=refused.BATCH,
    ),
)
async def get_spreads(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the spreads of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.spreads(context.books, wanted))


@get(
    "/last-trade-price",
    opt=describe(
        Success(quotes.LastTradeRecord, "The last price."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=(*refused.TOKEN, NeverTraded),
    ),
)
async def get_last_trade_price(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the price and the taker's side of a token's last trade; 404 before the first trade."""
    return json_response(quotes.last_trade(context.books, _token(request)))


@post(
    "/last-trades-prices",
    status_code=200,
    opt=describe(
        Success(
            list[quotes.TokenLastTradeRecord], "The last prices of the tokens that were traded."
        ),
        tag=refused.MARKET_DATA,
        body=list[quotes.TokenQuery],
        refusals=refused.BATCH,
    ),
)
async def get_last_trades_prices(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the last prices of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.last_trades(context.books, wanted))


@get(
    "/tick-size",
    opt=describe(
        Success(quotes.TickSizeRecord, "The tick size."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_tick_size(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's tick size."""
    return json_response(quotes.tick_size(context.books, _token(request)))


@get(
    "/tick-size/{token_id:str}",
    opt=describe(
        Success(quotes.TickSizeRecord, "The tick size."),
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_tick_size_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the tick size of the token in the path."""
    return json_response(quotes.tick_size(context.books, token_id))


@get(
    "/neg-risk",
    opt=describe(
        Success(quotes.NegRiskRecord, "Whether the market is neg-risk."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_neg_risk(request: AnyRequest, context: Context) -> JsonResponse:
    """Return whether exactly one market of the token's group pays."""
    return json_response(quotes.neg_risk(context.books, _token(request)))


@get(
    "/neg-risk/{token_id:str}",
    opt=describe(
        Success(quotes.NegRiskRecord, "Whether the market is neg-risk."),
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_neg_risk_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return whether the token in the path is neg-risk."""
    return json_response(quotes.neg_risk(context.books, token_id))


@get(
    "/fee-rate",
    opt=describe(
        Success(quotes.FeeRecord, "The fee that a version 1 order must state."),
        TOKEN,
        tag=refused.MARKET_DATA,
        refusals=refused.TOKEN,
    ),
)
async def get_fee_rate(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the fee that an order for a token must state."""
    return json_response(quotes.fee_rate(context.books, _token(request)))


@get(
    "/fee-rate/{token_id:str}",
    opt=describe(
        Success(quotes.FeeRecord, "The same."), tag=refused.MARKET_DATA, refusals=refused.TOKEN
    ),
)
async def get_fee_rate_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the fee that an order for the token in the path must state."""
    return json_response(quotes.fee_rate(context.books, token_id))


@get(
    "/prices-history",
    opt=describe(
        tagged(price_history.HistoryRecord, "The points, the oldest first."),
        HISTORY_TOKEN,
        INTERVAL,
        START_S,
        END_S,
        FIDELITY,
        tag=refused.MARKET_DATA,
        refusals=(*refused.TOKEN, *refused.PUBLIC_READ),
    ),
)
async def get_prices_history(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's price at the end of each bucket: its midpoint, or else its last price."""
    query = Query.of(request)
    answer = await price_history.price_history(context, query)
    query.check_known()
    return tagged_json(request, answer)


@post(
    "/batch-prices-history",
    status_code=200,
    opt=describe(
        Success(price_history.BatchHistoryRecord, "By token."),
        tag=refused.MARKET_DATA,
        body=price_history.BatchBody,
        refusals=(*refused.BATCH, *refused.TOKEN, *refused.PUBLIC_READ, MalformedQuery),
    ),
)
async def get_prices_histories(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the histories of at most 20 tokens."""
    return _json(await price_history.price_histories(context, await read_body(request)))


ROUTES: Final = (
    get_book,
    get_books,
    get_price,
    get_prices,
    get_midpoint,
    get_midpoints,
    get_spread,
    get_spreads,
    get_last_trade_price,
    get_last_trades_prices,
    get_tick_size,
    get_tick_size_of,
    get_neg_risk,
    get_neg_risk_of,
    get_fee_rate,
    get_fee_rate_of,
    get_prices_history,
    get_prices_histories,
)
