"""Fast routes: `POST /order`, `DELETE /order` and `GET /book`, without the web framework.

They are answered straight from the connection, which saves more than the whole validation of an
order costs. The application serves the same routes for requests that are sent in an unusual way; a
test checks that both give the same answers.
"""

import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

import msgspec
import structlog

from foretell.domain.errors.families import ForetellError
from foretell.domain.values.hexadecimal import Bytes32
from foretell.edge.auth import L2Caller
from foretell.edge.builder_requests import (
    attributing_builder,
    check_still_attributing,
    code_of,
)
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, Route, SendReply
from foretell.edge.refusals import InternalError
from foretell.edge.throttle import Turn
from foretell.engine.protocol.requests import PlaceReply
from foretell.trading.context import TradingContext
from foretell.trading.handlers import cancels, quotes
from foretell.trading.handlers.order_pipeline import OrderPipeline
from foretell.trading.handlers.order_rules import OrderCheck
from foretell.trading.handlers.orders import placement_reply, repeated_reply
from foretell.trading.refusals import trading_body

log = structlog.get_logger(__name__)

_TOKEN_QUERY: Final = re.compile(rb"token_id=(\d{1,78})\Z")
_ENCODER: Final = msgspec.json.Encoder()

_Handler = Callable[[TradingContext, L2Caller, bytes], Awaitable[object]]


def fast_routes(context: TradingContext) -> Mapping[Route, FastRoute]:
    """Return the fast routes by method and path."""
    place = partial(_begin_order, context, OrderPipeline(context))
    cancel = partial(_begin_for_caller, context, cancels.cancel_order)
    may_send = context.key_ring.names_cached_key
    return {
        ("POST", "/order"): FastRoute(_has_no_query, place, may_send),
        ("DELETE", "/order"): FastRoute(_has_no_query, cancel, may_send),
        ("GET", "/book"): FastRoute(_names_a_token, partial(_reply_book, context)),
    }


def _has_no_query(query: bytes) -> bool:
    return not query


def _names_a_token(query: bytes) -> bool:
    return _TOKEN_QUERY.match(query) is not None


def _begin_order(
    context: TradingContext, pipeline: OrderPipeline, request: FastRequest, reply: SendReply
) -> Coroutine[Any, Any, None] | None:
    """Place an order; a caller whose key is not cached, and an order sent again, need a coroutine."""

    def begin(caller: L2Caller, builder: Bytes32 | None = None) -> None:
        client = "" if request.turn is None else request.turn.address
        check = OrderCheck(context, caller, request.body, builder=builder, client=client)
        pipeline.begin(check, partial(_reply_order, pipeline, reply, check))

    try:
        method, path, _, headers, body, turn = request
        if context.key_ring.builder_dialect(headers) is not None:
            return _begin_attributed(context, request, begin, reply)
        caller = context.key_ring.authenticate_l2_cached(headers, method, path, body)
        if caller is None:
            return _begin_later(_authenticated(context, request), begin, reply)
        if turn is not None and not turn.take(caller.address):
            return _begin_later(_in_turn(context, turn, caller), begin, reply)
        begin(caller)
    except ForetellError as refusal:
        reply(_refused(refusal))
    except Exception:
        log.exception("unhandled error", path=request.path)
        reply(_refused(InternalError()))
    return None


def _reply_order(
    pipeline: OrderPipeline,
    reply: SendReply,
    check: OrderCheck,
    placed: PlaceReply | ForetellError,
) -> None:
    """Answer an order; one that was sent again needs its present state too."""
    if isinstance(placed, ForetellError):
        reply(_refused(placed))
    elif placed.is_known:
        rest = _repeat(check, placed, reply)
        pipeline.start(check, rest, partial(_reply_order, pipeline, reply, check))
    else:
        reply(FastResponse(200, _ENCODER.encode(placement_reply(placed))))


async def _repeat(check: OrderCheck, placed: PlaceReply, reply: SendReply) -> None:
    """Answer an order that was sent again."""
    answer = await repeated_reply(check.context, check.caller, placed)
    reply(FastResponse(200, _ENCODER.encode(answer)))


async def _begin_later(
    waiting: Coroutine[Any, Any, L2Caller], begin: Callable[[L2Caller], None], reply: SendReply
) -> None:
    """Place an order whose caller is known later, or whose turn comes later."""
    try:
        begin(await waiting)
    except ForetellError as refusal:
        reply(_refused(refusal))
    except Exception:
        log.exception("unhandled error", path="/order")
        reply(_refused(InternalError()))


async def _begin_attributed(
    context: TradingContext,
    request: FastRequest,
    begin: Callable[[L2Caller, Bytes32 | None], None],
    reply: SendReply,
) -> None:
    """Place an order that a builder brings; of both the time of signing is checked on arrival."""
    key_ring = context.key_ring
    method, path, _, headers, body, turn = request
    builder: L2Caller | None = None

    async def authenticated() -> L2Caller:
        nonlocal builder
        caller = await key_ring.authenticate_l2(headers, method, path, body)
        builder = await attributing_builder(key_ring, headers, method, path, body)
        if turn is not None and not turn.take(caller.address):
            await _in_turn(context, turn, caller)
            await check_still_attributing(key_ring, builder)
        return caller

    await _begin_later(authenticated(), lambda caller: begin(caller, code_of(builder)), reply)


async def _authenticated(context: TradingContext, request: FastRequest) -> L2Caller:
    """Return the caller of a request when it is the request's turn, or refuse."""
    method, path, _, headers, body, turn = request
    caller = await context.key_ring.authenticate_l2(headers, method, path, body)
    if turn is None or turn.take(caller.address):
        return caller
    return await _in_turn(context, turn, caller)


async def _in_turn(context: TradingContext, turn: Turn, caller: L2Caller) -> L2Caller:
    """Return the caller when it is its request's turn; its key may have been revoked since."""
    await turn.admitted()
    await context.key_ring.check_active(caller.key_id)
    return caller


async def _begin_for_caller(
    context: TradingContext, handler: _Handler, request: FastRequest, reply: SendReply
) -> None:
    """Answer a request that must be signed with an API key."""
    try:
        caller = await _authenticated(context, request)
        answer = FastResponse(200, _ENCODER.encode(await handler(context, caller, request.body)))
    except ForetellError as refusal:
        answer = _refused(refusal)
    except Exception:
        log.exception("unhandled error", path=request.path)
        answer = _refused(InternalError())
    reply(answer)


def _reply_book(context: TradingContext, request: FastRequest, reply: SendReply) -> None:
    token = _TOKEN_QUERY.match(request.query)
    assert token is not None
    try:
        answer = FastResponse(200, quotes.book(context.books, token[1].decode()))
    except ForetellError as refusal:
        answer = _refused(refusal)
    except Exception:
        log.exception("unhandled error", path=request.path)
        answer = _refused(InternalError())
    reply(answer)


def _refused(refusal: ForetellError) -> FastResponse:
    status, body = trading_body(refusal)
    return FastResponse(status, _ENCODER.encode(body), refusal.retry_after_s)
