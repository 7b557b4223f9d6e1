"""HTTP connections with limits on size and time, so that no client keeps the server busy for nothing.

The event loop that serves them may also run the engine. A request head without an end would slow
down every client, because the parser's work grows with its square, and a connection that sends nothing,
or half a request, holds a place that another client needs.
"""

import asyncio
from typing import Any, Final, NamedTuple, Protocol

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_NO_UPGRADE: Final = b"400 Bad Request"
_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
TOO_SLOW: Final = b"408 Request Timeout"


class ConnectionLimits(NamedTuple):
    """Bounds of one connection, in bytes and seconds."""

    head_bytes_max: int = 64 * 1024
    """Of a request line with its headers, when they do not arrive in one piece."""
    silence_deadline_s: float = 20.0
    """Until the first byte of a new connection."""
    request_deadline_s: float = 60.0
    """From the first byte of a request to its last."""
    keep_alive_s: float = 75.0
    """From an answer to the first byte of the next request."""


CONNECTION_LIMITS: Final = ConnectionLimits()


class ConnectionOwner(Protocol):
    """The connection in front of the framework's."""

    def framework_is_idle(self) -> None:
        """Every request that was passed on is answered."""

    def framework_upgrades(self) -> None:
        """The transport gets a protocol for a WebSocket."""

    def closes_after_answer(self) -> bool:
        """Return whether a fast request is being answered; the connection closes after it."""


class FrameworkConnection(HttpToolsProtocol):
    """uvicorn's connection with a deadline for the request that arrives, and a limit for its head.

    It is never a transport's protocol: `FastConnection` passes on what it does not take itself, keeps the
    time between requests, and is called when every request is answered. There is no hook for either in
    uvicorn, so this overrides the parser's callbacks, calls the original in each, and keeps its own state next
    to uvicorn's: `_is_arriving` from the first byte of a request to its last, `_is_in_head` until its headers
    are complete. `pyproject.toml` pins uvicorn below its next minor version.
    """

    def __init__(
        self, owner: ConnectionOwner, *arguments: Any, limits: ConnectionLimits, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._owner = owner
        self._limits = limits
        self._is_arriving = False
        self._is_in_head = False
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        was_arriving = self._is_arriving
        super().data_received(data)
        if not self._is_arriving:
            self._report_if_idle()
            return
        if self.transport.is_closing():
            return
        if self._deadline is None:
            self._begin_deadline(self._limits.request_deadline_s)
        if self._is_in_head:
            self._head_bytes += len(data) if was_arriving else 0
            if self._head_bytes > self._limits.head_bytes_max:
                self._refuse(_TOO_LARGE)

    @override
    def on_message_begin(self) -> None:
        self._is_arriving = self._is_in_head = True
        self._head_bytes = 0
        super().on_message_begin()

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head = False
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._is_arriving = False
        self._cancel_deadline()
        super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._report_if_idle()

    @override
    def handle_websocket_upgrade(self) -> None:
        self._is_arriving = False
        self._cancel_deadline()
        self._owner.framework_upgrades()
        if self.scope["method"] == "GET" and not self._has_body():
            super().handle_websocket_upgrade()
        else:
            self._refuse(_NO_UPGRADE)

    @override
    def timeout_keep_alive_handler(self) -> None:
        """Leave the connection open: its owner keeps the time between requests."""
        self.timeout_keep_alive_task = None

    @override
    def shutdown(self) -> None:
        if not self._owner.closes_after_answer():
            super().shutdown()

    def _has_body(self) -> bool:
        """Return whether the headers announce a body, which a request for a WebSocket has not."""
        return any(
            name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")
            for name, value in self.scope["headers"]
        )

    def _report_if_idle(self) -> None:
        """Report that every request that has arrived is answered, if that is so."""
        cycle: RequestResponseCycle | None = self.cycle
        is_answered = cycle is None or cycle.response_complete
        if is_answered and not self._is_arriving and not self.pipeline:
            self._owner.framework_is_idle()

    def _begin_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._refuse, TOO_SLOW)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: bytes) -> None:
        refuse(self.transport, status)


def refuse(transport: asyncio.Transport, status: bytes) -> None:
    """Answer with an error status, and close the connection."""
    if not transport.is_closing():
        head = b"HTTP/1.1 " + status
        transport.write(head + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        transport.close()
