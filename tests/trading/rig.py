"""A client of the product's streams."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, Final

from tests.rigs.trading import Trader
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from foretell.trading.streams.hub import Streams

ANSWER_WITHIN_S: Final = 60.0


class Listener:
    """One end of a WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection

    async def send(self, message: object) -> None:
        """Send text as it is, and anything else as JSON."""
        text = message if isinstance(message, str) else json.dumps(message)
        await self.connection.send(text)

    async def text(self) -> str:
        """Return the next frame."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            frame = await self.connection.recv()
        assert isinstance(frame, str)
        return frame

    async def message(self) -> Any:
        """Return the next frame's message."""
        return json.loads(await self.text())

    async def messages(self, count: int) -> list[Any]:
        """Return the next messages, those of arrays one by one."""
        seen: list[Any] = []
        while len(seen) < count:
            frame = await self.message()
            seen += frame if isinstance(frame, list) else [frame]
        assert len(seen) == count
        return seen

    async def silence(self) -> None:
        """Check that no message was sent before now: a ping is answered in its turn."""
        await self.send("PING")
        assert await self.text() == "PONG"

    async def close_code(self) -> int | None:
        """Return the code that the server closes with, once it did."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            with contextlib.suppress(ConnectionClosed):
                while True:
                    await self.connection.recv()
        return self.connection.close_code

    async def subscribe(self, *tokens: str, **fields: Any) -> None:
        """Subscribe to tokens, and wait until that is done."""
        await self.send({"type": "market", "assets_ids": list(tokens), **fields})

    async def log_in(self, trader: Trader, **fields: Any) -> None:
        """Subscribe to a trader's orders and trades, and wait until that is done."""
        auth = {
            "apiKey": trader.key_id,
            "secret": trader.secret,
            "passphrase": trader.passphrase,
        }
        await self.send({"type": "user", "auth": auth, **fields})
        await self.silence()


@contextlib.asynccontextmanager
async def listening(host: str, path: str) -> AsyncIterator[Listener]:
    """Open a WebSocket."""
    async with connect(f"ws://{host}{path}", proxy=None, max_size=None) as connection:
        yield Listener(connection)


async def expect_refusal(listener: Listener, code: str = "malformed_message") -> str:
    """Check the code of a refused message, and return the words for it."""
    refusal = await listener.message()
    assert (refusal["error"], refusal["code"]) == ("INVALID OPERATION", code)
    return str(refusal["message"])


async def no_connections(streams: Streams) -> None:
    """Wait until no stream is connected any more."""
    async with asyncio.timeout(60):
        while streams.connection_count:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)
