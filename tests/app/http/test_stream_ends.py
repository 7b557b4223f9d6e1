"""A stream that is closed ends in time, whatever its client and the application do, and lets its server end."""

import asyncio
import contextlib
import struct
from typing import Final

import pytest
import uvloop
from tests.app.http.test_connection_places import connect
from tests.app.http.test_request_pace import close
from tests.app.http.test_stream_connection import (
    CLOSE,
    WITHIN_S,
    Application,
    a_frame,
    a_stream,
    flood,
    is_ended,
    take_nothing,
)
from tests.app.http.test_stream_pace import StreamServer
from tests.rigs.applications import serving
from websockets.protocol import OPEN

from foretell.app.http.connection_limits import STREAM_LIMITS
from foretell.app.http.stream_connection import StreamConnection
from foretell.edge.codec import SINK
from foretell.edge.telemetry import Receive, Scope, Send

UVICORN_CLOSES_AFTER_S: Final = 1_000.0
"""By a timer of its own, which is not tested here."""


class Closing:
    """An application that closes its stream after a few messages, and returns then or later."""

    def __init__(self, stays_s: float) -> None:
        self._stays_s = stays_s
        self.messages = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        stream = scope[SINK]
        assert isinstance(stream, StreamConnection)
        stream.close_timeout = UVICORN_CLOSES_AFTER_S
        while self.messages < 3:
            await receive()
            self.messages += 1
        await send({"type": "websocket.close", "code": 1008})
        await asyncio.sleep(self._stays_s)


@pytest.mark.parametrize(
    "stays_s", [0.0, 2 * STREAM_LIMITS.closing_s - 0.1, UVICORN_CLOSES_AFTER_S]
)
def test_a_policy_close_ends_the_connection_of_a_client_that_goes_on_sending(
    stays_s: float,
) -> None:
    """A finding: an application that returned just before the end got as much time again."""
    app = Closing(stays_s)
    server = StreamServer(app=app)

    async def go_on_sending() -> None:
        stream = await server.upgraded(await connect(server.host))
        flooding, began_s = asyncio.create_task(flood(stream[1], a_frame(b"x"))), server.loop.time()
        assert await is_ended(stream[0])
        assert server.loop.time() - began_s <= 2 * STREAM_LIMITS.closing_s + 1
        flooding.cancel()
        close(stream)

    server.run(go_on_sending)
    assert app.messages == 3


@pytest.mark.anyio
async def test_attack_h2_a_stream_that_its_client_has_closed_lets_the_server_end() -> None:
    """The server failed where it sent such a client a close frame, and sent none to others."""
    app = Application()
    app.sends = b"x" * 1_000_000
    async with contextlib.AsyncExitStack() as streams:
        async with serving(app) as host:
            reader, writer = await streams.enter_async_context(a_stream(host))
            await take_nothing(reader, app)
            closing = app.sink
            assert isinstance(closing, StreamConnection)
            writer.write(a_frame(struct.pack("!H", 1000), CLOSE))
            async with asyncio.timeout(WITHIN_S):
                while closing.conn.state is OPEN:  # noqa: ASYNC110 - no event to wait for
                    await asyncio.sleep(0)
            app.sends = b""
            reader, _ = await streams.enter_async_context(a_stream(host))
            await reader.readuntil(b"\r\n\r\n")
        async with asyncio.timeout(WITHIN_S):
            assert await reader.read() == bytes([CLOSE, 2]) + struct.pack("!H", 1012)


def test_a_stream_is_served_by_the_loop_of_an_installation() -> None:
    """A transport of uvloop lacks what one of asyncio has, and every stream failed at its handshake."""
    app = Application()

    async def send() -> None:
        async with serving(app) as host, a_stream(host) as (reader, writer):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
            writer.write(a_frame(b"x" * 60_000))
            async with asyncio.timeout(WITHIN_S):
                await app.reached(1)

    uvloop.run(send())
    assert app.messages == 1
