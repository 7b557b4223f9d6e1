"""A minimal HTTP server: the floor of every response over HTTP on the same event loop.

It answers each request with the body of the request, and does nothing else: it finds the end of the head, reads
`Content-Length`, and waits for the whole body. It knows requests of this benchmark only, one at a time.
"""

import asyncio
from typing import Final, cast

from typing_extensions import override

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"Content-Length: "


class EchoConnection(asyncio.Protocol):
    """One connection of the server."""

    def __init__(self) -> None:
        self._received = b""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        received = self._received + data if self._received else data
        end = received.find(_HEAD_END)
        if end < 0:
            self._received = received
            return
        begin = received.index(_LENGTH) + len(_LENGTH)
        length = int(received[begin : received.index(b"\r", begin)])
        body = received[end + len(_HEAD_END) :]
        if len(body) < length:
            self._received = received
            return
        self._received = b""
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, body))


async def start_echo() -> asyncio.Server:
    """Serve on a free port of this event loop."""
    return await asyncio.get_running_loop().create_server(EchoConnection, "127.0.0.1", 0)
