"""Placing and canceling orders.

Everything that can be judged without the books is judged here, the signature last because it is the
dearest; the rest is the engine's, which answers when the outcome is durable. An order's id is its
hash: sent again, it is not placed again, and the first answer is repeated.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import ForetellError, MalformedHex
from foretell.domain.errors.order import (
    InvalidMarketId,
    InvalidOrderId,
    NothingNamed,
    OwnerMismatch,
    SignerNotCaller,
    TooManyCancels,
    TooManyOrders,
)
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.exchange.order import SignedOrder, check_expiration, check_order
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.edge.auth import L2Caller
from foretell.edge.codec import decode
from foretell.engine.protocol.requests import (
    CancelMatchingRequest,
    CancelOrdersRequest,
    FindPlacementReply,
    FindPlacementRequest,
    PlaceReply,
    PlaceRequest,
)
from foretell.engine.protocol.router import Shards
from foretell.trading.context import TradingContext
from foretell.trading.refusals import trading_body
from foretell.trading.wire.order_body import PlacingBody, parse_batch, parse_placing, signed_order

ORDERS_PER_BATCH_MAX: Final = 15
CANCELS_PER_REQUEST_MAX: Final = 3_000


class PlacementReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of an order at once; amounts are what was matched, empty when nothing was."""

    success: bool
    error_msg: str = msgspec.field(name="errorMsg")
    order_id: str = msgspec.field(name="orderID")
    order_hash: str = msgspec.field(name="orderHash")
    status: str
    making_amount: str = msgspec.field(name="makingAmount")
    taking_amount: str = msgspec.field(name="takingAmount")
    transactions_hashes: Sequence[str] = msgspec.field(name="transactionsHashes")
    trade_ids: Sequence[str] = msgspec.field(name="tradeIDs")
    replayed: bool = False
    code: str = ""


class CancelReply(msgspec.Struct, frozen=True):
    """Which orders are out of the book by this request, and why the others are not."""

    canceled: Sequence[Bytes32]
    not_canceled: Mapping[Bytes32, str]


class _CancelBody(msgspec.Struct):
    order_id: str | None = msgspec.field(name="orderID", default=None)
    order_id_camel: str | None = msgspec.field(name="orderId", default=None)


class _CancelMarketBody(msgspec.Struct):
    market: str | None = None
    asset_id: str | None = None
    asset_id_camel: str | None = msgspec.field(name="assetId", default=None)


async def place_order(context: TradingContext, caller: L2Caller, raw: bytes) -> PlacementReply:
    """Return what became of the order in the body, once that is durable."""
    command = await prepare_order(context, caller, parse_placing(raw))
    return await _place(context.shards, command)


async def place_orders(
    context: TradingContext, caller: L2Caller, raw: bytes
) -> list[PlacementReply]:
    """Return what became of each of the orders in the body, in their order."""
    entries = parse_batch(raw)
    if not entries:
        raise MalformedOrder("there is no order in the body")
    if len(entries) > ORDERS_PER_BATCH_MAX:
        raise TooManyOrders(len(entries), ORDERS_PER_BATCH_MAX)
    commands = await asyncio.gather(*(_try_prepare(context, caller, raw) for raw in entries))
    return list(
        await asyncio.gather(*(_try_place(context.shards, command) for command in commands))
    )


async def prepare_order(context: TradingContext, caller: L2Caller, body: PlacingBody) -> PlaceOrder:
    """Return the command that places the order, or refuse it for what needs no book."""
    order = check_sender(caller, body)
    context.wallets.check_maker(order)
    market, is_yes = context.books.find(order.token_id)
    rules, exchange = market.rules, market.opened.exchange
    profile, order_id = await context.signers.identify(order, exchange)
    order = msgspec.structs.replace(order, profile=profile)
    terms = check_order(order, body.order_type, rules, order_id)
    try:
        check_expiration(order, context.now_ms() // 1000)
        await context.nonces.check(exchange, order)
    except ForetellError:
        if not await _is_known(context.shards, market.condition_id, order_id):
            raise
    return PlaceOrder(
        at_ms=context.now_ms(),
        order_id=order_id,
        order=order,
        order_type=body.order_type,
        is_post_only=body.post_only,
        owner=caller.key_id,
        condition_id=market.condition_id,
        is_yes=is_yes,
        terms=terms,
    )


def check_sender(caller: L2Caller, body: PlacingBody) -> SignedOrder:
    """Return the order in the body, or refuse one that is not the caller's own."""
    if body.owner != caller.key_id:
        raise OwnerMismatch(body.owner)
    order = signed_order(body.order)
    if order.signer != caller.address:
        raise SignerNotCaller(order.signer, caller.address)
    return order


async def cancel_order(context: TradingContext, caller: L2Caller, raw: bytes) -> CancelReply:
    """Take the order that the body names out of the book."""
    body = decode(raw, _CancelBody, MalformedOrder)
    order_id = _order_id(body.order_id or body.order_id_camel)
    return await _cancel(context, CancelOrdersRequest(caller.address, [order_id]))


async def cancel_orders(context: TradingContext, caller: L2Caller, raw: bytes) -> CancelReply:
    """Take the orders that the body names out of the book."""
    ids = decode(raw, list[str], MalformedOrder)
    if len(ids) > CANCELS_PER_REQUEST_MAX:
        raise TooManyCancels(CANCELS_PER_REQUEST_MAX)
    named = CancelOrdersRequest(caller.address, [_order_id(one) for one in ids])
    return await _cancel(context, named)


async def cancel_all(context: TradingContext, caller: L2Caller) -> CancelReply:
    """Take every order of the caller's address out of the book."""
    wallets = context.wallets.of(caller.address)
    return await _cancel(context, CancelMatchingRequest(caller.address, wallets))


async def cancel_market_orders(
    context: TradingContext, caller: L2Caller, raw: bytes
) -> CancelReply:
    """Take the caller's orders in a market, or in one of its tokens, out of the book."""
    body = decode(raw, _CancelMarketBody, MalformedOrder)
    token_id = body.asset_id or body.asset_id_camel
    if not (body.market or token_id):
        raise NothingNamed
    meant = CancelMatchingRequest(
        caller.address,
        context.wallets.of(caller.address),
        condition_id=_condition_id(body.market) if body.market else None,
        token_id=token_id or None,
    )
    return await _cancel(context, meant)


async def _cancel(
    context: TradingContext, question: CancelOrdersRequest | CancelMatchingRequest
) -> CancelReply:
    answer = await context.shards.cancel(question)
    return CancelReply(answer.canceled, answer.not_canceled)


async def _place(shards: Shards, command: PlaceOrder) -> PlacementReply:
    return _reply(await shards.handle(command.condition_id, PlaceRequest(command), PlaceReply))


async def _is_known(shards: Shards, condition_id: Bytes32, order_id: Bytes32) -> bool:
    """Return whether the order was placed before: it is judged once, when it first comes."""
    found = await shards.handle(condition_id, FindPlacementRequest(order_id), FindPlacementReply)
    return found.placement is not None


async def _try_prepare(
    context: TradingContext, caller: L2Caller, raw: msgspec.Raw
) -> PlaceOrder | ForetellError:
    try:
        return await prepare_order(context, caller, parse_placing(raw))
    except ForetellError as refusal:
        return refusal


async def _try_place(shards: Shards, command: PlaceOrder | ForetellError) -> PlacementReply:
    if isinstance(command, ForetellError):
        return _refused(command)
    try:
        return await _place(shards, command)
    except ForetellError as refusal:
        return _refused(refusal)


def _reply(placed: PlaceReply) -> PlacementReply:
    placement = placed.placement
    is_matched = placement.taking_units > 0
    return PlacementReply(
        success=True,
        error_msg="",
        order_id=placement.order_id,
        order_hash=placement.order_id,
        status=placement.status.value.lower(),
        making_amount=decimal_text(placement.making_units) if is_matched else "",
        taking_amount=decimal_text(placement.taking_units) if is_matched else "",
        transactions_hashes=(),
        trade_ids=placement.trade_ids,
        replayed=placed.is_known,
    )


def _refused(refusal: ForetellError) -> PlacementReply:
    _, body = trading_body(refusal)
    assert isinstance(body, dict)
    return PlacementReply(
        success=False,
        error_msg=body["error"],
        order_id="",
        order_hash="",
        status="",
        making_amount="",
        taking_amount="",
        transactions_hashes=(),
        trade_ids=(),
        code=refusal.code,
    )


def _order_id(text: str | None) -> Bytes32:
    try:
        return parse_bytes32(text)
    except MalformedHex as error:
        raise InvalidOrderId from error


def _condition_id(text: str) -> Bytes32:
    try:
        return parse_bytes32(text)
    except MalformedHex as error:
        raise InvalidMarketId from error
