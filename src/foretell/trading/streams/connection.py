"""One WebSocket connection: its queue of frames, and its end.

Messages are numbered in the stream's own sequence, without a gap. A client that reads too slowly
is disconnected with a close code; no message is ever dropped silently. What waits to be sent is bounded in
frames and bytes for a connection, and in bytes over all connections. A stream outlives its connection for a
while, and another connection can go on with it.

Messages take the direct way: those that wait for the connection's turn are written together, as bytes, without a
coroutine. They are queued as frames instead while the client takes nothing, or while other frames wait. While a
client gets messages that it missed, they are queued behind those.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.streams import MessagesNotKept
from foretell.trading.refusals import trading_body
from foretell.trading.streams.flush_queue import FlushQueue, SendBudget
from foretell.trading.streams.recent import NOT_KEPT, STREAM_MESSAGES_MAX, Message, StreamHistory
from foretell.trading.streams.replay import Replay
from foretell.trading.streams.replies import Heartbeat, Resumed
from foretell.trading.streams.unsent import Unsent, frames_of

FRAMES_QUEUED_MAX: Final = 1_000
BYTES_QUEUED_MAX: Final = 4 * 1024 * 1024
BYTES_PER_WRITE: Final = 16 * 1024
"""Of messages that are written at once; a larger one is written alone."""
FRAMES_PER_TURN: Final = 32
"""Queued frames that a connection sends before the event loop turns."""
BAD_MESSAGES_MAX: Final = 10

CLOSE_NORMAL: Final = 1000
CLOSE_POLICY: Final = 1008
CLOSE_TRY_LATER: Final = 1013


class FrameSink(Protocol):
    """The writing end of a WebSocket, for frames in bytes."""

    @property
    def is_ready(self) -> bool:
        """Whether the connection is open, and the client has taken most of what was written."""
        ...

    def write_frames(self, frames: bytes) -> None:
        """Write whole frames, which are buffered as far as the socket does not take them at once."""
        ...


class Socket(NamedTuple):
    """A WebSocket of ASGI: `receive` returns the next message, `send` sends one; `sink` is absent in some servers.

    `client` is the address that the stream counts for, empty where no limits apply.
    """

    receive: Callable[[], Awaitable[Any]]
    send: Callable[[Any], Awaitable[None]]
    sink: FrameSink | None = None
    client: str = ""


Handle = Callable[["Connection", str], Awaitable[None]]
"""Handles a text that a client sent."""


class Connection:
    """The frames to be sent on a socket, in order."""

    __slots__ = (
        "_bad_messages",
        "_budget",
        "_flush_queue",
        "_frames",
        "_frames_queued_max",
        "_head",
        "_is_due",
        "_is_idle",
        "_replay",
        "_sink",
        "_unsent",
        "_woken",
        "bytes_queued",
        "channel",
        "client",
        "close_code",
        "ended",
        "has_client",
        "has_heartbeat",
        "has_left",
        "history",
        "is_over",
        "is_resumed",
        "is_subscribed",
        "sequence",
        "stream_id",
        "when_caught_up",
    )

    def __init__(
        self,
        stream_id: str,
        budget: SendBudget | None = None,
        *,
        flush_queue: FlushQueue | None = None,
        channel: str = "",
        client: str = "",
        frames_queued_max: int = FRAMES_QUEUED_MAX,
    ) -> None:
        self._name(stream_id)
        self.channel = channel
        self.client = client  # its address, empty where no limits apply
        self.has_client = True
        self.has_heartbeat = self.is_resumed = self.is_subscribed = False
        # The client has closed the connection with the code for that.
        self.has_left = False
        self.is_over = False
        """Whether no connection may go on with the stream."""
        self.bytes_queued = 0
        # It is called once, when the client has taken all queued frames.
        self.when_caught_up: Callable[[], None] | None = None
        self._budget = SendBudget() if budget is None else budget
        self.sequence = 0
        self.close_code: int | None = None
        self.ended = asyncio.Event()
        self._bad_messages = 0
        self._frames_queued_max = frames_queued_max
        self._frames: deque[str] = deque()
        self.history = StreamHistory()
        self._woken = asyncio.Event()
        self._flush_queue = flush_queue
        """Without one, messages are written when they are published."""
        self._sink: FrameSink | None = None
        self._is_idle = False
        """Whether no frame waits: it may not be overtaken by messages."""
        # It is in the queue, where it stays when it is flushed before its turn.
        self._is_due = False
        self._replay: Replay | None = None
        """Missed messages and those after them, until all are sent."""
        self._unsent = Unsent()
        """The newest messages, which are not written yet."""

    @property
    def frames_queued(self) -> int:
        """The number of frames that wait to be sent."""
        return len(self._frames)

    @property
    def is_caught_up(self) -> bool:
        """Whether the client has taken all queued frames, and the connection is not to be closed."""
        return self.has_client and self.close_code is None and not self.bytes_queued

    @property
    def is_present(self) -> bool:
        """Whether it has a client, and its stream goes on."""
        return self.has_client and not self.is_over

    @property
    def may_be_resumed(self) -> bool:
        """Whether another connection may go on with the stream of this one."""
        return (
            self.is_subscribed
            and not (self.is_over or self.has_left)
            and self.close_code in {None, CLOSE_TRY_LATER}
        )

    def send(self, message: Message) -> None:
        """Number a message, to be written in the next turn; without a client it is only kept."""
        self.sequence += 1
        self.history.append(message)
        if not self.has_client or self.close_code is not None:
            return
        tail = message.tail
        assert tail is not None, "a message is published before it makes way"
        self._unsent.add(tail)
        if self._flush_queue is None:
            self.flush()
        elif self._unsent.size_bytes + self.bytes_queued > BYTES_QUEUED_MAX:
            self.overflow()
        elif not self._is_due:
            self._is_due = True
            self._flush_queue.add(self)

    def flush_in_turn(self) -> None:
        """Write some messages in a turn of the queue, which the connection has left; others have another turn."""
        self._is_due = False
        if self._unsent:
            self._write_some()
        if self._unsent and self._flush_queue is not None:
            self._is_due = True
            self._flush_queue.add(self)

    def flush(self) -> None:
        """Write all messages that were published since the last time, or queue them."""
        while self._unsent:
            self._write_some()

    def _write_some(self) -> None:
        """Write the oldest messages together, or queue them."""
        tails = self._unsent.take(BYTES_PER_WRITE)
        if self._replay is not None:
            self._queue_behind(self._replay, tails)
            return
        first = self.sequence - len(self._unsent) - len(tails) + 1
        sink = self._sink
        if sink is not None and self._is_idle and sink.is_ready:
            sink.write_frames(frames_of(self._head, first, tails))
            return
        for each in self.numbered(first, tails):
            self._queue(each.decode())

    def send_together(self, stamp: str, texts: Sequence[str]) -> None:
        """Queue messages as one frame that is an array; they are not kept."""
        if texts:
            assert self._replay is None, "the client has taken what it missed"
            self.flush()
            first = self.sequence + 1
            self.sequence += len(texts)
            for _ in texts:
                self.history.append(NOT_KEPT)
            self.send_frame(self._array(first, [(stamp + text).encode() for text in texts]))

    def resume(self, former: "Connection", after: int) -> None:
        """Go on with the stream of another connection, which ends; messages after a number follow."""
        missed = former.missed_after(after)
        self._name(former.stream_id)
        self.sequence = former.sequence
        self.history = former.history
        self.is_subscribed = True
        self.has_heartbeat = former.has_heartbeat
        former.end_stream()
        former.drop_missed()
        former.close(CLOSE_NORMAL)
        self.is_resumed = True
        self.send_struct(Resumed(self.stream_id, self.sequence, len(missed)))
        if missed:
            client = self.client or self.stream_id
            self._replay = Replay(after + 1, missed, client, self._budget.replays)
            self._count(sum(map(len, missed)))

    def end_stream(self) -> None:
        """Have no other connection go on with the stream."""
        self.is_over = True

    def beat(self, now_ms: int) -> None:
        """Queue a heartbeat, which says the number of the newest message, or of the newest one sent again."""
        replay = self._replay
        last = self.sequence if replay is None else replay.next_number - 1
        self.send_struct(Heartbeat(self.stream_id, last, now_ms))

    def send_struct(self, reply: object) -> None:
        """Queue a reply, which has no number."""
        self.send_frame(msgspec.json.encode(reply).decode())

    def send_frame(self, frame: str) -> None:
        """Queue a frame as it is, after the messages; a queue that is full closes the connection."""
        self.flush()
        self._queue(frame)

    def _queue(self, frame: str) -> None:
        if self.close_code is not None:
            return
        is_full = self.bytes_queued + len(frame) > BYTES_QUEUED_MAX
        if is_full or len(self._frames) >= self._frames_queued_max:
            self.overflow()
            return
        self._frames.append(frame)
        self._is_idle = False
        self._woken.set()
        self._count(len(frame))

    def _queue_behind(self, replay: Replay, tails: Sequence[bytes]) -> None:
        """Queue messages behind those that the client missed."""
        size = sum(map(len, tails))
        is_full = self.bytes_queued + size > BYTES_QUEUED_MAX
        count_max = STREAM_MESSAGES_MAX + self._frames_queued_max
        if is_full or len(replay) + len(tails) > count_max:
            self.overflow()
            return
        replay.extend(tails)
        self._count(size)

    def overflow(self) -> None:
        """Drop what waits, and close: the client reads too slowly."""
        self.drop()
        self.close(CLOSE_TRY_LATER)

    def drop_missed(self) -> None:
        """Drop missed messages and those after them: another connection has them sent again."""
        if self._replay is not None:
            self._count(-self._replay.size_bytes)
            self._replay = None

    def drop(self) -> None:
        """Drop what waits to be sent."""
        self._unsent.clear()
        self._replay = None
        self._frames.clear()
        self._count(-self.bytes_queued)

    def refuse(self, refusal: ForetellError) -> None:
        """Say what is wrong with a message; too many of them close the connection."""
        self._bad_messages += 1
        self.send_struct(trading_body(refusal)[1])
        if self._bad_messages >= BAD_MESSAGES_MAX:
            self.close(CLOSE_POLICY)

    def close(self, code: int) -> None:
        """Close the connection once all messages and queued frames were sent, without the missed ones of a refused client."""
        if code == CLOSE_POLICY:
            self.drop_missed()
        self.flush()
        if self.close_code is None:
            self.close_code = code
        self.ended.set()
        self._woken.set()

    def expire(self) -> None:
        """Close a connection without a subscription."""
        if not self.is_subscribed:
            self.close(CLOSE_POLICY)

    async def write(self, socket: Socket) -> None:
        """Send the queued frames and the missed messages until the connection is closed."""
        self._sink = socket.sink
        while True:
            await self._send_queued(socket)
            if self._replay is not None:
                await self._send_missed(self._replay, socket)
            elif self.close_code is not None:
                await socket.send({"type": "websocket.close", "code": self.close_code})
                return
            else:
                self._woken.clear()
                self._is_idle = True
                self._report_caught_up()
                await self._woken.wait()

    async def _send_queued(self, socket: Socket) -> None:
        sent = 0
        while self._frames:
            frame = self._frames.popleft()
            await socket.send({"type": "websocket.send", "text": frame})
            self._count(-min(len(frame), self.bytes_queued))
            sent += 1
            if sent % FRAMES_PER_TURN == 0:
                await asyncio.sleep(0)  # a client that reads takes all without a pause

    async def _send_missed(self, replay: Replay, socket: Socket) -> None:
        """Send the next frame of missed messages, or wait for its time or for a frame that is queued."""
        wait_s = replay.wait_s(asyncio.get_running_loop().time())
        if wait_s > 0:
            self._woken.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), wait_s)
            return
        first, tails, size = replay.take()
        if not replay:
            self._replay = None
        await socket.send({"type": "websocket.send", "text": self._array(first, tails)})
        self._count(-min(size, self.bytes_queued))
        await asyncio.sleep(0)  # each frame is made in a turn of its own

    def _report_caught_up(self) -> None:
        report, self.when_caught_up = self.when_caught_up, None
        if report is not None:
            report()

    def _count(self, size: int) -> None:
        """Count characters as bytes: nearly all frames are ASCII."""
        self.bytes_queued += size
        self._budget.add(self, size)

    def missed_after(self, after: int) -> list[bytes]:
        """Return the messages without their beginning after a sequence number, or refuse."""
        count = self.sequence - after
        missed = self.history.newest(count) if 0 <= count <= self.sequence else None
        if missed is None:
            raise MessagesNotKept(after, self.sequence)
        return missed

    def numbered(self, first: int, tails: Sequence[bytes]) -> list[bytes]:
        """Return messages as whole objects, with their numbers."""
        return [self._numbered(number, tail) for number, tail in enumerate(tails, first)]

    def _array(self, first: int, tails: Sequence[bytes]) -> str:
        return f"[{b','.join(self.numbered(first, tails)).decode()}]"

    def _numbered(self, number: int, tail: bytes) -> bytes:
        return b'{"sequence":%d%b%b' % (number, self._head, tail)

    def _name(self, stream_id: str) -> None:
        """Belong to a stream, whose id is in all messages after their number."""
        self.stream_id = stream_id
        self._head = f',"stream_id":"{stream_id}",'.encode()
