"""HTTP connections with limits on size and time, so that no client keeps the server busy for nothing.

The event loop that serves them may also run the engine. A request head without an end would slow down every client,
because the parser's work grows with its square, and a connection that sends nothing, or half a request, holds a place
that another client needs.
"""

from functools import partial
from typing import Any

import httptools
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_owner import ConnectionOwner
from foretell.app.http.open_transport import WhileOpen
from foretell.app.http.parser_refusals import (
    HeadSize,
    RequestRefused,
    check_framing,
    check_handshake,
    path_in,
    refusal_of,
)
from foretell.app.http.placed_connection import PlacedConnection
from foretell.app.http.plain_heads import plain_head
from foretell.app.http.request_deadline import RequestDeadline
from foretell.app.http.request_pace import RequestTurn
from foretell.app.http.stream_connection import StreamConnection, stream_with
from foretell.app.http.unread_body import UnreadBodies, UnreadBody
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import (
    BodiesBusy,
    MalformedRequest,
    RequestTooSlow,
)
from foretell.edge.codec import PLACE
from foretell.edge.telemetry import AsgiApp


class FrameworkConnection(PlacedConnection):
    """uvicorn's connection with a deadline for the request that arrives, and a limit for its head.

    It is never a transport's protocol: `FastConnection` passes on what it does not take itself, keeps the time
    between requests, and is called when every request is answered. There is no hook for either in uvicorn, so this
    overrides the parser's callbacks, calls the original in each, and keeps its own state next to uvicorn's:
    `_is_arriving` from the first byte of a request to its last, `_is_in_head` in its headers and behind its last chunk.
    `pyproject.toml` pins uvicorn below its next minor version.

    A request that is refused here may follow others that are not answered yet. Then its refusal is sent after their
    answers, or the client would take it for one of them.
    """

    __slots__ = (
        "_bodies",
        "_deadline",
        "_head",
        "_is_arriving",
        "_is_in_head",
        "_last_answer",
        "_owner",
        "_postponed",
        "_served",
        "_turn",
    )

    def __init__(
        self,
        owner: ConnectionOwner,
        *arguments: Any,
        limits: ConnectionLimits,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, limits=limits, **named)
        self.ws_protocol_class = stream_with(limits.stream)  # type: ignore[assignment] # called only
        self._owner = owner
        self._is_arriving = self._is_in_head = False
        self._postponed: tuple[RequestResponseCycle, Any] | None = None
        """The next request, and its application, while the client does not read the answers before."""
        self._served: AsgiApp = self.app
        self._bodies = UnreadBodies(limits)
        self._last_answer = b""
        """A refusal that waits for the answers to earlier requests."""
        self._head = HeadSize(limits.head_bytes_max, limits.headers_max)
        self._turn = RequestTurn()
        self._deadline = RequestDeadline(self.loop, limits.request_deadline_s)

    @override
    def resume_writing(self) -> None:
        super().resume_writing()
        postponed, self._postponed = self._postponed, None
        if postponed is not None and not postponed[0].disconnected:
            self._start_asgi_task(*postponed)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._deadline.end()
        self._early.take()
        self._is_refused = True
        super().connection_lost(exc)
        self._bodies.drop()
        if self.cycle is not None:
            self.cycle.body = bytearray()
        # What refers to this connection would keep its memory until a search for garbage.
        self._forget_request()
        self.place = self._postponed = None
        self.app = self._served
        self.pipeline.clear()

    @property
    @override
    def is_idle(self) -> bool:
        return self._owner.is_idle

    @property
    @override
    def is_read_in_turns(self) -> bool:
        return self._is_refused or self._bodies.arriving is not None

    @override
    def _may_end_body(self, data: bytes) -> bool:
        is_dropped = self._bodies.arriving is None or self.cycle.response_complete
        return not (self._is_refused or is_dropped) and self._bodies.may_end_with(data)

    @override
    def _receive(self, data: bytes) -> None:
        if self._is_refused:
            return
        at = 0
        while at < len(data):
            if self._bodies.end_part():
                self._turn.end()
                self.loop.call_soon(self._take_early)
                self._keep_early(data[at:])
                return
            if self._is_full() or not self._may_read():
                self._keep_early(data[at:])
                return
            end = self._bodies.piece_end(data, at)
            if not self._parse(data[at:end]):
                return
            at = end
        if self._bodies.arriving is None:
            self._turn.end()  # many heads may end at the same moment
        if not self._is_arriving:
            self._report_if_idle()

    def _is_full(self) -> bool:
        """Return whether so much of what has been parsed waits that nothing more may be."""
        are_many = len(self.pipeline) > self._limits.pipelined_max
        is_unread = bool(self._early) or self._bodies.is_unread
        return is_unread or are_many or self._bodies.have_large_heads

    def _may_read(self) -> bool:
        """Return whether a request, or a part of one, may be read; if not, it waits for a turn of its address."""
        if self.place is not None:
            if not self._turn.has_come(self.place.may_begin, self._take_early):
                return False
            if self._turn.begins():
                self.place.count_request()
        return True

    def _parse(self, data: bytes, head: bytes = b"") -> bool:
        """Parse a piece, behind a head that is parsed again, and return whether the next one is for this parser too."""
        was_arriving, unanswered, upgraded_at = self._is_arriving, len(self._bodies), -1
        if not self._is_parsing:
            self._begin_parsing()
        try:
            self.parser.feed_data(head + data)
        except httptools.HttpParserError as error:
            begun = b"" if was_arriving or len(self._bodies) > unanswered else data
            self.refuse(refusal_of(error, begun), path_in(begun) or None)
            return False
        except httptools.HttpParserUpgrade as upgrade:
            upgraded_at = upgrade.args[0]
        if upgraded_at >= 0:
            return self._take_upgrade(data[upgraded_at:])
        if self._is_arriving and not self.transport.is_closing():
            self._limit(len(data) if was_arriving and not head else 0)
        return not self._is_refused

    def _take_upgrade(self, rest: bytes) -> bool:
        """Change to WebSockets, or parse a head again without what asks for an upgrade, and what comes behind it."""
        if self._should_upgrade():
            self.handle_websocket_upgrade()
            return False
        head = plain_head(self.parser, self.url, self.headers)
        self._begin_parsing()
        return self._parse(rest, head)

    @override
    def _keep_early(self, data: bytes) -> None:
        """Keep what arrives until it may be parsed, which takes a hundred times the memory, and read nothing more."""
        assert self.place is not None
        try:
            is_known, free_bytes = self.place.has_known_client, self._bodies.free_bytes
            self._early.keep(data, self._client(), is_known=is_known, free_bytes=free_bytes)
            self._keep_time()
        except BodiesBusy as refusal:
            self.refuse(refusal)

    @override
    def _take_early(self) -> None:
        if not self._early or self._early.awaits_turn:
            return
        data = self._early.take()
        if not self.transport.is_closing():
            if not self.pipeline:
                self.flow.resume_reading()  # otherwise the end of an answer does it
            self._receive(data)
            if self._bodies.arriving is not None and not (self._is_refused or self._early):
                self._await_read_turn()  # what is kept again waits for its reader, or for a request's turn

    def _read_on(self, body: UnreadBody) -> None:
        """Go on when an application has received what had arrived of the body that arrives."""
        if body is self._bodies.arriving:
            self.loop.call_soon(self._take_early)
            self._keep_time()

    @override
    def _client(self) -> str:
        if self._bodies.arriving is not None:
            return self._bodies.arriving.client
        return (self.place.client if self.place else "") or (self.client[0] if self.client else "")

    def _limit(self, more_bytes: int) -> None:
        """Limit the time and the size of the request that arrives; it has that many bytes more."""
        self._keep_time()
        if self._is_in_head and not self._head.may_receive(more_bytes):
            self.refuse(self._head.refusal(self.url))

    @override
    def _keep_time(self) -> None:
        if self.flow.read_paused or (
            self._bodies.awaits_its_reader and self.cycle.waiting_for_100_continue
        ):
            self._deadline.pause()
        elif self._is_arriving and not (self._is_refused or self._deadline.is_running):
            self._deadline.run(partial(self.refuse, RequestTooSlow(self._deadline.seconds)))

    @override
    def on_message_begin(self) -> None:
        self._is_arriving = self._is_in_head = True
        self._head.begin()
        super().on_message_begin()
        self.scope[PLACE] = self.place  # type: ignore[typeddict-unknown-key]

    @override
    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(url)

    @override
    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header, unless it comes behind the body: it would be taken for one that a proxy has checked."""
        if self._bodies.arriving is None:
            super().on_header(name, value)
        self._count(name, value)

    def _count(self, *parts: bytes) -> None:
        """Count a part of the head that is complete; what is not yet is counted as it is received."""
        if not self._head.may_have(*parts):
            raise RequestRefused(self._head.refusal(self.url))

    @override
    def on_headers_complete(self) -> None:
        self._is_in_head = False
        check_framing(self.parser, self.headers)
        if not self.parser.should_upgrade():
            self.expect_100_continue &= self.parser.get_http_version() != "1.0"
            self._begin_request()
            self._close_unless_kept(self.cycle)
        elif self._should_upgrade():
            check_handshake(self.parser, self.url, self.headers)
            if self._bodies:
                raise RequestRefused(MalformedRequest("earlier requests are not answered yet"))
            super().on_headers_complete()

    def _begin_request(self) -> None:
        """Give the request to its application, or let it wait for its turn."""
        assert self.place is not None
        client = self._places.client_of(self.place, self.client, self.headers)
        body = UnreadBody(self._served, self._limits, self.place, client, self._read_on)
        body.begin(self.parser.get_method(), self.headers, self._head.kept_bytes)
        self.app = body
        super().on_headers_complete()
        self._bodies.add(body)

    def on_chunk_header(self) -> None:
        """Count a chunk of a body; the parser looks for this name.

        The last one has no bytes: headers follow it, whose memory is bounded as that of a head.
        """
        if self._bodies.arriving is not None:
            self._bodies.arriving.count_chunk()
        self._is_in_head = True
        self._head.begin()

    @override
    def on_body(self, body: bytes) -> None:
        self._is_in_head = False
        if self._bodies.arriving is not None:
            is_kept, is_next = not self.cycle.response_complete, len(self._bodies) == 1
            self._bodies.arriving.receive(len(body), is_kept=is_kept, is_next=is_next)
        super().on_body(body)

    @override
    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        """Carry out a request, later if its answer had to wait in memory behind others that nobody reads."""
        if self.flow.write_paused:
            self._postponed = cycle, app
            return
        cycle.transport = WhileOpen(self.transport)  # type: ignore[assignment]
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def on_message_complete(self) -> None:
        if self.parser.should_upgrade() and not self._should_upgrade():
            return  # it is parsed again
        self._is_arriving, self._bodies.arriving = False, None
        self._turn.end()
        self._deadline.end()
        super().on_message_complete()
        if not (self.parser.should_keep_alive() or self.parser.should_upgrade()):
            self._close_behind(self.cycle)  # a header behind the last chunk may say so

    @override
    def on_response_complete(self) -> None:
        self._running = None
        super().on_response_complete()
        self._unset_keepalive_if_required()  # its owner keeps the time between requests, and each timer takes memory
        self._bodies.end_first()
        if self.place is not None and self.cycle.response_complete:
            self.cycle.body = bytearray()
        if self.transport.is_closing():
            self._abort_within(self._limits.stall_deadline_s)
        if self._early and not self.transport.is_closing():
            if not self.pipeline and self._may_read():
                self.loop.call_soon(self._take_early)
        elif not self._is_refused:
            self._keep_time()
            self._report_if_idle()
        elif not self._bodies:
            self._close_with(self._last_answer)

    @override
    def handle_websocket_upgrade(self) -> None:
        self._is_arriving = False
        self._deadline.end()
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
    def shutdown(self) -> None:
        if not self._owner.closes_after_answer():
            super().shutdown()

    def _report_if_idle(self) -> None:
        """Report that every request that has arrived is answered, if that is so."""
        if not (self._bodies or self._is_arriving):
            has_begun = self.scope is not None  # otherwise only empty lines have come
            self._forget_request()
            self.app = self._served
            self._owner.framework_is_idle(has_begun=has_begun)

    def refuse(self, refusal: ForetellError, url: bytes | None = None) -> None:
        """Answer the request that arrives with a refusal, after those before it, and close the connection."""
        self._deadline.end()
        self._early.take()
        if self.transport.is_closing():
            return
        self._is_refused = True
        if self._bodies.arriving is not None:
            if self.cycle.response_started:
                self._close_in_time()  # it has its answer, or a part of it
                return
            self._bodies.drop_arriving()
            if self.pipeline:
                self.pipeline.popleft()
            else:
                self.cycle.body = bytearray()
                self.cycle.disconnected = True  # for the application, which may wait for the body
                self.cycle.message_event.set()
        known = self.url if self._is_arriving and url is None else url or b""
        answer = self._refusals.answer(refusal, known, self.server_state.default_headers)
        if self._bodies:
            self._last_answer = answer
        else:
            self._close_with(answer)
