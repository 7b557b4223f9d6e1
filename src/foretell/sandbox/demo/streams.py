"""Subscriptions to WebSocket streams, read in the background.

A stream that its server closes is opened again. What was published in between is not sent again, so
a subscription reads it from the API, as every client of such a stream has to.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.runtime.backoff import pauses_s
from foretell.sdk.http import RETRY_STATUSES

FRAMES_KEPT_MAX: Final = 10_000
CATCH_UP_EVERY_S: Final = 1.0
REOPENED_AFTER_S: Final = 0.1
REOPENED_AFTER_S_MAX: Final = 2.0

Frame = dict[str, Any]
CatchUp = Callable[[], Awaitable[Iterable[Frame]]]
"""Reads from the API what a stream may have published while it was closed."""


async def read_nothing() -> Iterable[Frame]:
    """Return no messages: what this stream published while it was closed is not needed."""
    return ()


class MessageStream:
    """The messages of one subscription, kept until they are asked for."""

    def __init__(self, catch_up: CatchUp = read_nothing) -> None:
        self._frames: list[Frame] = []
        self._arrived = asyncio.Event()
        self._catch_up = catch_up
        self._was_closed = False

    def take(self, frame: Frame) -> None:
        """Keep a message."""
        assert len(self._frames) < FRAMES_KEPT_MAX
        self._frames.append(frame)
        self._arrived.set()

    def mark_closed(self) -> None:
        """Count on messages that are missing: from now on waiting reads the API, too."""
        self._was_closed = True
        self._arrived.set()

    async def wait_for(self, what: str, fits: Callable[[Frame], bool], deadline_s: float) -> Frame:
        """Return the first message that fits; wait until it arrives."""
        try:
            async with asyncio.timeout(deadline_s):
                while (frame := await self._find(fits)) is None:
                    await self._wait_for_more()
                return frame
        except TimeoutError as error:
            raise NotInTime(what, deadline_s) from error

    async def _find(self, fits: Callable[[Frame], bool]) -> Frame | None:
        self._arrived.clear()
        missed = await self._read_missed() if self._was_closed else ()
        return next((frame for frame in (*self._frames, *missed) if fits(frame)), None)

    async def _read_missed(self) -> Iterable[Frame]:
        """Return what was published while the stream was closed; nothing while the API is away."""
        try:
            return await self._catch_up()
        except ApiUnreachable:
            return ()
        except ApiRefused as refusal:
            if refusal.status not in RETRY_STATUSES:
                raise
            return ()

    async def _wait_for_more(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CATCH_UP_EVERY_S if self._was_closed else None):
                await self._arrived.wait()


@contextlib.asynccontextmanager
async def subscribed(
    url: str, first: Frame, catch_up: CatchUp = read_nothing
) -> AsyncIterator[MessageStream]:
    """Give the stream of a subscription; it ends with the block."""
    stream = MessageStream(catch_up)
    subscription = msgspec.json.encode(first).decode()
    async with connect(url, proxy=None) as connection:
        await connection.send(subscription)
        reader = asyncio.create_task(_follow(connection, url, subscription, stream))
        try:
            yield stream
        finally:
            reader.cancel()
            await asyncio.wait([reader])


async def _follow(
    connection: ClientConnection, url: str, subscription: str, stream: MessageStream
) -> None:
    """Read a subscription, and open it again whenever it is closed, until cancelled."""
    await _read(connection, stream)
    pauses = pauses_s(REOPENED_AFTER_S, REOPENED_AFTER_S_MAX)
    while True:
        stream.mark_closed()
        await asyncio.sleep(next(pauses))
        with contextlib.suppress(OSError, ConnectionClosed):
            async with connect(url, proxy=None) as reopened:
                await reopened.send(subscription)
                await _read(reopened, stream)


async def _read(connection: ClientConnection, stream: MessageStream) -> None:
    """Keep the messages of a connection until it is closed."""
    with contextlib.suppress(ConnectionClosed):
        async for text in connection:
            try:
                message = msgspec.json.decode(text)
            except msgspec.DecodeError:
                continue
            for frame in message if isinstance(message, list) else [message]:
                stream.take(frame)
