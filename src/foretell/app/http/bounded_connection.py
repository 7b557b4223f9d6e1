"""HTTP connections with limits on size and time, so that no client keeps the server busy for nothing.

The event loop that serves them may also run the engine. A request head without an end would slow
down every client, because the parser's work grows with its square, and a connection that sends nothing,
or half a request, holds a place that another client needs.
"""

import asyncio
from typing import Any, Final, NamedTuple

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
_TOO_SLOW: Final = b"408 Request Timeout"


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


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection with a deadline for the request that arrives, and a limit for its head.

    There is no hook for either in uvicorn, so this overrides the parser's callbacks, calls the original in
    each, and keeps its own state next to uvicorn's: `_is_arriving` from the first byte of a request to its
    last, `_is_in_head` until its headers are complete. `pyproject.toml` pins uvicorn below its next minor version.
    """

    def __init__(
        self, *arguments: Any, limits: ConnectionLimits = CONNECTION_LIMITS, **named: Any
    ) -> None:
        super().__init__(*arguments, **named)
        self._limits = limits
        self._is_arriving = False
        self._is_in_head = False
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._begin_deadline(self._limits.silence_deadline_s)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        was_arriving = self._is_arriving
        super().data_received(data)
        if not was_arriving:
            self._cancel_deadline()
        if not self._is_arriving or self.transport.is_closing():
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
    def handle_websocket_upgrade(self) -> None:
        self._is_arriving = False
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def _begin_deadline(self, seconds: float) -> None:
        self._deadline = self.loop.call_later(seconds, self._refuse, _TOO_SLOW)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _refuse(self, status: bytes) -> None:
        """Answer with an error status, and close the connection."""
        if not self.transport.is_closing():
            head = b"HTTP/1.1 " + status
            self.transport.write(head + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
