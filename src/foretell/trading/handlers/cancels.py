"""Canceling orders: one, several, those of a market, or all of an address."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import MalformedHex
from foretell.domain.errors.order import (
    InvalidMarketId,
    InvalidOrderId,
    NothingNamed,
    TooManyCancels,
)
from foretell.domain.values.hexadecimal import Bytes32, parse_bytes32
from foretell.edge.auth import L2Caller
from foretell.edge.codec import decode
from foretell.engine.protocol.requests import CancelMatchingRequest, CancelOrdersRequest
from foretell.trading.context import TradingContext

CANCELS_PER_REQUEST_MAX: Final = 3_000
CANCELS_BYTES_MAX: Final = 256 * 1024
"""Of a request with so many ids."""


class CancelReply(msgspec.Struct, frozen=True):
    """The orders that this request took out of the book, and for each of the others a reason."""

    canceled: Sequence[Bytes32]
    not_canceled: Mapping[Bytes32, str]


class CancelBody(msgspec.Struct):
    """The order to cancel, named in one of two spellings."""

    order_id: str | None = msgspec.field(name="orderID", default=None)
    order_id_camel: str | None = msgspec.field(name="orderId", default=None)


class CancelMarketBody(msgspec.Struct):
    """The market or the token whose orders are canceled."""

    market: str | None = None
    asset_id: str | None = None
    asset_id_camel: str | None = msgspec.field(name="assetId", default=None)


async def cancel_order(context: TradingContext, caller: L2Caller, raw: bytes) -> CancelReply:
    """Cancel the order that the body names."""
    body = decode(raw, CancelBody, MalformedOrder)
    order_id = _order_id(body.order_id or body.order_id_camel)
    return await _cancel(context, CancelOrdersRequest(caller.address, [order_id]))


async def cancel_orders(context: TradingContext, caller: L2Caller, raw: bytes) -> CancelReply:
    """Cancel the orders that the body names."""
    ids = decode(raw, list[str], MalformedOrder)
    if len(ids) > CANCELS_PER_REQUEST_MAX:
        raise TooManyCancels(CANCELS_PER_REQUEST_MAX)
    named = CancelOrdersRequest(caller.address, [_order_id(one) for one in ids])
    return await _cancel(context, named)


async def cancel_all(context: TradingContext, caller: L2Caller) -> CancelReply:
    """Cancel every order of the caller's address."""
    wallets = context.wallets.of(caller.address)
    return await _cancel(context, CancelMatchingRequest(caller.address, wallets))


async def cancel_market_orders(
    context: TradingContext, caller: L2Caller, raw: bytes
) -> CancelReply:
    """Cancel the caller's orders in a market, or in one of its tokens."""
    body = decode(raw, CancelMarketBody, MalformedOrder)
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
    context: TradingContext, request: CancelOrdersRequest | CancelMatchingRequest
) -> CancelReply:
    reply = await context.shards.cancel(request)
    return CancelReply(reply.canceled, reply.not_canceled)


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
