"""A stream that its application closes ends in time, whatever its client and the application do."""

import asyncio
from typing import Final

import pytest
from tests.app.http.test_connection_places import connect
from tests.app.http.test_request_pace import close
from tests.app.http.test_stream_connection import a_frame, flood, is_ended
from tests.app.http.test_stream_pace import StreamServer

from foretell.app.http.connection_limits import STREAM_LIMITS
from foretell.app.http.stream_connection import StreamConnection
from foretell.edge.codec import SINK
from foretell.edge.telemetry import Receive, Scope, Send

UVICORN_CLOSES_AFTER_S: Final = 1_000.0
"""By a timer of its own, which is not tested here."""


class Closing:
    """An application that closes its stream after a few messages, and returns then or later."""

    def __init__(self, *, stays: bool) -> None:
        self._stays = stays
        self._may_return = asyncio.Event()
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
        if self._stays:
            await self._may_return.wait()

    def release(self) -> None:
        self._may_return.set()


@pytest.mark.parametrize("stays", [False, True])
def test_a_policy_close_ends_the_connection_of_a_client_that_goes_on_sending(
    *, stays: bool
) -> None:
    app = Closing(stays=stays)
    server = StreamServer(app=app)

    async def go_on_sending() -> None:
        stream = await server.upgraded(await connect(server.host))
        flooding, began_s = asyncio.create_task(flood(stream[1], a_frame(b"x"))), server.loop.time()
        assert await is_ended(stream[0])
        assert server.loop.time() - began_s <= 2 * STREAM_LIMITS.closing_s + 1
        flooding.cancel()
        app.release()
        close(stream)

    server.run(go_on_sending)
    assert app.messages == 3
