"""Fast routes: `POST /order`, `DELETE /order` and `GET /book`, without the web framework.

They are answered straight from the connection, which saves more than the whole validation of an
order costs. The application serves the same routes for requests that are sent in an unusual way; a
test checks that both give the same answers.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec
import structlog

from foretell.domain.errors.families import ForetellError
from foretell.edge.auth import L2Caller
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, Route
from foretell.edge.refusals import InternalError
from foretell.trading.context import TradingContext
from foretell.trading.handlers import cancels, orders, quotes
from foretell.trading.refusals import trading_body

log = structlog.get_logger(__name__)

_TOKEN_QUERY: Final = re.compile(rb"token_id=(\d{1,78})\Z")
_ENCODER: Final = msgspec.json.Encoder()

_Handler = Callable[[TradingContext, L2Caller, bytes], Awaitable[object]]


def fast_routes(context: TradingContext) -> Mapping[Route, FastRoute]:
    """Return the fast routes by method and path."""
    return {
        ("POST", "/order"): FastRoute(
            _has_no_query, partial(_answer_caller, context, orders.place_order)
        ),
        ("DELETE", "/order"): FastRoute(
            _has_no_query, partial(_answer_caller, context, cancels.cancel_order)
        ),
        ("GET", "/book"): FastRoute(_names_a_token, partial(_book, context)),
    }


def _has_no_query(query: bytes) -> bool:
    return not query


def _names_a_token(query: bytes) -> bool:
    return _TOKEN_QUERY.match(query) is not None


async def _answer_caller(
    context: TradingContext, handler: _Handler, call: FastRequest
) -> FastResponse:
    """Answer a request that must be signed with an API key."""
    try:
        caller = await context.key_ring.check_l2(call.headers, call.method, call.path, call.body)
        return FastResponse(200, _ENCODER.encode(await handler(context, caller, call.body)))
    except ForetellError as refusal:
        return _refused(refusal)
    except Exception:
        log.exception("unhandled error", path=call.path)
        return _refused(InternalError())


def _book(context: TradingContext, call: FastRequest) -> FastResponse:
    token = _TOKEN_QUERY.match(call.query)
    assert token is not None
    try:
        return FastResponse(200, quotes.book(context.books, token[1].decode()))
    except ForetellError as refusal:
        return _refused(refusal)
    except Exception:
        log.exception("unhandled error", path=call.path)
        return _refused(InternalError())


def _refused(refusal: ForetellError) -> FastResponse:
    status, body = trading_body(refusal)
    return FastResponse(status, _ENCODER.encode(body), refusal.retry_after_s)
