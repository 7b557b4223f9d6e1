"""One WebSocket connection: its queue of frames, and its end.

Messages are numbered in the connection's own sequence, without a gap. A client that reads too slowly
is disconnected with a close code; no message is ever dropped silently. What waits to be sent is bounded in
frames and bytes for a connection, and in bytes over all connections.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

FRAMES_QUEUED_MAX: Final = 1_000
BYTES_QUEUED_MAX: Final = 4 * 1024 * 1024
"""A frame of any size is queued when no other waits: a dump of many books may be larger."""
BYTES_QUEUED_BY_ALL_MAX: Final = 256 * 1024 * 1024
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
    """A WebSocket of ASGI: `receive` returns the next message, `send` sends one."""

    receive: Callable[[], Awaitable[Any]]
    send: Callable[[Any], Awaitable[None]]


Handle = Callable[["Connection", str], Awaitable[None]]
"""Handles a text that a client sent."""


class SendBudget:
    """The bytes that wait to be sent on all connections, by connection.

    Beyond the limit the connection with the most is closed, so slow readers pay for themselves.
    """

    def __init__(self, bytes_max: int = BYTES_QUEUED_BY_ALL_MAX) -> None:
        self._bytes_max = bytes_max
        self._bytes_by_connection: dict[Connection, int] = {}
        self.bytes_queued = 0

    def add(self, connection: "Connection", size: int) -> None:
        """Count bytes that a connection queues, or that it has sent if they are negative."""
        held = self._bytes_by_connection.get(connection, 0) + size
        assert held >= 0
        self.bytes_queued += size
        if held:
            self._bytes_by_connection[connection] = held
        else:
            self._bytes_by_connection.pop(connection, None)
        if size > 0 and self.bytes_queued > self._bytes_max:
            by_connection = self._bytes_by_connection
            max(by_connection, key=by_connection.__getitem__).overflow()


class Connection:
    """The frames to be sent on a socket, in order."""

    __slots__ = (
        "_bad_messages",
        "_budget",
        "_frames",
        "_frames_queued_max",
        "_woken",
        "bytes_queued",
        "close_code",
        "ended",
        "is_subscribed",
        "rest_s",
        "sequence",
        "stream_id",
    )

    def __init__(
        self,
        stream_id: str,
        budget: SendBudget | None = None,
        *,
        frames_queued_max: int = FRAMES_QUEUED_MAX,
    ) -> None:
        self.stream_id = stream_id
        self.bytes_queued = 0
        self.rest_s = 0.0
        self._budget = SendBudget() if budget is None else budget
        self.sequence = 0
        self.close_code: int | None = None
        self.ended = asyncio.Event()
        self.is_subscribed = False
        self._bad_messages = 0
        self._frames_queued_max = frames_queued_max
        self._frames: deque[str] = deque()
        self._woken = asyncio.Event()

    @property
    def frames_queued(self) -> int:
        """The number of frames that wait to be sent."""
        return len(self._frames)

    def send(self, stamp: str, text: str) -> None:
        """Queue a message, given as an object without its opening brace, and number it."""
        self.send_frame(self._numbered(stamp, text))

    def send_together(self, stamp: str, texts: Sequence[str]) -> None:
        """Queue messages as one frame that is an array."""
        if texts:
            self.send_frame(f"[{','.join(self._numbered(stamp, text) for text in texts)}]")

    def send_frame(self, frame: str) -> None:
        """Queue a frame as it is; a queue that is full closes the connection."""
        if self.close_code is not None:
            return
        is_full = bool(self._frames) and self.bytes_queued + len(frame) > BYTES_QUEUED_MAX
        if is_full or len(self._frames) >= self._frames_queued_max:
            self.overflow()
            return
        self._frames.append(frame)
        self._woken.set()
        self._count(len(frame))

    def overflow(self) -> None:
        """Drop what waits, and close: the client reads too slowly."""
        self.drop()
        self.close(CLOSE_TRY_LATER)

    def drop(self) -> None:
        """Drop what waits to be sent."""
        self._frames.clear()
        self._count(-self.bytes_queued)

    def rest(self, seconds: float) -> None:
        """Read no message of the client for a time, which its last one has cost."""
        self.rest_s = seconds

    def refuse(self) -> None:
        """Answer a message that is not understood; too many of them close the connection."""
        self._bad_messages += 1
        self.send_frame(INVALID)
        if self._bad_messages >= BAD_MESSAGES_MAX:
            self.close(CLOSE_POLICY)

    def close(self, code: int) -> None:
        """Close the connection once all queued frames were sent."""
        if self.close_code is None:
            self.close_code = code
        self.ended.set()
        self._woken.set()

    def expire(self) -> None:
        """Close a connection without a subscription."""
        if not self.is_subscribed:
            self.close(CLOSE_POLICY)

    async def write(self, socket: Socket) -> None:
        """Send the queued frames until the connection is closed."""
        while True:
            while self._frames:
                frame = self._frames.popleft()
                await socket.send({"type": "websocket.send", "text": frame})
                self._count(-min(len(frame), self.bytes_queued))
            if self.close_code is not None:
                await socket.send({"type": "websocket.close", "code": self.close_code})
                return
            self._woken.clear()
            await self._woken.wait()

    def _count(self, size: int) -> None:
        """Count characters as bytes: nearly all frames are ASCII."""
        self.bytes_queued += size
        self._budget.add(self, size)

    def _numbered(self, stamp: str, text: str) -> str:
        self.sequence += 1
        return f'{{"sequence":{self.sequence},"stream_id":"{self.stream_id}",{stamp}{text}'


async def run_connection(
    socket: Socket,
    connection: Connection,
    handle: Handle,
    *,
    subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
    close_within_s: float = CLOSE_WITHIN_S,
) -> None:
    """Read and write until either side closes the connection."""
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
        connection.drop()
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
            raise outcome


async def _end(connection: Connection) -> None:
    await connection.ended.wait()


async def _read(socket: Socket, connection: Connection, handle: Handle) -> None:
    """Handle messages until the client leaves or the connection is to be closed."""
    while connection.close_code is None:
        message: Mapping[str, Any] = await socket.receive()
        if message["type"] != "websocket.receive":
            return
        text = message.get("text")
        if text is None:
            connection.refuse()
        elif text.strip().upper() == PING:
            connection.send_frame(PONG)
        else:
            await handle(connection, text)
        await asyncio.sleep(connection.rest_s)  # the loop turns between two messages
        connection.rest_s = 0.0
