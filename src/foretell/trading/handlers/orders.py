"""Placing orders.

The rules that need no book are checked here (`order_rules`); the engine checks the rest, and replies
when the outcome is durable. An order's id is its hash: an order that is sent again is not placed
again. Its first answer is repeated, with the order as it is now beside it.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.order import TooManyOrders
from foretell.domain.exchange.commands import PlaceOrder
from foretell.domain.values.amounts import decimal_text
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import L2Caller
from foretell.engine.protocol.requests import PlaceReply, PlaceRequest
from foretell.trading.context import TradingContext
from foretell.trading.handlers import history
from foretell.trading.handlers.order_rules import OrderCheck, prepare_order
from foretell.trading.refusals import trading_body
from foretell.trading.wire.order_body import parse_batch
from foretell.trading.wire.orders import OrderRecord

ORDERS_PER_BATCH_MAX: Final = 15
PRESENT_WAIT_S: Final = 2.0
"""How long the answer to a repeated order waits for the tables, which have its present state."""

log = structlog.get_logger(__name__)


class PlacementReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The immediate outcome of an order; amounts are those matched, empty when nothing was.

    An order that was sent again has `replayed` and `present`, the order as it is now.
    """

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
    present: OrderRecord | None = None


async def place_order(
    context: TradingContext, caller: L2Caller, raw: bytes, builder: Bytes32 | None = None
) -> PlacementReply:
    """Place the order in the body; return its outcome once that is durable.

    It is attributed to the builder with this code, unless it names one itself.
    """
    command = await prepare_order(OrderCheck(context, caller, raw, builder=builder))
    return await _place(context, caller, command)


async def place_orders(
    context: TradingContext, caller: L2Caller, raw: bytes, builder: Bytes32 | None = None
) -> list[PlacementReply]:
    """Place the orders in the body; return the outcome of each, in their order."""
    entries = parse_batch(raw)
    if not entries:
        raise MalformedOrder("the body must have the key order")
    if len(entries) > ORDERS_PER_BATCH_MAX:
        raise TooManyOrders(len(entries), ORDERS_PER_BATCH_MAX)
    checks = [OrderCheck(context, caller, entry, builder=builder) for entry in entries]
    commands = await asyncio.gather(*map(_try_prepare, checks))
    return list(
        await asyncio.gather(*(_try_place(context, caller, command) for command in commands))
    )


async def _place(context: TradingContext, caller: L2Caller, command: PlaceOrder) -> PlacementReply:
    request = PlaceRequest(command)
    placed = await context.shards.handle(command.condition_id, request, PlaceReply)
    return (
        await repeated_reply(context, caller, placed)
        if placed.is_known
        else placement_reply(placed)
    )


async def repeated_reply(
    context: TradingContext, caller: L2Caller, placed: PlaceReply
) -> PlacementReply:
    """Return the first answer to an order, with the order as it is now.

    The order is placed and the caller must learn that, so tables that cannot be read in time cost
    the answer its `present`, and nothing else.
    """
    first = placement_reply(placed)
    try:
        async with asyncio.timeout(PRESENT_WAIT_S):
            present = await history.order(context, caller.address, first.order_id)
    except (ForetellError, TimeoutError) as cause:
        log.warning("present state not read", order_id=first.order_id, cause=str(cause))
        return first
    return msgspec.structs.replace(first, present=present)


async def _try_prepare(check: OrderCheck) -> PlaceOrder | ForetellError:
    try:
        return await prepare_order(check)
    except ForetellError as refusal:
        return refusal


async def _try_place(
    context: TradingContext, caller: L2Caller, command: PlaceOrder | ForetellError
) -> PlacementReply:
    if isinstance(command, ForetellError):
        return _refused(command)
    try:
        return await _place(context, caller, command)
    except ForetellError as refusal:
        return _refused(refusal)


def placement_reply(placed: PlaceReply) -> PlacementReply:
    """Return the answer to an order that was placed."""
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
