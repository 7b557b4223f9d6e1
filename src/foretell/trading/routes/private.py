"""What a key's holder does and sees: orders, cancels, trades, balances, heartbeats."""

from typing import Final

import msgspec
from litestar import Response, delete, get, post
from litestar.di import NamedDependency
from litestar.params import FromPath

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.errors.order import InvalidAssetType, InvalidSignatureType
from foretell.domain.exchange.order import SERVED_SIGNATURE_TYPES
from foretell.domain.portfolio.price_history import SECONDS_MAX
from foretell.domain.values.hexadecimal import Address
from foretell.edge.codec import AnyRequest, decode, json_response
from foretell.edge.openapi import answering, choices, integers, taking, texts
from foretell.edge.query import Query
from foretell.engine.protocol.requests import HeartbeatRequest
from foretell.trading.accounts.accounts import BalanceRecord
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext
from foretell.trading.handlers import history, orders
from foretell.trading.handlers.balances import balance
from foretell.trading.handlers.callers import caller_of
from foretell.trading.handlers.validate_order import Validation, validate_order
from foretell.trading.wire.orders import OrderRecord, TradeRecord
from foretell.trading.wire.pages import Page

Answer = Response[bytes]
Services = NamedDependency[TradingContext]

ASSET_TYPES: Final = ("COLLATERAL", "CONDITIONAL")
SIGNATURE_TYPES: Final = tuple(str(int(served)) for served in SERVED_SIGNATURE_TYPES)
CURSOR: Final = texts("next_cursor", "where to go on; LTE= is the end")
MARKET: Final = texts("market", "condition id")
TOKEN: Final = texts("asset_id", "token id")
CANCELED: Final = answering(orders.CancelReply, "What is out of the book, and what is not.")


class HeartbeatBody(msgspec.Struct):
    """A beat names the one before it; the first names none."""

    heartbeat_id: str | None = None


class HeartbeatRecord(msgspec.Struct, frozen=True):
    """The name of a beat."""

    heartbeat_id: str


@post("/order", status_code=200, responses=answering(orders.PlacementReply, "What became of it."))
async def place_order(request: AnyRequest, context: Services) -> Answer:
    """Place a signed order; sent again it is not placed again, and the answer is the same."""
    caller, raw = await caller_of(request, context)
    return json_response(await orders.place_order(context, caller, raw))


@post(
    "/orders",
    status_code=200,
    responses=answering(list[orders.PlacementReply], "One answer an order, in their order."),
)
async def place_orders(request: AnyRequest, context: Services) -> Answer:
    """Place at most 15 signed orders; each succeeds or fails alone."""
    caller, raw = await caller_of(request, context)
    return json_response(await orders.place_orders(context, caller, raw))


@post("/order/validate", status_code=200, responses=answering(Validation, "Every rule's verdict."))
async def validate(request: AnyRequest, context: Services) -> Answer:
    """Say what every rule makes of an order, without placing it."""
    caller, raw = await caller_of(request, context)
    return json_response(await validate_order(context, caller, raw))


@delete("/order", status_code=200, responses=CANCELED)
async def cancel_order(request: AnyRequest, context: Services) -> Answer:
    """Take an order out of the book."""
    caller, raw = await caller_of(request, context)
    return json_response(await orders.cancel_order(context, caller, raw))


@delete("/orders", status_code=200, responses=CANCELED)
async def cancel_orders(request: AnyRequest, context: Services) -> Answer:
    """Take at most 3000 orders out of the book."""
    caller, raw = await caller_of(request, context)
    return json_response(await orders.cancel_orders(context, caller, raw))


@delete("/cancel-all", status_code=200, responses=CANCELED)
async def cancel_all(request: AnyRequest, context: Services) -> Answer:
    """Take every order of the address out of the books."""
    caller, _ = await caller_of(request, context)
    return json_response(await orders.cancel_all(context, caller))


@delete("/cancel-market-orders", status_code=200, responses=CANCELED)
async def cancel_market_orders(request: AnyRequest, context: Services) -> Answer:
    """Take the address's orders in a market, or in one of its tokens, out of the book."""
    caller, raw = await caller_of(request, context)
    return json_response(await orders.cancel_market_orders(context, caller, raw))


@get(
    "/data/orders",
    responses=answering(Page[OrderRecord], "A page, the newest first."),
    operation_class=taking(texts("id", "order id"), MARKET, TOKEN, CURSOR),
)
async def get_orders(request: AnyRequest, context: Services) -> Answer:
    """Return the address's orders that are in the books."""
    caller, _ = await caller_of(request, context)
    query = Query.of(request)
    answer = await history.live_orders(context, caller.address, query)
    query.check_known()
    return json_response(answer)


@get("/data/order/{order_id:str}", responses=answering(OrderRecord, "The order."))
async def get_order(request: AnyRequest, order_id: FromPath[str], context: Services) -> Answer:
    """Return any order that the address ever placed."""
    caller, _ = await caller_of(request, context)
    return json_response(await history.order(context, caller.address, order_id))


@get(
    ["/data/trades", "/trades"],
    responses=answering(Page[TradeRecord], "A page, the newest first."),
    operation_class=taking(
        texts("id", "trade id"),
        MARKET,
        TOKEN,
        texts("maker_address", "one of the address's own wallets"),
        texts("taker", "the taker's wallet"),
        texts("maker", "a maker's wallet"),
        integers("before", None, 0, SECONDS_MAX, "second before which it matched"),
        integers("after", None, 0, SECONDS_MAX, "second from which on it matched"),
        CURSOR,
    ),
)
async def get_trades(request: AnyRequest, context: Services) -> Answer:
    """Return the trades that the address took part in, as taker or maker."""
    caller, _ = await caller_of(request, context)
    query = Query.of(request)
    answer = await history.trades(context, caller.address, query)
    query.check_known()
    return json_response(answer)


@get(
    ["/balance-allowance", "/balance-allowance/update"],
    responses=answering(BalanceRecord, "In base units."),
    operation_class=taking(
        choices("asset_type", "what is meant", ASSET_TYPES),
        texts("token_id", "token id, for CONDITIONAL"),
        choices("signature_type", "which wallet is meant", SIGNATURE_TYPES, "0"),
    ),
)
async def get_balance_allowance(request: AnyRequest, context: Services) -> Answer:
    """Return what a wallet has and allows; it follows the chain, so there is nothing to update."""
    caller, _ = await caller_of(request, context)
    query = Query.of(request)
    place = _place(context, query)
    wallet = _wallet(context, caller.address, query)
    query.check_known()
    return json_response(await balance(context, wallet, place))


@post(
    ["/heartbeats", "/v1/heartbeats"],
    status_code=200,
    responses=answering(HeartbeatRecord, "What the next beat must name."),
)
async def beat(request: AnyRequest, context: Services) -> Answer:
    """Take a beat; once they began, orders of the key are canceled 10 s after the last one."""
    caller, raw = await caller_of(request, context)
    body = decode(raw, HeartbeatBody)
    heartbeat_id = await context.shards.beat(
        HeartbeatRequest(caller.key_id, caller.address, body.heartbeat_id)
    )
    return json_response(HeartbeatRecord(heartbeat_id))


def _place(context: TradingContext, query: Query) -> TokenRef | None:
    """Return which token is meant, or None for collateral."""
    try:
        kind = query.choice("asset_type", "", ASSET_TYPES)
    except MalformedQuery as error:
        raise InvalidAssetType from error
    token_id = query.text("token_id") or ""
    if kind == "COLLATERAL":
        return None
    if kind != "CONDITIONAL":
        raise InvalidAssetType
    return context.books.find(token_id)


def _wallet(context: TradingContext, address: Address, query: Query) -> Address:
    """Return the wallet that a signature type means."""
    try:
        signature_type = query.choice("signature_type", "0", SIGNATURE_TYPES)
    except MalformedQuery as error:
        raise InvalidSignatureType(SERVED_SIGNATURE_TYPES) from error
    return context.wallets.by_signature_type(address, int(signature_type))


ROUTES: Final = (
    place_order,
    place_orders,
    validate,
    cancel_order,
    cancel_orders,
    cancel_all,
    cancel_market_orders,
    get_orders,
    get_order,
    get_trades,
    get_balance_allowance,
    beat,
)
