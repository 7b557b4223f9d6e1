"""WebSocket connections that read no faster than their allowance, and that always end.

Every frame of a client costs time of the event loop, which may also run the engine, and a client can send
many more frames than are worth reading. So a connection has an allowance of frames and of bytes, and the
streams of an address have both together. A connection is fed to the parser in small pieces, each in a turn of
its address, and is not read while its allowance is used up or its last messages wait to be handled. TCP
then slows the client down. What a connection holds until it is handled counts for its client, and a message
whose end does not come closes the connection.
"""

import asyncio
import socket
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Final

from typing_extensions import override
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from foretell.app.http.connection_limits import STREAM_LIMITS, StreamLimits
from foretell.app.http.connection_places import Place
from foretell.app.http.stream_pace import StreamPace
from foretell.app.http.unfinished_messages import UNFINISHED_MESSAGES
from foretell.app.http.write_buffers import WRITE_BUFFERS
from foretell.domain.values.text_frames import text_frame
from foretell.edge.codec import PLACE, SINK
from foretell.edge.security_headers import SECURITY_HEADERS
from foretell.runtime.allowance import GrowingAllowance

UNFINISHED: Final = "the end of a message did not come"
_INVALID_TEXT: Final = 1007
_POLICY: Final = 1008
_SWITCHING: Final = 101
_FRAME_BYTES: Final = 128
"""Which a frame or a message holds besides what it carries: it may be empty."""


Ended = Callable[[Exception | None], None]
"""Takes what ended a connection, None for its regular end."""


class HandshakeProtocol(ServerProtocol):
    """The protocol of WebSockets, whose refusals of a handshake have the headers for browsers.

    They are added here because uvicorn and the library write some refusals without the application, and
    because an application's `send` would pay for them at every frame.
    """

    @override
    def send_response(self, response: Response) -> None:
        if response.status_code != _SWITCHING:
            for name, value in SECURITY_HEADERS:
                response.headers.setdefault(name.decode(), value.decode())
        super().send_response(response)


class StreamConnection(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket connection, with its reading paced and its end bounded in time.

    uvicorn stops reading while a message waits; here that is decided in one place, so its own switch
    `read_paused` stays set, which makes it neither stop nor go on by itself. `pyproject.toml` pins uvicorn
    below its next minor version.
    """

    def __init__(self, *arguments: Any, limits: StreamLimits = STREAM_LIMITS, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.conn = HandshakeProtocol(max_size=self.config.ws_max_size, logger=self.conn.logger)
        now_s = self.loop.time()
        self._limits = limits
        self._bytes = GrowingAllowance(limits.bytes_burst, limits.bytes_per_s, now_s)
        self._frames = GrowingAllowance(limits.frames_burst, limits.frames_per_s, now_s)
        self._unread = bytearray()
        self._ready_at_s = now_s
        self._turn: asyncio.TimerHandle | None = None
        self._end: asyncio.TimerHandle | None = None
        self._place: Place | None = None
        self._pace: StreamPace | None = None
        """Of its address; the connection has it when it has a place."""
        self._unhandled_bytes = 0
        """Of the messages in the queue."""
        self._began_s: float | None = None
        """The beginning of the message, or of the frame, whose end has not come."""
        self._patience: asyncio.TimerHandle | None = None
        self._ended: Ended | None = None
        self.read_paused = True
        self.close_timeout = limits.closing_s

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        end = transport.get_extra_info("socket")
        if end is not None:
            size = self._limits.receive_buffer_bytes
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
        self._end_within(self._limits.handshake_s)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._turn, self._end, self._patience):
            if timer is not None:
                timer.cancel()
        self._turn = self._end = self._patience = None
        self._drop_held()
        super().connection_lost(exc)
        self.conn.parser.close()  # it refers to the protocol, and the protocol to it
        if self._ended is not None:
            self._ended(exc)
            self._ended = None

    def hold(self, place: Place, ended: Ended) -> None:
        """Have the place of the connection, and call `ended` when the connection is lost."""
        self._place = place
        self._pace = place.stream_pace()
        self._ended = ended

    @override
    async def run_asgi(self) -> None:
        """Run the application, which finds the place and the sink of frames in its scope."""
        self.scope[PLACE] = self._place  # type: ignore[typeddict-unknown-key]
        self.scope[SINK] = self  # type: ignore[typeddict-unknown-key]
        await super().run_asgi()

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        if self._place is not None:
            WRITE_BUFFERS.hold(self._place, self.transport)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        if self._place is not None:
            WRITE_BUFFERS.release(self._place)

    @override
    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            self._check_handshake()
            return
        self._unread += data
        self.transport.pause_reading()
        self._count_held()
        self._read_on()

    @override
    def handle_events(self) -> None:
        frames = len(self.conn.events)
        super().handle_events()
        self._wait_for(self._frames.take(frames, self.loop.time()))
        if self._pace is not None:
            self._pace.take(frames=frames)
        if frames and not self.frames:
            self._began_s = None

    @override
    def send_receive_event_to_app(self) -> None:
        self._began_s = None
        size = sum(map(len, self.frames))
        if self.curr_msg_data_type == "text":
            try:
                b"".join(self.frames).decode()
            except UnicodeDecodeError:
                self.frames = []
                self.conn.fail(_INVALID_TEXT)
                self.handle_parser_exception()
                return
        super().send_receive_event_to_app()
        if not self.close_sent:
            self._unhandled_bytes += size + _FRAME_BYTES

    @override
    async def receive(self) -> Any:
        """Return the next message; the connection reads on when none is left."""
        message = await self.queue.get()
        if self.queue.empty():
            self._unhandled_bytes = 0
            self._count_held()
            self._read_on()
        return message

    @override
    async def send(self, message: Any) -> None:
        """Send a message, and return once the client has taken most of what was sent.

        A text on an open connection is most of what a stream sends: its frame is written here, without the
        generic steps of uvicorn and the library, which cost more than the rest of a delivery.
        """
        text = message.get("text")
        if text is not None and self._is_open:
            await self.writable.wait()
            if self._is_open:
                self.transport.write(text_frame(text.encode()))
                await self.writable.wait()
                return
        await super().send(message)
        if message["type"] == "websocket.accept":
            self._cancel_end()
        elif message["type"] == "websocket.close":
            self._end_within(2 * self._limits.closing_s)
        elif message["type"] == "websocket.send":
            await self.writable.wait()

    @property
    def is_ready(self) -> bool:
        """Whether frames may be written now: on an open connection, whose client takes what is sent."""
        return self.writable.is_set() and self._is_open

    def write_frames(self, frames: bytes) -> None:
        """Write whole frames."""
        self.transport.write(frames)

    @property
    def _is_open(self) -> bool:
        """Whether a frame may be written: after the handshake, and before a close frame of either side."""
        is_ended = self.close_sent or self.disconnected or self.conn.extensions
        return self.handshake_complete and self.conn.state is OPEN and not is_ended

    @override
    def shutdown(self) -> None:
        """Close the stream because the server ends, unless the client has closed it before.

        uvicorn sends a close frame then, too, which the library refuses: the server did not end its other connections.
        """
        if self.handshake_complete and self.conn.state is not OPEN:
            self.close_sent = True
        super().shutdown()

    @override
    def keepalive_timeout(self) -> None:
        """End the connection of a client that answers no ping; it may not take the close frame either."""
        super().keepalive_timeout()
        self._end_within(2 * self._limits.closing_s)

    @override
    def on_task_complete(self, task: "asyncio.Task[None]") -> None:
        super().on_task_complete(task)
        self.scope.pop(SINK, None)  # type: ignore[typeddict-item] # it refers to this connection
        if not self.disconnected:
            self._end_within(2 * self._limits.closing_s)

    def _check_handshake(self) -> None:
        """End a connection whose request is none for a WebSocket: it came in one piece."""
        if not self.handshake_initiated and not self.transport.is_closing():
            self.transport.abort()

    def _read_on(self) -> None:
        """Parse the next piece in a turn of its address when it is due, or read more."""
        if self._turn is not None or not self.queue.empty() or self.transport.is_closing():
            return
        wait_s = self._ready_at_s - self.loop.time()
        if wait_s > 0:
            self._turn = self.loop.call_later(wait_s, self._end_wait)
        elif self._unread:
            assert self._pace is not None, "it has its place when its handshake ends"
            self._pace.await_turn(self, self._take_turn, has_begun=self._has_begun)
        else:
            self.transport.resume_reading()

    def _end_wait(self) -> None:
        self._turn = None
        self._read_on()

    def _take_turn(self) -> None:
        if self.queue.empty() and self._unread and not self.transport.is_closing():
            piece = bytes(self._unread[: self._limits.piece_bytes])
            del self._unread[: len(piece)]
            self._wait_for(self._bytes.take(len(piece), self.loop.time()))
            if self._pace is not None:
                self._pace.take(size=len(piece))
            super().data_received(piece)
            self._count_held()
            self._await_end()
        self._read_on()

    @property
    def _has_begun(self) -> bool:
        """Whether a message, or a frame, has begun whose end has not come."""
        return bool(self.frames or self.conn.reader.buffer)

    def _count_held(self) -> None:
        """Count what is held until it is handled."""
        if self._place is not None:
            fragments = (self.conn.current_size or 0) + _FRAME_BYTES * len(self.frames)
            arriving = len(self._unread) + len(self.conn.reader.buffer)
            size = arriving + fragments + self._unhandled_bytes
            UNFINISHED_MESSAGES.hold(self._place, self, size)

    def _drop_held(self) -> None:
        self._unread.clear()
        self.frames = []
        self.conn.reader.discard()
        self.conn.current_size = None
        self._unhandled_bytes = 0
        if self._pace is not None:
            self._pace.leave(self)
        self._count_held()

    def give_up(self) -> None:
        """Close: a message whose end does not come has no room, or no time, any more."""
        if self._is_open and not self.transport.is_closing():
            self.conn.fail(_POLICY, UNFINISHED)
            self.handle_parser_exception()
            self._end_within(2 * self._limits.closing_s)
        elif not self.handshake_complete:
            self.transport.abort()
        self._drop_held()

    def _await_end(self) -> None:
        """Have the end of a message come in time, if one has begun."""
        if not self._has_begun:
            self._began_s = None
        elif self._began_s is None:
            self._began_s = self.loop.time()
            if self._patience is None:
                self._patience = self.loop.call_later(self._limits.message_s, self._check_end)

    def _check_end(self) -> None:
        """Close if the end of a message has not come in time, unless it is this side that waits."""
        self._patience = None
        if self._began_s is None:
            return
        left_s = self._began_s + self._limits.message_s - self.loop.time()
        if left_s > 0:
            self._patience = self.loop.call_later(left_s, self._check_end)
        elif self._unread or self._turn is not None or not self.queue.empty():
            self._patience = self.loop.call_later(self._limits.message_s, self._check_end)
        else:
            self.give_up()

    def _wait_for(self, seconds: float) -> None:
        self._ready_at_s = max(self._ready_at_s, self.loop.time() + seconds)

    def _end_within(self, seconds: float) -> None:
        """Cut the connection off after this time, or when it already would be, whatever the client has not taken."""
        if self._end is None or self._end.when() > self.loop.time() + seconds:
            self._cancel_end()
            self._end = self.loop.call_later(seconds, self.transport.abort)

    def _cancel_end(self) -> None:
        if self._end is not None:
            self._end.cancel()
            self._end = None


@lru_cache
def stream_with(limits: StreamLimits) -> Callable[..., StreamConnection]:
    """Return what makes a connection with these limits; all connections of a server have it in common."""
    return partial(StreamConnection, limits=limits)
