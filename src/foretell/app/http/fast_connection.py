"""Connections that answer the busiest routes without the framework.

For each request uvicorn's connection builds a dictionary, an object with a life of its own and a task;
for an order that costs more than checking and matching it. A request of a fast route is read and answered by the
connection itself when nothing about it is unusual; every other request takes uvicorn's way.
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
    """A fast route, the path that it sees, and the telemetry of its API."""

    route: FastRoute
    path: str
    telemetry: Telemetry


RequestLine = tuple[bytes, bytes]
"""The method and the path of a request, as its first line has them."""
FastRoutes = Mapping[RequestLine, ServedFastRoute]

NO_FAST_ROUTES: Final[FastRoutes] = MappingProxyType({})


def served_under(
    prefix: str, fast_routes: Mapping[Route, FastRoute], telemetry: Telemetry
) -> dict[RequestLine, ServedFastRoute]:
    """Return the fast routes of an API by their request lines under its prefix."""
    return {
        (method.encode(), (prefix + path).encode()): ServedFastRoute(route, path, telemetry)
        for (method, path), route in fast_routes.items()
    }


class _UnusedEvent(asyncio.Event):
    """The event that uvicorn sets when a body arrives; nothing waits for it here."""

    @override
    def set(self) -> None:
        pass


_UNUSED_EVENT: Final = _UnusedEvent()


class _FastCycle(RequestResponseCycle):
    """A request of a fast route, in the place of uvicorn's request cycle.

    uvicorn's connection reads and writes these attributes of `self.cycle` while a body arrives and when
    the connection ends. It calls no method of the cycle, so the parent is never initialized: its
    constructor would build what the fast path avoids.
    """

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
    """A connection with fast routes.

    It puts a cycle of its own into `self.cycle` when the headers of a fast request are complete; uvicorn then
    appends the body to it. When the message is complete, the connection calls the route and writes the answer
    in one piece. All of uvicorn's own state (`tasks`, `flow`, the keep-alive timer) stays as uvicorn expects
    it, so a connection may switch between both ways from one request to the next.

    A kept connection has one timer for all its pauses instead of one for each: when the timer fires, it
    checks how long this pause has lasted, and waits for the rest.
    """

    def __init__(self, fast_routes: FastRoutes, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._fast_routes = fast_routes
        self._fast_cycle: _FastCycle | None = None
        self._idle_since_s: float | None = None
        self._default_headers: list[tuple[bytes, bytes]] = []
        self._default_head = ""

    @override
    def on_headers_complete(self) -> None:
        path, _, query = self.url.partition(b"?")
        method = self.parser.get_method()
        served = self._fast_routes.get((method, path))
        if served is None or not (self._is_plain() and served.route.takes(query)):
            super().on_headers_complete()
            return
        self._is_in_head = False
        self._fast_cycle = self.cycle = _FastCycle(served, method, query)

    @override
    def on_message_complete(self) -> None:
        super().on_message_complete()
        cycle, self._fast_cycle = self._fast_cycle, None
        if cycle is not None:
            self._begin(cycle)

    @override
    def on_response_complete(self) -> None:
        """Count the request and wait for the next; a pipelined one is uvicorn's."""
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since_s = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._check_pause_after(self.timeout_keep_alive)

    @override
    def data_received(self, data: bytes) -> None:
        self._idle_since_s = None
        super().data_received(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timer()
        super().connection_lost(exc)

    @override
    def handle_websocket_upgrade(self) -> None:
        self._cancel_timer()
        super().handle_websocket_upgrade()

    @override
    def _unset_keepalive_if_required(self) -> None:
        """Leave the timer running: it checks the pause itself."""

    @override
    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has been idle for long enough."""
        self.timeout_keep_alive_task = None
        if self._idle_since_s is None:
            return
        left_s = self._idle_since_s + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._check_pause_after(left_s)
        else:
            super().timeout_keep_alive_handler()

    def _check_pause_after(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def _cancel_timer(self) -> None:
        super()._unset_keepalive_if_required()

    def _is_plain(self) -> bool:
        """Return whether the request needs nothing that only uvicorn's way can do."""
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
        """Return whether the previous request, if there was one, is answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return cycle is None or cycle.response_complete

    def _is_full(self) -> bool:
        busy = max(len(self.connections), len(self.tasks))
        return self.limit_concurrency is not None and busy >= self.limit_concurrency

    def _begin(self, cycle: _FastCycle) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in self.headers}
        served = cycle.served
        method, body = cycle.method.decode(), bytes(cycle.body)
        request = FastRequest(method, served.path, cycle.query, headers, body)
        answer = served.route.answer(request)
        if isinstance(answer, FastResponse):
            self._answer(cycle, request, answer)
        else:
            self.tasks.add(self.loop.create_task(self._answer_later(cycle, request, answer)))

    async def _answer_later(
        self, cycle: _FastCycle, request: FastRequest, awaited: Awaitable[FastResponse]
    ) -> None:
        try:
            self._answer(cycle, request, await awaited)
        finally:
            task = asyncio.current_task()
            assert task is not None
            self.tasks.discard(task)

    def _answer(self, cycle: _FastCycle, request: FastRequest, answer: FastResponse) -> None:
        telemetry = cycle.served.telemetry
        request_id = telemetry.request_id(request.headers.get("x-request-id"))
        cycle.response_complete = True
        if not cycle.disconnected:
            self.transport.write(self._head(cycle, answer, request_id) + answer.body)
            if not cycle.keep_alive:
                self.transport.close()
            self.on_response_complete()
        telemetry.record_answer(
            request.method, cycle.served.path, answer.status, request_id, cycle.started
        )

    def _head(self, cycle: _FastCycle, answer: FastResponse, request_id: str) -> bytes:
        retry = "" if answer.retry_after_s is None else f"retry-after: {answer.retry_after_s}\r\n"
        close = "" if cycle.keep_alive else "connection: close\r\n"
        return (
            f"{_STATUS_LINES[answer.status]}{self._defaults()}content-type: application/json\r\n"
            f"content-length: {len(answer.body)}\r\n{retry}{close}x-request-id: {request_id}\r\n\r\n"
        ).encode("latin-1")

    def _defaults(self) -> str:
        """Return the server's default headers; uvicorn replaces their list each second."""
        headers = self.server_state.default_headers
        if headers is not self._default_headers:
            self._default_headers = headers
            self._default_head = "".join(
                f"{name.decode()}: {value.decode()}\r\n" for name, value in headers
            )
        return self._default_head
