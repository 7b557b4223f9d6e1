"""HTTP connections that nobody can keep busy for nothing.

The loop that serves them also runs the engine. A request head without an end would cost everybody,
since the parser's work grows with the square of it, and a connection that says nothing, or half of
something, holds a place that others need.
"""

import asyncio
from typing import Any, Final

from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES_MAX: Final = 64 * 1024
"""Of a request line with its headers, where they do not arrive in one piece."""
SILENCE_DEADLINE_S: Final = 20.0
"""How long a new connection may say nothing."""
REQUEST_DEADLINE_S: Final = 60.0
"""How long a request may be on its way, from its first byte to its last."""

_TOO_LARGE: Final = b"431 Request Header Fields Too Large"
_TOO_SLOW: Final = b"408 Request Timeout"


class BoundedConnection(HttpToolsProtocol):
    """uvicorn's connection, with bounds on how large and how slow a request may be."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_arriving = False
        self._is_in_head = False
        self._head_bytes = 0
        self._deadline: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._deadline = self.loop.call_later(SILENCE_DEADLINE_S, self._end, _TOO_SLOW)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    @override
    def data_received(self, data: bytes) -> None:
        was_arriving = self._is_arriving
        super().data_received(data)
        if not was_arriving:
            self._forget_deadline()
        if not self._is_arriving or self.transport.is_closing():
            return
        if self._deadline is None:
            self._deadline = self.loop.call_later(REQUEST_DEADLINE_S, self._end, _TOO_SLOW)
        if self._is_in_head:
            self._head_bytes += len(data) if was_arriving else 0
            if self._head_bytes > HEAD_BYTES_MAX:
                self._end(_TOO_LARGE)

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
        self._forget_deadline()
        super().on_message_complete()

    @override
    def handle_websocket_upgrade(self) -> None:
        self._is_arriving = False
        self._forget_deadline()
        super().handle_websocket_upgrade()

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _end(self, status: bytes) -> None:
        if not self.transport.is_closing():
            head = b"HTTP/1.1 " + status
            self.transport.write(head + b"\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            self.transport.close()
