"""Requests of pages from other origins: which of them may use the APIs from a browser.

A browser states the origin of the page, asks before an unusual request (a preflight), and shows the page
no answer without the server's permission. Credentials are never permitted: an API key signs, no cookie does.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from foretell.domain.errors.http import OriginRefused
from foretell.domain.values.origins import READING_METHODS, CrossOrigin
from foretell.edge.telemetry import AsgiApp, Message, Receive, Scope, Send

PREFLIGHT_KEPT_S: Final = 600
NAMES_BYTES_MAX: Final = 2_000
EXPOSED: Final = b"x-request-id, retry-after, x-throttled-ms, ratelimit-limit, ratelimit-remaining, ratelimit-reset"
"""Headers of answers that a page may read beside the usual ones."""
VARY: Final = (b"vary", b"origin")
"""Where not all origins are permitted, caches keep an answer for each: also of a request without one."""

_NAMES: Final = re.compile(rb"[A-Za-z0-9_, -]*\Z")

Headers = list[tuple[bytes, bytes]]
Refuse = Callable[[Send, OriginRefused], Awaitable[None]]


class CrossOriginApp:
    """An application whose answers have the headers that browsers ask for."""

    def __init__(self, app: AsgiApp, cross_origin: CrossOrigin, refuse: Refuse) -> None:
        self._app = app
        self._cross_origin = cross_origin
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer a preflight, or refuse an origin."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if not self._cross_origin.allows_all:
            send = _sending(send, [VARY])
        origin = _header(scope, b"origin")
        if origin is None:
            await self._app(scope, receive, send)
            return
        page, rules = origin.decode("latin-1"), self._cross_origin
        is_allowed, is_preflight = rules.allows(page), _is_preflight(scope)
        is_change = scope["method"] not in READING_METHODS
        if (is_preflight and not is_allowed) or (
            is_change and not rules.may_change(page, scope["path"])
        ):
            await self._refuse(send, OriginRefused(page))
        elif is_preflight:
            await _permit(scope, send, self._headers(origin))
        elif is_allowed:
            added = [*self._headers(origin), (b"access-control-expose-headers", EXPOSED)]
            await self._app(scope, receive, _sending(send, added))
        else:
            await self._app(scope, receive, send)

    def _headers(self, origin: bytes) -> Headers:
        """Return the headers by which a browser shows an answer to a page of an allowed origin."""
        if self._cross_origin.allows_all:
            return [(b"access-control-allow-origin", b"*")]
        return [(b"access-control-allow-origin", origin)]


def _sending(send: Send, added: Headers) -> Send:
    async def send_with(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *added]}
        await send(message)

    return send_with


async def _permit(scope: Scope, send: Send, headers: Headers) -> None:
    """Answer a preflight: the method and the headers that the page wants to send are permitted."""
    asked = _header(scope, b"access-control-request-headers") or b""
    names = asked if len(asked) <= NAMES_BYTES_MAX and _NAMES.match(asked) else b""
    permitted = [
        *headers,
        (b"access-control-allow-methods", b"GET, POST, DELETE"),
        (b"access-control-allow-headers", names),
        (b"access-control-max-age", str(PREFLIGHT_KEPT_S).encode()),
        (b"content-length", b"0"),
    ]
    await send({"type": "http.response.start", "status": 204, "headers": permitted})
    await send({"type": "http.response.body", "body": b""})


def _is_preflight(scope: Scope) -> bool:
    return (
        scope["method"] == "OPTIONS"
        and _header(scope, b"access-control-request-method") is not None
    )


def _header(scope: Scope, name: bytes) -> Any:
    return next((value for key, value in scope["headers"] if key == name), None)
