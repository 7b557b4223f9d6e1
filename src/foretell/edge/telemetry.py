"""Telemetry of requests: an id, a log line, a counter and a latency.

Wraps an ASGI application and observes the answers that it sends. Requests are counted by the route
that the framework matched, not by their path, which bounds the number of counters. Headers, queries
and bodies are never logged.
"""

import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

import structlog
from prometheus_client import Counter, Histogram

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]
"""Any ASGI application; frameworks type its arguments differently."""

REQUEST_ID_CHARS_MAX: Final = 64
OTHER: Final = "other"
"""The route label of requests that match no route."""

REQUESTS: Final = Counter(
    "foretell_requests", "requests answered", ["api", "method", "route", "status"]
)
SECONDS: Final = Histogram("foretell_request_seconds", "time to the first byte", ["api"])

log = structlog.get_logger(__name__)


class Telemetry:
    """An API's application with telemetry."""

    def __init__(self, app: AsgiApp, api: str, new_id: Callable[[], str]) -> None:
        self._app = app
        self._api = api
        self._new_id = new_id
        self._seconds = SECONDS.labels(api)
        self._counters: dict[tuple[str, str, int], Counter] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and record its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self.request_id(_given_id(scope))
        started = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
                self._seconds.observe(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, observed)
        route = scope.get("path_template", OTHER)
        self._record(scope["method"], route, status, request_id, started)

    def request_id(self, given: str | None) -> str:
        """Return the id that the client sent if it is safe to log and send back, or a new one."""
        is_safe = given is not None and given.isascii() and given.replace("-", "").isalnum()
        if given is not None and is_safe and len(given) <= REQUEST_ID_CHARS_MAX:
            return given
        return self._new_id()

    def record_answer(
        self, method: str, route: str, status: int, request_id: str, started: float
    ) -> None:
        """Record a request that the fast path has just answered, without the application."""
        self._seconds.observe(time.perf_counter() - started)
        self._record(method, route, status, request_id, started)

    def _record(
        self, method: str, route: str, status: int, request_id: str, started: float
    ) -> None:
        self._counter(method, route, status).inc()
        log.debug(
            "request",
            api=self._api,
            method=method,
            route=route,
            status=status,
            request_id=request_id,
            ms=round((time.perf_counter() - started) * 1000, 3),
        )

    def _counter(self, method: str, route: str, status: int) -> Counter:
        """Return the counter of a method, route and status; a lookup by labels is slow."""
        known = self._counters.get((method, route, status))
        if known is None:
            known = REQUESTS.labels(self._api, method, route, status)
            self._counters[method, route, status] = known
        return known


def _given_id(scope: Scope) -> str | None:
    """Return the request id that the client sent, or None."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            return given
    return None
