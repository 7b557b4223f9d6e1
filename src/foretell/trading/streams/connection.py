"""One WebSocket connection: what waits to be sent on it, and how it ends.

Whatever is said on a connection is numbered in the connection's own sequence, without a gap. A
consumer that is too slow to take what is said is cut off with a code, never left out in silence.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

FRAMES_QUEUED_MAX: Final = 1_000
BAD_MESSAGES_MAX: Final = 10
CLOSE_WITHIN_S: Final = 5.0
SUBSCRIBE_WITHIN_S: Final = 120.0

CLOSE_NORMAL: Final = 1000
CLOSE_POLICY: Final = 1008
CLOSE_TRY_LATER: Final = 1013

PING: Final = "PING"
PONG: Final = "PONG"
INVALID: Final = "INVALID OPERATION"


class Socket(NamedTuple):
    """A WebSocket as ASGI has it: how to get the next message, and how to send one."""

    receive: Callable[[], Awaitable[Any]]
    send: Callable[[Any], Awaitable[None]]


Handle = Callable[["Connection", str], Awaitable[None]]
"""What a channel does with a text from a client."""


class Connection:
    """What is to be sent on a socket, in order."""

    __slots__ = (
        "_bad_messages",
        "_frames",
        "_sequence",
        "_woken",
        "close_code",
        "ended",
        "is_subscribed",
        "stream_id",
    )

    def __init__(self, stream_id: str) -> None:
        self.stream_id = stream_id
        self.close_code: int | None = None
        self.ended = asyncio.Event()
        self.is_subscribed = False
        self._sequence = 0
        self._bad_messages = 0
        self._frames: deque[str] = deque()
        self._woken = asyncio.Event()

    def say(self, stamp: str, text: str) -> None:
        """Send a message: the tail of an object, which gets its place in the sequence."""
        self.put(self._numbered(stamp, text))

    def say_all(self, stamp: str, texts: Sequence[str]) -> None:
        """Send messages in one frame, as an array."""
        if texts:
            self.put(f"[{','.join(self._numbered(stamp, text) for text in texts)}]")

    def put(self, frame: str) -> None:
        """Send a frame as it is."""
        if self.close_code is not None:
            return
        self._frames.append(frame)
        if len(self._frames) > FRAMES_QUEUED_MAX:
            self._frames.clear()
            self.close(CLOSE_TRY_LATER)
        self._woken.set()

    def refuse(self) -> None:
        """Say that a message was not understood; too many of them end the connection."""
        self._bad_messages += 1
        self.put(INVALID)
        if self._bad_messages >= BAD_MESSAGES_MAX:
            self.close(CLOSE_POLICY)

    def close(self, code: int) -> None:
        """End the connection once everything before was sent."""
        if self.close_code is None:
            self.close_code = code
        self.ended.set()
        self._woken.set()

    def expire(self) -> None:
        """End a connection on which nothing was subscribed to."""
        if not self.is_subscribed:
            self.close(CLOSE_POLICY)

    async def write(self, socket: Socket) -> None:
        """Send what there is to send until the connection ends."""
        while True:
            while self._frames:
                await socket.send({"type": "websocket.send", "text": self._frames.popleft()})
            if self.close_code is not None:
                await socket.send({"type": "websocket.close", "code": self.close_code})
                return
            self._woken.clear()
            await self._woken.wait()

    def _numbered(self, stamp: str, text: str) -> str:
        self._sequence += 1
        return f'{{"sequence":{self._sequence},"stream_id":"{self.stream_id}",{stamp}{text}'


async def converse(
    socket: Socket,
    connection: Connection,
    handle: Handle,
    *,
    subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
    close_within_s: float = CLOSE_WITHIN_S,
) -> None:
    """Read and write until either side ends the connection."""
    opening = await socket.receive()
    assert opening["type"] == "websocket.connect"
    await socket.send({"type": "websocket.accept"})
    expiry = asyncio.get_running_loop().call_later(subscribe_within_s, connection.expire)
    writer = asyncio.create_task(connection.write(socket))
    tasks = {
        writer,
        asyncio.create_task(_read(socket, connection, handle)),
        asyncio.create_task(_end(connection)),
    }
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if connection.close_code is not None:
            await asyncio.wait({writer}, timeout=close_within_s)
    finally:
        expiry.cancel()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
            raise outcome


async def _end(connection: Connection) -> None:
    await connection.ended.wait()


async def _read(socket: Socket, connection: Connection, handle: Handle) -> None:
    """Take messages until the client leaves or the connection is to end."""
    while connection.close_code is None:
        message: Mapping[str, Any] = await socket.receive()
        if message["type"] != "websocket.receive":
            return
        text = message.get("text")
        if text is None:
            connection.refuse()
        elif text.strip().upper() == PING:
            connection.put(PONG)
        else:
            await handle(connection, text)
