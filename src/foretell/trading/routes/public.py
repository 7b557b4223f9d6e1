"""Public routes: books, prices, price histories and lists of markets, without authentication."""

from typing import Final

from litestar import Response, get, post
from litestar.params import FromPath

from foretell.edge.codec import AnyRequest, json_response, read_body
from foretell.edge.openapi import json_responses, operation_with
from foretell.edge.query import Query
from foretell.trading.books.books import BookRecord
from foretell.trading.context import TradingContext
from foretell.trading.handlers import markets, price_history, quotes
from foretell.trading.routes.dependencies import Context, JsonResponse
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
from foretell.trading.wire.parameters import (
    CURSOR,
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
    responses=json_responses(BookRecord, "The book."),
    operation_class=operation_with(TOKEN),
)
async def get_book(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's book; the best price is the last of each side."""
    return _json(quotes.book(context.books, _token(request)))


@post(
    "/books",
    status_code=200,
    responses=json_responses(list[BookRecord], "The books of the tokens that trade."),
)
async def get_books(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the books of at most 500 tokens."""
    return _json(quotes.books(context.books, quotes.parse_tokens(await read_body(request))))


@get(
    "/price",
    responses=json_responses(quotes.PriceRecord, "The price."),
    operation_class=operation_with(TOKEN, SIDE),
)
async def get_price(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the best price of a side: what a taker pays to buy, or receives to sell."""
    query = Query.of(request)
    token_id, side = query.read(TOKEN), query.read(SIDE)
    query.check_known()
    return json_response(quotes.price(context.books, token_id, side, context.price_side))


@post("/prices", status_code=200, responses=json_responses(dict[str, Texts], "By token and side."))
async def get_prices(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the best prices of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.prices(context.books, wanted, context.price_side))


@get(
    "/midpoint",
    responses=json_responses(quotes.MidpointRecord, "The midpoint."),
    operation_class=operation_with(TOKEN),
)
async def get_midpoint(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the midpoint of a token's best prices."""
    return json_response(quotes.midpoint(context.books, _token(request)))


@post("/midpoints", status_code=200, responses=json_responses(Texts, "By token."))
async def get_midpoints(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the midpoints of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.midpoints(context.books, wanted))


@get(
    "/spread",
    responses=json_responses(quotes.SpreadRecord, "The spread."),
    operation_class=operation_with(TOKEN),
)
async def get_spread(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the distance between a token's best prices."""
    return json_response(quotes.spread(context.books, _token(request)))


@post("/spreads", status_code=200, responses=json_responses(Texts, "By token."))
async def get_spreads(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the spreads of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.spreads(context.books, wanted))


@get(
    "/last-trade-price",
    responses=json_responses(quotes.LastTradeRecord, "The last price."),
    operation_class=operation_with(TOKEN),
)
async def get_last_trade_price(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the price and the taker's side of a token's last trade; 404 before the first trade."""
    return json_response(quotes.last_trade(context.books, _token(request)))


@post(
    "/last-trades-prices",
    status_code=200,
    responses=json_responses(
        list[quotes.TokenLastTradeRecord], "The last prices of the tokens that were traded."
    ),
)
async def get_last_trades_prices(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the last prices of at most 500 tokens."""
    wanted = quotes.parse_tokens(await read_body(request))
    return json_response(quotes.last_trades(context.books, wanted))


@get(
    "/tick-size",
    responses=json_responses(quotes.TickSizeRecord, "The tick size."),
    operation_class=operation_with(TOKEN),
)
async def get_tick_size(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's tick size."""
    return json_response(quotes.tick_size(context.books, _token(request)))


@get("/tick-size/{token_id:str}", responses=json_responses(quotes.TickSizeRecord, "The tick size."))
async def get_tick_size_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the tick size of the token in the path."""
    return json_response(quotes.tick_size(context.books, token_id))


@get(
    "/neg-risk",
    responses=json_responses(quotes.NegRiskRecord, "Whether the market is neg-risk."),
    operation_class=operation_with(TOKEN),
)
async def get_neg_risk(request: AnyRequest, context: Context) -> JsonResponse:
    """Return whether exactly one market of the token's group pays."""
    return json_response(quotes.neg_risk(context.books, _token(request)))


@get(
    "/neg-risk/{token_id:str}",
    responses=json_responses(quotes.NegRiskRecord, "Whether the market is neg-risk."),
)
async def get_neg_risk_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return whether the token in the path is neg-risk."""
    return json_response(quotes.neg_risk(context.books, token_id))


@get(
    "/fee-rate",
    responses=json_responses(quotes.FeeRecord, "The fee that a version 1 order must state."),
    operation_class=operation_with(TOKEN),
)
async def get_fee_rate(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the fee that an order for a token must state."""
    return json_response(quotes.fee_rate(context.books, _token(request)))


@get("/fee-rate/{token_id:str}", responses=json_responses(quotes.FeeRecord, "The same."))
async def get_fee_rate_of(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the fee that an order for the token in the path must state."""
    return json_response(quotes.fee_rate(context.books, token_id))


@get(
    "/prices-history",
    responses=json_responses(price_history.HistoryRecord, "The points, the oldest first."),
    operation_class=operation_with(HISTORY_TOKEN, INTERVAL, START_S, END_S, FIDELITY),
)
async def get_prices_history(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a token's price at the end of each bucket: its midpoint, or else its last price."""
    query = Query.of(request)
    answer = await price_history.price_history(context, query)
    query.check_known()
    return json_response(answer)


@post(
    "/batch-prices-history",
    status_code=200,
    responses=json_responses(price_history.BatchHistoryRecord, "By token."),
)
async def get_prices_histories(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the histories of at most 20 tokens."""
    return json_response(await price_history.price_histories(context, await read_body(request)))


async def _page(
    request: AnyRequest,
    context: TradingContext,
    record_of: markets.RecordOf[object],
    *,
    is_sampling: bool,
) -> JsonResponse:
    query = Query.of(request)
    offset = query.read(CURSOR)
    query.check_known()
    return json_response(
        await markets.market_page(context, offset, record_of, is_sampling=is_sampling)
    )


@get(
    "/markets",
    responses=json_responses(Page[MarketRecord], "A page, the oldest first."),
    operation_class=operation_with(CURSOR),
)
async def get_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return every market with all fields."""
    return await _page(request, context, market_record, is_sampling=False)


@get(
    "/simplified-markets",
    responses=json_responses(Page[SimplifiedMarketRecord], "A page, the oldest first."),
    operation_class=operation_with(CURSOR),
)
async def get_simplified_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return every market with the main fields."""
    return await _page(request, context, simplified_record, is_sampling=False)


@get(
    "/sampling-markets",
    responses=json_responses(Page[MarketRecord], "A page, the oldest first."),
    operation_class=operation_with(CURSOR),
)
async def get_sampling_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the markets that take orders: none has rewards, so all of them are sampled."""
    return await _page(request, context, market_record, is_sampling=True)


@get(
    "/sampling-simplified-markets",
    responses=json_responses(Page[SimplifiedMarketRecord], "A page, the oldest first."),
    operation_class=operation_with(CURSOR),
)
async def get_sampling_simplified_markets(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the markets that take orders with the main fields."""
    return await _page(request, context, simplified_record, is_sampling=True)


@get("/markets/{condition_id:str}", responses=json_responses(MarketRecord, "The market."))
async def get_market(condition_id: FromPath[str], context: Context) -> JsonResponse:
    """Return one market."""
    return json_response(await markets.market(context, condition_id))


@get(
    "/clob-markets/{condition_id:str}",
    responses=json_responses(CompactMarketRecord, "The market in compact form."),
)
async def get_compact_market(condition_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the parameters that a client needs to trade one market."""
    return json_response(await markets.compact_market(context, condition_id))


@get(
    ["/live-activity/events/{condition_id:str}", "/markets/live-activity/{condition_id:str}"],
    responses=json_responses(list[TapeRecord], "The newest first."),
)
async def get_tape(condition_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the last 100 trades of one market."""
    return json_response(await markets.market_tape(context, condition_id))


@get("/markets-by-token/{token_id:str}", responses=json_responses(TokenMarketRecord, "The market."))
async def get_market_of_token(token_id: FromPath[str], context: Context) -> JsonResponse:
    """Return the market that a token belongs to."""
    return json_response(await markets.market_of_token(context, token_id))


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
    get_markets,
    get_simplified_markets,
    get_sampling_markets,
    get_sampling_simplified_markets,
    get_market,
    get_compact_market,
    get_tape,
    get_market_of_token,
)
