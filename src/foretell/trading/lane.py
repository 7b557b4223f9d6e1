"""The fast lane: the routes that a trading program hammers, without the framework in between.

`POST /order`, `DELETE /order` and `GET /book` are plain ASGI here, in front of the application that
serves them too; a test holds both to the same answers. It saves about as much as an order's whole
validation costs.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
import structlog

from foretell.domain.errors import ForetellError
from foretell.domain.request_errors import BodyTooLarge
from foretell.edge.codec import BODY_BYTES_MAX
from foretell.edge.errors import InternalError, trading_body
from foretell.trading import orders, quotes
from foretell.trading.services import TradingServices

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]

log = structlog.get_logger(__name__)

_TOKEN_QUERY: Final = re.compile(rb"token_id=(\d{1,78})\Z")
_JSON: Final = (b"content-type", b"application/json")
_ENCODER: Final = msgspec.json.Encoder()


class FastLane:
    """An application whose busiest routes are taken out of it."""

    def __init__(self, app: App, services: TradingServices) -> None:
        self._app = app
        self._services = services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request here or let the application do it."""
        if scope["type"] == "http":
            path, method = scope["path"], scope["method"]
            if path == "/order" and method in {"POST", "DELETE"}:
                await self._order(scope, receive, send)
                return
            if path == "/book" and method == "GET":
                token = _TOKEN_QUERY.match(scope["query_string"])
                if token is not None:
                    await self._book(token[1].decode(), send)
                    return
        await self._app(scope, receive, send)

    async def _order(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            raw = await _read(receive)
            headers = {
                name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
            }
            method = scope["method"]
            caller = await self._services.key_ring.check_l2(headers, method, scope["path"], raw)
            act = orders.place_order if method == "POST" else orders.cancel_order
            body = _ENCODER.encode(await act(self._services, caller, raw))
        except ForetellError as refusal:
            await _refuse(send, refusal)
        except Exception:
            log.exception("unhandled", path=scope["path"])
            await _refuse(send, InternalError())
        else:
            await _answer(send, 200, body)

    async def _book(self, token_id: str, send: Send) -> None:
        try:
            body = quotes.book(self._services.board, token_id)
        except ForetellError as refusal:
            await _refuse(send, refusal)
        else:
            await _answer(send, 200, body)


async def _read(receive: Receive) -> bytes:
    """Return the body, or refuse one that is too large."""
    chunks, size = [], 0
    while True:
        message = await receive()
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > BODY_BYTES_MAX:
            raise BodyTooLarge(BODY_BYTES_MAX)
        chunks.append(chunk)
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _refuse(send: Send, refusal: ForetellError) -> None:
    status, body = trading_body(refusal)
    retry_after_s = refusal.details.get("retry_after_s")
    extra = () if retry_after_s is None else ((b"retry-after", str(retry_after_s).encode()),)
    await _answer(send, status, _ENCODER.encode(body), extra)


async def _answer(
    send: Send, status: int, body: bytes, extra: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    headers = [_JSON, (b"content-length", str(len(body)).encode()), *extra]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
