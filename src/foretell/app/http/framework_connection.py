"""HTTP connections with limits on size and time, so that no client keeps the server busy for nothing.

The event loop that serves them may also run the engine. A request head without an end would slow down every client,
because the parser's work grows with its square, and a connection that sends nothing, or half a request, holds a place
that another client needs.
"""

import asyncio
from functools import partial
from typing import Any, Final

import httptools
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_owner import ConnectionOwner
from foretell.app.http.connection_places import ConnectionPlaces, Place
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.open_transport import WhileOpen
from foretell.app.http.parser_refusals import RequestRefused, check_handshake, path_in, refusal_of
from foretell.app.http.request_pace import RequestTurn
from foretell.app.http.stream_connection import StreamConnection
from foretell.app.http.write_buffers import WRITE_BUFFERS
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import (
    BodiesBusy,
    HeadersTooLarge,
    RequestTooSlow,
    TooManyConnections,
    UnsupportedVersion,
    UrlTooLong,
)
from foretell.edge.codec import PLACE, HeldBytes

_VERSIONS: Final = frozenset({"1.0", "1.1"})


class FrameworkConnection(HttpToolsProtocol):
    """uvicorn's connection with a deadline for the request that arrives, and a limit for its head.

    It is never a transport's protocol: `FastConnection` passes on what it does not take itself, keeps the time
    between requests, and is called when every request is answered. There is no hook for either in uvicorn, so this
    overrides the parser's callbacks, calls the original in each, and keeps its own state next to uvicorn's:
    `_is_arriving` from the first byte of a request to its last, `_is_in_head` until its headers are complete.
    `pyproject.toml` pins uvicorn below its next minor version.

    A request that is refused here may follow others that are not answered yet. Then its refusal is sent after their
    answers, or the client would take it for one of them.
    """

    def __init__(
        self,
        owner: ConnectionOwner,
        *arguments: Any,
        limits: ConnectionLimits,
        refusals: ConnectionRefusals,
        places: ConnectionPlaces,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self.ws_protocol_class = partial(StreamConnection, limits=limits.stream)  # type: ignore[assignment] # called only
        self._places = places
        self.place: Place | None = None
        self._owner = owner
        self._limits = limits
        self._refusals = refusals
        self._is_arriving = False
        self._is_in_head = False
        self._has_cycle = False
        """Whether a request that arrives has been given to the application."""
        self._last_cycle: RequestResponseCycle | None = None
        """The request after which a connection closes that is admitted provisionally."""
        self._postponed: tuple[RequestResponseCycle, Any] | None = None
        """The next request, and its application, while the client does not read the answers before."""
        self._unanswered = 0
        self._is_refused = False
        """Whether nothing more is read: what arrives is dropped until the connection closes."""
        self._last_answer = b""
        """A refusal that waits for the answers to earlier requests."""
        self._received_bytes = 0
        self._head_bytes = 0
        self._early = b""
        """What has arrived and is not parsed, because too many requests wait for their turn."""
        self._early_bytes = HeldBytes()
        self._turn = RequestTurn()
        self._deadline: asyncio.TimerHandle | None = None
        self._stall: asyncio.TimerHandle | None = None

    @property
    def is_refused(self) -> bool:
        """Whether nothing more is read from the connection."""
        return self._is_refused

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        self.place = self._places.take(None if self.client is None else self.client[0], self)
        if self.place is None:
            self._turn_away()
        else:
            self._limit_provisional(self.place)

    @override
    def pause_writing(self) -> None:
        super().pause_writing()
        self._stall = self.loop.call_later(self._limits.stall_deadline_s, self.transport.abort)
        if self.place is not None:
            WRITE_BUFFERS.hold(self.place, self.transport)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        self._end_stall()
        if self.place is not None:
            WRITE_BUFFERS.release(self.place)
        postponed, self._postponed = self._postponed, None
        if postponed is not None and not postponed[0].disconnected:
            self._start_asgi_task(*postponed)

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        self._end_stall()
        self._drop_early()
        self._is_refused = True
        if self.place is not None:
            WRITE_BUFFERS.release(self.place)
            self.place.end()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()
        # What refers to this connection would keep its memory until a search for garbage.
        self.place = self.scope = self.cycle = self._last_cycle = None  # type: ignore[assignment]
        self._postponed = None
        self.pipeline.clear()

    @property
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""
        return self._owner.is_idle

    def close_now(self) -> None:
        """End the connection at once, whatever it does."""
        self.transport.abort()

    def keep_open(self) -> None:
        """Keep the connection open after the present request."""
        if self._last_cycle is not None:
            self._last_cycle.keep_alive = True

    def _limit_provisional(self, place: Place) -> None:
        """End a connection that is admitted provisionally, unless it shows a key in time."""
        if place.is_provisional:
            self.loop.call_later(self._limits.provisional_s, self._end_provisional, place)

    def _end_provisional(self, place: Place) -> None:
        if place.is_provisional and place.is_taken:
            self.transport.abort()

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        for at in range(0, len(data), self._limits.piece_bytes):
            is_full = self._early or len(self.pipeline) > self._limits.pipelined_max
            if is_full or not self._may_read():
                self._keep_early(data[at:])
                return
            if not self._parse(data[at : at + self._limits.piece_bytes]):
                return
        if not self._is_arriving:
            self._report_if_idle()

    def _may_read(self) -> bool:
        """Return whether a request may be read; if not, it waits for a turn of its address."""
        return self.place is None or self._turn.has_come(self.place.may_begin, self._take_early)

    def _parse(self, data: bytes) -> bool:
        """Parse a piece, and return whether the next one is for this parser too."""
        was_arriving, unanswered = self._is_arriving, self._unanswered
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            begun = b"" if was_arriving or self._unanswered > unanswered else data
            self.refuse(refusal_of(error, begun), path_in(begun) or None)
            return False
        except httptools.HttpParserUpgrade:
            if self._should_upgrade():
                self.handle_websocket_upgrade()
                return False
        if self._is_arriving and not self.transport.is_closing():
            self._limit(len(data) if was_arriving else 0)
        return not self._is_refused

    def _keep_early(self, data: bytes) -> None:
        """Keep what arrives until it may be parsed, which takes a hundred times the memory, and read nothing more."""
        self.flow.pause_reading()
        if not self._early:
            is_known = self.place is not None and self.place.has_known_client
            self._early_bytes.begin(self.client[0] if self.client else "", is_known=is_known)
        try:
            self._early_bytes.add(len(data))
        except BodiesBusy as refusal:
            self.refuse(refusal)
        else:
            self._early += data

    def _take_early(self) -> None:
        """Go on with what arrived early, if anything did."""
        if not self._early:
            return
        data = self._drop_early()
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self.data_received(data)

    def _drop_early(self) -> bytes:
        """Return what has arrived early, and keep it no longer."""
        data, self._early = self._early, b""
        self._early_bytes.end()
        return data

    def _limit(self, more_bytes: int) -> None:
        """Limit the time and the size of the request that arrives; it has that many bytes more."""
        if self._deadline is None:
            seconds = self._limits.request_deadline_s
            self._deadline = self.loop.call_later(seconds, self.refuse, RequestTooSlow(seconds))
        if self._is_in_head:
            self._received_bytes += more_bytes
            if self._received_bytes > self._limits.head_bytes_max:
                self.refuse(self._too_large())

    @override
    def on_message_begin(self) -> None:
        self._is_arriving = self._is_in_head = True
        self._has_cycle = False
        self._received_bytes = self._head_bytes = 0
        super().on_message_begin()
        self.scope[PLACE] = self.place  # type: ignore[typeddict-unknown-key]
        if self.place is not None:
            self.place.count_request()

    @override
    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(url)

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count(name, value)

    def _count(self, *parts: bytes) -> None:
        """Count a part of the head that is complete; what is not yet is counted as it is received."""
        self._head_bytes += sum(map(len, parts))
        limits = self._limits
        if self._head_bytes > limits.head_bytes_max or len(self.headers) > limits.headers_max:
            raise RequestRefused(self._too_large())

    def _too_large(self) -> ForetellError:
        """Return the refusal of the larger part of the head."""
        limits = self._limits
        if 2 * len(self.url) > max(self._received_bytes, self._head_bytes):
            return UrlTooLong(limits.head_bytes_max)
        return HeadersTooLarge(limits.head_bytes_max, limits.headers_max)

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head = False
        if self.parser.get_http_version() not in _VERSIONS:
            raise RequestRefused(UnsupportedVersion())
        if not (self.parser.should_upgrade() and self._should_upgrade()):
            super().on_headers_complete()
            self._has_cycle = True
            self._unanswered += 1
            if self.place is not None and self.place.is_provisional and self.cycle.keep_alive:
                self._last_cycle = self.cycle
                self.cycle.keep_alive = False
            return
        check_handshake(self.parser.get_method(), self.headers)
        super().on_headers_complete()

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Carry out a request, later if its answer had to wait in memory behind others that nobody reads."""
        if self.flow.write_paused:
            self._postponed = cycle, app
            return
        cycle.transport = WhileOpen(self.transport)  # type: ignore[assignment]
        super()._start_asgi_task(cycle, app)

    @override
    def on_message_complete(self) -> None:
        self._is_arriving = self._has_cycle = False
        self._turn.end()
        self._cancel_deadline()
        super().on_message_complete()

    @override
    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._unanswered -= 1
        if self._early and not self.transport.is_closing():
            self.flow.pause_reading()
            if not self.pipeline and self._may_read():
                self.loop.call_soon(self._take_early)
        elif not self._is_refused:
            self._report_if_idle()
        elif self._unanswered == 0:
            self._close_with(self._last_answer)

    @override
    def handle_websocket_upgrade(self) -> None:
        self._is_arriving = False
        self._cancel_deadline()
        self._end_stall()
        self._owner.framework_upgrades()
        super().handle_websocket_upgrade()
        stream = self.transport.get_protocol()
        assert isinstance(stream, StreamConnection)
        assert self.place is not None
        self.place.begin_stream()
        self._limit_provisional(self.place)
        stream.hold(self.place, self._owner.connection_lost)
        if self.flow.write_paused:
            stream.pause_writing()

    @override
    def timeout_keep_alive_handler(self) -> None:
        """Leave the connection open: its owner keeps the time between requests."""
        self.timeout_keep_alive_task = None

    @override
    def shutdown(self) -> None:
        if not self._owner.closes_after_answer():
            super().shutdown()

    def _report_if_idle(self) -> None:
        """Report that every request that has arrived is answered, if that is so."""
        if self._unanswered == 0 and not self._is_arriving:
            self._owner.framework_is_idle()

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def refuse(self, refusal: ForetellError, url: bytes | None = None) -> None:
        """Answer the request that arrives with a refusal, after those before it, and close the connection."""
        self._cancel_deadline()
        self._drop_early()
        if self.transport.is_closing():
            return
        self._is_refused = True
        if self._has_cycle and self.cycle.response_started:
            self.transport.close()  # it has its answer, or a part of it
            return
        if self._has_cycle and self.pipeline:
            self.pipeline.popleft()
            self._unanswered -= 1
        elif self._has_cycle:
            self._unanswered = 0
            self.cycle.disconnected = True  # for the application, which may wait for the body
            self.cycle.message_event.set()
        known = self.url if self._is_arriving and url is None else url or b""
        answer = self._refusals.answer(refusal, known, self.server_state.default_headers)
        if self._unanswered:
            self._last_answer = answer
        else:
            self._close_with(answer)

    def _turn_away(self) -> None:
        """Close a connection that has no place, at once: waiting for its end would take a place."""
        self._is_refused = True
        refusal, headers = TooManyConnections(), self.server_state.default_headers
        self.transport.write(self._refusals.answer(refusal, b"", headers))
        self.transport.close()

    def _close_with(self, answer: bytes) -> None:
        """Send the last answer of the connection, and close it when the client has, or soon.

        If it were closed at once with data that is not read yet, the kernel would reset it, and the
        client might lose the answer.
        """
        if not self.transport.is_closing():
            self.transport.write(answer)
            self.transport.write_eof()
            self.flow.resume_reading()
            self._deadline = self.loop.call_later(self._limits.linger_s, self.transport.abort)
