"""Connections on which the busiest routes are answered past the framework.

uvicorn's connection makes of a request a dictionary, an object with a life of its own and a task;
for an order that costs more than to judge and to match it. A request that has a route and comes in
the usual way is read and answered by the connection itself; everything else goes on as ever.
"""

import asyncio
import time
from collections.abc import Awaitable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from foretell.app.http.bounded_connection import BoundedConnection
from foretell.edge.fast_route import BODY_BYTES_MAX, FastRequest, FastResponse, FastRoute, Route
from foretell.edge.telemetry import Telemetry

LENGTH_DIGITS_MAX: Final = 5

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus
}


class ServedFastRoute(NamedTuple):
    """A route, the path that it sees, and what watches it."""

    route: FastRoute
    path: str
    telemetry: Telemetry


RequestLine = tuple[bytes, bytes]
"""A method and a path as they stand in the first line of a request."""
FastRoutes = Mapping[RequestLine, ServedFastRoute]

NO_FAST_ROUTES: Final[FastRoutes] = MappingProxyType({})


def served_under(
    prefix: str, fast_routes: Mapping[Route, FastRoute], telemetry: Telemetry
) -> dict[RequestLine, ServedFastRoute]:
    """Return the lanes of an API as they are found under its prefix."""
    return {
        (method.encode(), (prefix + path).encode()): ServedFastRoute(route, path, telemetry)
        for (method, path), route in fast_routes.items()
    }


class _UnusedEvent(asyncio.Event):
    """What uvicorn sets as a body arrives; nobody waits for it here."""

    @override
    def set(self) -> None:
        pass


_UNUSED_EVENT: Final = _UnusedEvent()


class _FrameworkCycle(RequestResponseCycle):
    """A request that took a route, as far as uvicorn's connection looks at one."""

    def __init__(self, served: ServedFastRoute, method: bytes, query: bytes) -> None:
        self.served = served
        self.method = method
        self.query = query
        self.started = time.perf_counter()
        self.message_event = _UNUSED_EVENT
        self.body = bytearray()
        self.more_body = True
        self.keep_alive = True
        self.disconnected = False
        self.response_complete = False


class FastConnection(BoundedConnection):
    """A connection that knows the lanes.

    A connection that is kept has one timer for all its pauses: it looks how long this one has been,
    which costs less than a timer for each.
    """

    def __init__(self, fast_routes: FastRoutes, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._fast_routes = fast_routes
        self._taken: _FrameworkCycle | None = None
        self._idle_since_s: float | None = None
        self._default_headers: list[tuple[bytes, bytes]] = []
        self._default_head = ""

    @override
    def on_headers_complete(self) -> None:
        path, _, query = self.url.partition(b"?")
        method = self.parser.get_method()
        served = self._fast_routes.get((method, path))
        if served is None or not (self._is_usual() and served.route.takes(query)):
            super().on_headers_complete()
            return
        self._is_in_head = False
        self._taken = self.cycle = _FrameworkCycle(served, method, query)

    @override
    def on_message_complete(self) -> None:
        super().on_message_complete()
        taken, self._taken = self._taken, None
        if taken is not None:
            self._begin(taken)

    @override
    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since_s = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._look_again_in(self.timeout_keep_alive)

    @override
    def data_received(self, data: bytes) -> None:
        self._idle_since_s = None
        super().data_received(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_pauses()
        super().connection_lost(exc)

    @override
    def handle_websocket_upgrade(self) -> None:
        self._forget_pauses()
        super().handle_websocket_upgrade()

    @override
    def _unset_keepalive_if_required(self) -> None:
        """Leave the timer alone: it looks for itself."""

    @override
    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for long enough."""
        self.timeout_keep_alive_task = None
        if self._idle_since_s is None:
            return
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._look_again_in(left_s)
        else:
            super().timeout_keep_alive_handler()

    def _look_again_in(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _forget_pauses(self) -> None:
        super()._unset_keepalive_if_required()

    def _is_usual(self) -> bool:
        """Whether nothing about the request asks for what only the framework's way can do."""
        headers = dict(self.headers)
        length = headers.get(b"content-length", b"0")
        return (
            self._is_free()
            and len(length) <= LENGTH_DIGITS_MAX
            and int(length) <= BODY_BYTES_MAX
            and b"transfer-encoding" not in headers
            and not self.expect_100_continue
            and not self.parser.should_upgrade()
            and self.parser.should_keep_alive()
            and self.parser.get_http_version() == "1.1"
            and not self.flow.write_paused
            and not self._is_full()
        )

    def _is_free(self) -> bool:
        """Whether the request before, if there was one, has its answer."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _is_full(self) -> bool:
        busy = max(len(self.connections), len(self.tasks))
        return self.limit_concurrency is not None and busy >= self.limit_concurrency

    def _begin(self, taken: _FrameworkCycle) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers}
        served = taken.served
        method, body = taken.method.decode(), bytes(taken.body)
        call = FastRequest(method, served.path, taken.query, headers, body)
        answer = served.route.answer(call)
        if isinstance(answer, FastResponse):
            self._answer(taken, call, answer)
        else:
            self.tasks.add(self.loop.create_task(self._answer_later(taken, call, answer)))

    async def _answer_later(
        self, taken: _FrameworkCycle, call: FastRequest, awaited: Awaitable[FastResponse]
    ) -> None:
        try:
            self._answer(taken, call, await awaited)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self.tasks.discard(task)

    def _answer(self, taken: _FrameworkCycle, call: FastRequest, answer: FastResponse) -> None:
        telemetry = taken.served.telemetry
        request_id = telemetry.request_id(call.headers.get("x-request-id"))
        taken.response_complete = True
        if not taken.disconnected:
            self.transport.write(self._head(taken, answer, request_id) + answer.body)
            if not taken.keep_alive:
                self.transport.close()
            self.on_response_complete()
        telemetry.record_answer(
            call.method, taken.served.path, answer.status, request_id, taken.started
        )

    def _head(self, taken: _FrameworkCycle, answer: FastResponse, request_id: str) -> bytes:
        retry = "" if answer.retry_after_s is None else f"retry-after: {answer.retry_after_s}\r\n"
        close = "" if taken.keep_alive else "connection: close\r\n"
        return (
            f"{_STATUS_LINES[answer.status]}{self._defaults()}content-type: application/json\r\n"
            f"content-length: {len(answer.body)}\r\n{retry}{close}x-request-id: {request_id}\r\n\r\n"
        ).encode("latin-1")

    def _defaults(self) -> str:
        """Return what every answer of the server says; it is another list each second."""
        headers = self.server_state.default_headers
        if headers is not self._default_headers:
            self._default_headers = headers
            self._default_head = "".join(
                f"{name.decode()}: {value.decode()}\r\n" for name, value in headers
            )
        return self._default_head
