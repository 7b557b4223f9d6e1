"""The fast lanes: the routes that a trading program hammers, without the framework in between.

`POST /order`, `DELETE /order` and `GET /book` are answered here straight from the connection. The
application serves them too, for whoever sends them in an unusual way; a test holds both to the same
answers. It saves more than an order's whole validation costs.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import msgspec
import structlog

from foretell.domain.errors.families import ForetellError
from foretell.edge.auth import L2Caller
from foretell.edge.fast_route import Answer, Call, Lane, Route
from foretell.edge.refusals import InternalError, trading_body
from foretell.trading.context import TradingServices
from foretell.trading.handlers import orders, quotes

log = structlog.get_logger(__name__)

_TOKEN_QUERY: Final = re.compile(rb"token_id=(\d{1,78})\Z")
_ENCODER: Final = msgspec.json.Encoder()

_Act = Callable[[TradingServices, L2Caller, bytes], Awaitable[object]]


def trading_lanes(services: TradingServices) -> Mapping[Route, Lane]:
    """Return the lanes by their routes."""
    return {
        ("POST", "/order"): Lane(_has_no_query, partial(_act, services, orders.place_order)),
        ("DELETE", "/order"): Lane(_has_no_query, partial(_act, services, orders.cancel_order)),
        ("GET", "/book"): Lane(_names_a_token, partial(_book, services)),
    }


def _has_no_query(query: bytes) -> bool:
    return not query


def _names_a_token(query: bytes) -> bool:
    return _TOKEN_QUERY.match(query) is not None


async def _act(services: TradingServices, act: _Act, call: Call) -> Answer:
    """Answer what only a key's holder may do."""
    try:
        caller = await services.key_ring.check_l2(call.headers, call.method, call.path, call.body)
        return Answer(200, _ENCODER.encode(await act(services, caller, call.body)))
    except ForetellError as refusal:
        return _refused(refusal)
    except Exception:
        log.exception("unhandled", path=call.path)
        return _refused(InternalError())


def _book(services: TradingServices, call: Call) -> Answer:
    token = _TOKEN_QUERY.match(call.query)
    assert token is not None
    try:
        return Answer(200, quotes.book(services.board, token[1].decode()))
    except ForetellError as refusal:
        return _refused(refusal)
    except Exception:
        log.exception("unhandled", path=call.path)
        return _refused(InternalError())


def _refused(refusal: ForetellError) -> Answer:
    status, body = trading_body(refusal)
    return Answer(status, _ENCODER.encode(body), refusal.details.get("retry_after_s"))
