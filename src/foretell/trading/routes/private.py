"""Private routes: orders, cancels, trades, balances and heartbeats of the caller's address."""

from functools import partial
from typing import Final

import msgspec
from litestar import delete, get, post
from litestar.params import FromPath

from foretell.domain.errors.builders import BuilderHeadersRefused
from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.order import (
    HeartbeatMismatch,
    InvalidAssetType,
    InvalidMarketId,
    InvalidOrderFilter,
    InvalidOrderId,
    InvalidSignatureType,
    InvalidTradeFilter,
    MalformedBatch,
    NoDepositWallets,
    NothingNamed,
    OrderNotFound,
    RequestTaken,
    TooManyCancels,
    TooManyOrders,
)
from foretell.domain.exchange.order import SignatureType
from foretell.edge.codec import AnyRequest, JsonResponse, decode, json_response
from foretell.edge.documents.description import Success, describe
from foretell.edge.documents.security import L2, L2_OR_READONLY
from foretell.edge.query import Query
from foretell.engine.protocol.requests import HeartbeatRequest
from foretell.trading.accounts.accounts import BalanceRecord
from foretell.trading.books.books import TokenRef
from foretell.trading.context import TradingContext
from foretell.trading.handlers import cancels, history, orders
from foretell.trading.handlers.validate_order import Validation, validate_order
from foretell.trading.routes import refused
from foretell.trading.routes.dependencies import (
    Context,
    answer_named,
    answer_once,
    authenticate,
    authenticate_brought,
    authenticate_reader,
)
from foretell.trading.wire import parameters
from foretell.trading.wire.order_body import SentPlacing
from foretell.trading.wire.orders import OrderRecord, TradeRecord
from foretell.trading.wire.pages import Page

CANCELED: Final = Success(cancels.CancelReply, "The canceled orders, and why the others were not.")


class HeartbeatBody(msgspec.Struct):
    """A heartbeat, which names the one before it; the first names none."""

    heartbeat_id: str | None = None


class HeartbeatRecord(msgspec.Struct, frozen=True):
    """The id of a heartbeat."""

    heartbeat_id: str


@post(
    "/order",
    status_code=200,
    opt=describe(
        Success(orders.PlacementReply, "The outcome."),
        tag=refused.ORDERS,
        security=L2,
        body=SentPlacing,
        refusals=(*refused.ORDER, BuilderHeadersRefused),
        is_keyed=True,
    ),
)
async def place_order(request: AnyRequest, context: Context) -> JsonResponse:
    """Place a signed order; sent again, it is not placed again and has the same answer."""
    signed, builder = await authenticate_brought(request, context)
    place = partial(orders.place_order, context, *signed, builder)
    return await answer_named(request, context, signed, place)


@post(
    "/orders",
    status_code=200,
    opt=describe(
        Success(list[orders.PlacementReply], "One outcome for each order, in their order."),
        tag=refused.ORDERS,
        security=L2,
        body=list[SentPlacing],
        refusals=(*refused.ENGINE, MalformedOrder, TooManyOrders, BuilderHeadersRefused),
        is_keyed=True,
    ),
)
async def place_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Place at most 15 signed orders; each succeeds or fails alone."""
    signed, builder = await authenticate_brought(request, context)
    place = partial(orders.place_orders, context, *signed, builder)
    return await answer_named(request, context, signed, place)


@post(
    "/order/validate",
    status_code=200,
    opt=describe(
        Success(Validation, "The result of every rule."),
        tag=refused.ORDERS,
        security=L2,
        body=SentPlacing,
        refusals=refused.ORDER,
    ),
)
async def validate(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the verdict of every rule on an order, without placing it."""
    caller, raw = await authenticate(request, context)
    return json_response(await validate_order(context, caller, raw))


@delete(
    "/order",
    status_code=200,
    opt=describe(
        CANCELED,
        tag=refused.ORDERS,
        security=L2,
        body=cancels.CancelBody,
        refusals=(*refused.CANCEL, InvalidOrderId),
        is_keyed=True,
    ),
)
async def cancel_order(request: AnyRequest, context: Context) -> JsonResponse:
    """Cancel an order."""
    signed = await authenticate(request, context)
    return await answer_named(
        request, context, signed, partial(cancels.cancel_order, context, *signed)
    )


@delete(
    "/orders",
    status_code=200,
    opt=describe(
        CANCELED,
        tag=refused.ORDERS,
        security=L2,
        body=list[str],
        refusals=(*refused.CANCEL, InvalidOrderId, TooManyCancels),
        is_keyed=True,
    ),
)
async def cancel_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Cancel at most 3000 orders."""
    signed = await authenticate(request, context, cancels.CANCELS_BYTES_MAX)
    return await answer_named(
        request, context, signed, partial(cancels.cancel_orders, context, *signed)
    )


@delete(
    "/cancel-all",
    status_code=200,
    opt=describe(
        CANCELED,
        tag=refused.ORDERS,
        security=L2,
        refusals=(*refused.CANCEL, RequestTaken),
        is_keyed=True,
    ),
)
async def cancel_all(request: AnyRequest, context: Context) -> JsonResponse:
    """Cancel every order of the address."""
    signed = await authenticate(request, context)
    cancel = partial(cancels.cancel_all, context, signed.caller)
    return await answer_once(request, context, signed, cancel)


@delete(
    "/cancel-market-orders",
    status_code=200,
    opt=describe(
        CANCELED,
        tag=refused.ORDERS,
        security=L2,
        body=cancels.CancelMarketBody,
        refusals=(*refused.CANCEL, NothingNamed, InvalidMarketId, RequestTaken),
        is_keyed=True,
    ),
)
async def cancel_market_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Cancel the address's orders in a market, or in one of its tokens."""
    signed = await authenticate(request, context)
    cancel = partial(cancels.cancel_market_orders, context, *signed)
    return await answer_once(request, context, signed, cancel)


@get(
    "/data/orders",
    opt=describe(
        Success(Page[OrderRecord], "A page, the newest first."),
        *parameters.ORDER_FILTERS,
        parameters.CURSOR,
        tag=refused.ORDERS,
        security=L2_OR_READONLY,
        refusals=(*refused.TABLES, *refused.PUBLIC_READ, InvalidOrderFilter, MalformedBatch),
    ),
)
async def get_orders(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the address's orders that are in the books."""
    address = await authenticate_reader(request, context)
    query = Query.of(request)
    answer = await history.live_orders(context, address, query)
    query.check_known()
    return json_response(answer)


@get(
    "/data/order/{order_id:str}",
    opt=describe(
        Success(OrderRecord, "The order."),
        tag=refused.ORDERS,
        security=L2_OR_READONLY,
        refusals=(*refused.TABLES, *refused.PUBLIC_READ, OrderNotFound),
    ),
)
async def get_order(request: AnyRequest, order_id: FromPath[str], context: Context) -> JsonResponse:
    """Return any order that the address ever placed."""
    address = await authenticate_reader(request, context)
    return json_response(await history.order(context, address, order_id))


@get(
    ["/data/trades", "/trades"],
    opt=describe(
        Success(Page[TradeRecord], "A page, the newest first."),
        *parameters.TRADE_FILTERS,
        parameters.CURSOR,
        tag=refused.ACCOUNT,
        security=L2_OR_READONLY,
        refusals=(*refused.TABLES, *refused.PUBLIC_READ, InvalidTradeFilter, MalformedBatch),
    ),
)
async def get_trades(request: AnyRequest, context: Context) -> JsonResponse:
    """Return the trades that the address took part in, as taker or maker."""
    address = await authenticate_reader(request, context)
    query = Query.of(request)
    answer = await history.trades(context, address, query)
    query.check_known()
    return json_response(answer)


@get(
    ["/balance-allowance", "/balance-allowance/update"],
    opt=describe(
        Success(BalanceRecord, "In base units."),
        parameters.ASSET_TYPE,
        parameters.BALANCE_TOKEN,
        parameters.SIGNATURE_TYPE,
        tag=refused.ACCOUNT,
        security=L2,
        refusals=(
            *refused.ENGINE,
            *refused.TOKEN,
            InvalidAssetType,
            InvalidSignatureType,
            NoDepositWallets,
        ),
    ),
)
async def get_balance_allowance(request: AnyRequest, context: Context) -> JsonResponse:
    """Return a wallet's balance and allowances; they follow the chain, so nothing is updated."""
    caller, _ = await authenticate(request, context)
    query = Query.of(request)
    token = _token(context, query)
    signature_type = query.read(parameters.SIGNATURE_TYPE)
    query.check_known()
    served = context.wallets.names_by_type
    if signature_type == SignatureType.PROXY and signature_type not in served:
        raise InvalidSignatureType(served)
    wallet = context.wallets.by_signature_type(caller.address, signature_type, caller.dialect)
    record = await history.balance(context, wallet, token, account=caller.address)
    return json_response(record)


@post(
    ["/heartbeats", "/v1/heartbeats"],
    status_code=200,
    opt=describe(
        Success(HeartbeatRecord, "The id that the next heartbeat must name."),
        tag=refused.ORDERS,
        security=L2,
        body=HeartbeatBody,
        refusals=(*refused.ENGINE, HeartbeatMismatch, RequestTaken),
        is_keyed=True,
    ),
)
async def beat(request: AnyRequest, context: Context) -> JsonResponse:
    """Accept a heartbeat; after the first, the key's orders are canceled 10 s after the last one."""
    signed = await authenticate(request, context)
    caller = signed.caller
    named = decode(signed.body, HeartbeatBody).heartbeat_id
    heartbeat = HeartbeatRequest(caller.key_id, caller.address, named)

    async def take() -> HeartbeatRecord:
        return HeartbeatRecord(await context.shards.beat(heartbeat))

    return await answer_once(request, context, signed, take)


def _token(context: TradingContext, query: Query) -> TokenRef | None:
    """Return the token that the balance is of, or None for collateral."""
    asset_type = query.read(parameters.ASSET_TYPE)
    token_id = query.read(parameters.BALANCE_TOKEN) or ""
    if asset_type is parameters.AssetType.COLLATERAL:
        return None
    return context.books.find(token_id)


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
