"""Receive the body of a large answer beside the HTTP parser.

A parser copies each piece of a body, and a reader hands it on to be copied again. But a body whose length is known
and that is not compressed has no structure. While the rest of it arrives, its connection belongs to a receiver, which
appends it to the answer as the kernel gave it. Then the connection is the parser's again.
"""

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from typing_extensions import override

PIECE_BYTES: Final = 256 * 1024
"""The most that is received at once."""


async def receive_rest(
    response: aiohttp.ClientResponse, body: bytearray, progressed: Callable[[], None]
) -> bool:
    """Append the rest of a body of known length to what has been read of it; `progressed` is called for each piece.

    Returns False when the response has to be read through its parser: it is compressed, in chunks, encrypted,
    nearly complete, or pieces of it still wait behind the parser. Nothing was received then.

    Raises aiohttp.ClientPayloadError when the connection ends before the body.
    """
    connection, size = response.connection, response.content_length
    if connection is None or size is None or size - len(body) < PIECE_BYTES:
        return False
    transport, handler = connection.transport, connection.protocol
    if transport is None or handler is None or not _is_plain(response, transport):
        return False
    while waiting := response.content.read_nowait():
        body += waiting
    if not transport.is_reading() or response.content.is_eof():
        return False  # the parser was too full, and has pieces that it has not read
    receiver = _BodyReceiver(handler, body, size, progressed)
    # The parser's own deadline for a piece would end while the pieces pass it by.
    handler.read_timeout = None
    handler.start_timeout()
    transport.set_protocol(receiver)
    try:
        await receiver.ended
    finally:
        transport.set_protocol(handler)
        receiver.release()
    response.content.feed_eof()
    return True


def _is_plain(response: aiohttp.ClientResponse, transport: asyncio.Transport) -> bool:
    """Return whether the next bytes of the connection are the next ones of the body."""
    headers = response.headers
    return (
        "Content-Encoding" not in headers
        and "Transfer-Encoding" not in headers
        and transport.get_extra_info("sslcontext") is None
    )


class _BodyReceiver(asyncio.BufferedProtocol):
    """The protocol of a connection while the rest of a body arrives."""

    def __init__(
        self, handler: ResponseHandler, body: bytearray, size: int, progressed: Callable[[], None]
    ) -> None:
        self._handler = handler
        self._body = body
        self._size = size
        self._progressed = progressed
        self._piece = memoryview(bytearray(PIECE_BYTES))
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def release(self) -> None:
        """Free the memory; uvloop keeps a connection's last receiver."""
        self._body, self._piece = bytearray(), memoryview(b"")

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next piece."""
        return self._piece

    @override
    def buffer_updated(self, nbytes: int) -> None:
        """Append a piece; a connection with bytes behind the body is not used again."""
        missing = self._size - len(self._body)
        self._body += self._piece[: min(nbytes, missing)]
        self._progressed()
        if nbytes > missing:
            self._handler.force_close()
        if nbytes >= missing and not self.ended.done():
            self.ended.set_result(None)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """Pass it on to aiohttp, and end without a complete body."""
        self._handler.connection_lost(exc)
        if not self.ended.done():
            self.ended.set_exception(aiohttp.ClientPayloadError("the body is not complete"))

    @override
    def eof_received(self) -> None:
        """Pass it on to aiohttp; the connection is lost next."""
        self._handler.eof_received()

    @override
    def pause_writing(self) -> None:
        """Pass it on to aiohttp."""
        self._handler.pause_writing()

    @override
    def resume_writing(self) -> None:
        """Pass it on to aiohttp."""
        self._handler.resume_writing()
