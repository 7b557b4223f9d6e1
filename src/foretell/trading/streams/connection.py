"""One WebSocket connection: its queue of frames, and its end.

Messages are numbered in the stream's own sequence, without a gap. A client that reads too slowly
is disconnected with a close code; no message is ever dropped silently. What waits to be sent is bounded in
frames and bytes for a connection, and in bytes over all connections. A stream outlives its connection for a
while, and another connection can go on with it.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.streams import MalformedMessage, MessagesNotKept
from foretell.trading.refusals import trading_body
from foretell.trading.streams.recent import NOT_KEPT, Message, StreamHistory

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


class Resumed(msgspec.Struct, frozen=True, tag="resumed", tag_field="event_type"):
    """The stream goes on: the missed messages follow, and then the newer ones."""

    stream_id: str
    last_sequence: int
    missed: int


class NotResumed(msgspec.Struct, frozen=True, tag="not_resumed", tag_field="event_type"):
    """The stream cannot go on: the message was taken as a subscription, to the stream with this id."""

    stream_id: str
    code: str
    message: str


class Heartbeat(msgspec.Struct, frozen=True, tag="heartbeat", tag_field="event_type"):
    """The number of the newest message; a client that has a lower one has missed messages."""

    stream_id: str
    last_sequence: int
    server_ts_ms: int


class Connection:
    """The frames to be sent on a socket, in order."""

    __slots__ = (
        "_bad_messages",
        "_budget",
        "_frames",
        "_frames_queued_max",
        "_woken",
        "bytes_queued",
        "channel",
        "close_code",
        "ended",
        "has_client",
        "has_heartbeat",
        "has_left",
        "history",
        "is_over",
        "is_resumed",
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
        channel: str = "",
        frames_queued_max: int = FRAMES_QUEUED_MAX,
    ) -> None:
        self.stream_id = stream_id
        self.channel = channel
        self.has_client = True
        self.has_heartbeat = False
        self.is_resumed = False
        self.has_left = False
        """Whether the client has closed the connection with the code for that."""
        self.is_over = False
        """Whether no connection may go on with the stream."""
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
        self.history = StreamHistory()
        self._woken = asyncio.Event()

    @property
    def frames_queued(self) -> int:
        """The number of frames that wait to be sent."""
        return len(self._frames)

    @property
    def may_be_resumed(self) -> bool:
        """Whether another connection may go on with the stream of this one."""
        return (
            self.is_subscribed
            and not (self.is_over or self.has_left)
            and self.close_code in {None, CLOSE_TRY_LATER}
        )

    def send(self, message: Message) -> None:
        """Queue a message and number it; without a client it is only kept."""
        self.sequence += 1
        self.history.append(message)
        if self.has_client:
            self.send_frame(self._numbered(self.sequence, message.stamp, message.text or ""))

    def send_together(self, stamp: str, texts: Sequence[str]) -> None:
        """Queue messages as one frame that is an array; they are not kept."""
        if texts:
            first = self.sequence + 1
            self.sequence += len(texts)
            for _ in texts:
                self.history.append(NOT_KEPT)
            self._send_array(first, [(stamp, text) for text in texts])

    def messages_after(self, after: int) -> list[str]:
        """Return the messages after a sequence number, as objects, or refuse."""
        missed = self.missed_after(after)
        return [
            self._numbered(number, stamp, text)
            for number, (stamp, text) in enumerate(missed, after + 1)
        ]

    def resume(self, former: "Connection", after: int) -> None:
        """Go on with the stream of another connection, which ends; messages after a number follow."""
        missed = former.missed_after(after)
        self.stream_id, self.sequence = former.stream_id, former.sequence
        self.history = former.history
        self.is_subscribed = True
        self.has_heartbeat = former.has_heartbeat
        former.end_stream()
        former.close(CLOSE_NORMAL)
        self.is_resumed = True
        self.send_struct(Resumed(self.stream_id, self.sequence, len(missed)))
        if missed:
            self._send_array(after + 1, missed)

    def end_stream(self) -> None:
        """Have no other connection go on with the stream."""
        self.is_over = True

    def beat(self, now_ms: int) -> None:
        """Queue a heartbeat, which says the number of the newest message."""
        self.send_struct(Heartbeat(self.stream_id, self.sequence, now_ms))

    def send_struct(self, reply: object) -> None:
        """Queue a reply, which has no number."""
        self.send_frame(msgspec.json.encode(reply).decode())

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

    def refuse(self, refusal: ForetellError) -> None:
        """Say what is wrong with a message; too many of them close the connection."""
        self._bad_messages += 1
        self.send_struct(trading_body(refusal)[1])
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

    def missed_after(self, after: int) -> list[tuple[str, str]]:
        """Return the stamps and texts of the messages after a sequence number, or refuse."""
        count = self.sequence - after
        missed = self.history.newest(count) if 0 <= count <= self.sequence else None
        if missed is None:
            raise MessagesNotKept(after, self.sequence)
        return missed

    def _send_array(self, first: int, messages: Sequence[tuple[str, str]]) -> None:
        numbered = enumerate(messages, first)
        texts = [self._numbered(number, stamp, text) for number, (stamp, text) in numbered]
        self.send_frame(f"[{','.join(texts)}]")

    def _numbered(self, number: int, stamp: str, text: str) -> str:
        return f'{{"sequence":{number},"stream_id":"{self.stream_id}",{stamp}{text}'


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
            connection.has_left = message.get("code") == CLOSE_NORMAL
            return
        text = message.get("text")
        if text is None:
            connection.refuse(MalformedMessage("a frame must be text"))
        elif text.strip().upper() == PING:
            connection.send_frame(PONG)
        else:
            await handle(connection, text)
        await asyncio.sleep(connection.rest_s)  # the loop turns between two messages
        connection.rest_s = 0.0
