"""Subscriptions to WebSocket streams, read in the background."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect

from foretell.domain.errors.command import NotInTime

FRAMES_KEPT_MAX: Final = 10_000

Frame = dict[str, Any]


class MessageStream:
    """The messages of one subscription, kept until they are asked for."""

    def __init__(self) -> None:
        self._frames: list[Frame] = []
        self._arrived = asyncio.Event()

    def take(self, frame: Frame) -> None:
        """Keep a message."""
        assert len(self._frames) < FRAMES_KEPT_MAX
        self._frames.append(frame)
        self._arrived.set()

    async def wait_for(self, what: str, fits: Callable[[Frame], bool], deadline_s: float) -> Frame:
        """Return the first message that fits; wait until it arrives."""
        try:
            async with asyncio.timeout(deadline_s):
                while True:
                    self._arrived.clear()
                    for frame in self._frames:
                        if fits(frame):
                            return frame
                    await self._arrived.wait()
        except TimeoutError as error:
            raise NotInTime(what, deadline_s) from error


@contextlib.asynccontextmanager
async def subscribed(url: str, first: Frame) -> AsyncIterator[MessageStream]:
    """Give the stream of a subscription; it ends with the block."""
    stream = MessageStream()
    async with connect(url, proxy=None) as connection:
        await connection.send(msgspec.json.encode(first).decode())
        reader = asyncio.create_task(_read(connection, stream))
        try:
            yield stream
        finally:
            reader.cancel()


async def _read(connection: ClientConnection, stream: MessageStream) -> None:
    async for text in connection:
        try:
            message = msgspec.json.decode(text)
        except msgspec.DecodeError:
            continue
        for frame in message if isinstance(message, list) else [message]:
            stream.take(frame)
