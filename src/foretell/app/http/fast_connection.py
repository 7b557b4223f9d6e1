"""Connections that answer the busiest routes without the framework.

A connection reads a request itself when it is for a fast route and nothing about it is unusual, and hands
every other request, with the same bytes, to a connection of the framework's server on the same transport.
For each request the framework builds a dictionary, an object with a life of its own and a task; for an order
that costs more than checking and matching it.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from typing_extensions import override

from foretell.app.http.answer_heads import heads_of
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import Place
from foretell.app.http.fast_routes import Answering, Arrival, FastRoutes, ServedFastRoute
from foretell.app.http.framework_connection import FrameworkConnection
from foretell.app.http.request_head import END, HeadReader
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import BodiesBusy, RequestTooSlow, TooManyRequests
from foretell.edge.codec import HeldBytes
from foretell.edge.fast_route import BODY_BYTES_MAX, FastRequest, FastResponse, anyone
from foretell.edge.throttle import Turn
from foretell.store.public_reads.places import context_of

_VERSION: Final = b" HTTP/1.1"
_READER: Final = HeadReader()


class FastConnection(asyncio.Protocol):
    """A connection with fast routes, in front of the framework's connection.

    At any time at most one of both has an unfinished request. Data that arrives while a fast request is
    answered is held back, and nothing more is read until the answer is sent. One timer serves all deadlines
    of the connection: it is set again when it fires too early, instead of at every request.
    """

    def __init__(
        self,
        fast_routes: FastRoutes,
        *arguments: Any,
        limits: ConnectionLimits = CONNECTION_LIMITS,
        **named: Any,
    ) -> None:
        """`named` has the refusals of the connection, and what the framework's connection takes."""
        self._framework = FrameworkConnection(self, *arguments, limits=limits, **named)
        self._server_state = self._framework.server_state
        self._heads = heads_of(self._server_state)
        self._tasks = self._framework.tasks
        self._fast_routes = fast_routes
        self._limits = limits
        self._loop = self._framework.loop
        self._transport: asyncio.Transport
        self._peer: str | None = None
        self._place: Place | None = None
        self._held = b""
        self._budget = HeldBytes()
        """The bytes of `_held` that count: those of a body that arrives, or of an early request."""
        self._arriving: Arrival | None = None
        self._answering: Answering | None = None
        self._is_new = True
        self._is_with_framework = self._is_write_paused = self._is_shutting_down = False
        self._due_at_s = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self._peer = peer[0] if isinstance(peer, tuple) else None
        self._framework.connection_made(transport)
        self._place = self._framework.place
        self._is_with_framework = self._framework.is_refused
        self._due_at_s = self._loop.time() + self._limits.silence_deadline_s
        self._timer = self._loop.call_later(self._limits.silence_deadline_s, self._check_due)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._answering is not None and self._answering.turn is not None:
            self._answering.turn.is_abandoned = True
        self._answering = None
        self._budget.end()
        self._cancel_timer()
        self._framework.connection_lost(exc)
        self._place = None
        del self._framework  # it refers to this connection

    @override
    def eof_received(self) -> bool | None:
        self._framework.eof_received()
        return None

    @override
    def pause_writing(self) -> None:
        self._is_write_paused = True
        self._framework.pause_writing()

    @override
    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._framework.resume_writing()

    @override
    def data_received(self, data: bytes) -> None:
        if self._is_with_framework:
            self._framework.data_received(data)
        elif self._answering is not None:
            self._hold_early(data, self._answering)
        elif self._arriving is not None:
            self._hold_more(data, self._arriving)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        """Begin a request with its first bytes."""
        arrival = self._read(data)
        if arrival is None:
            self._pass_on(data)
        else:
            self._held = data
            self._take_body(arrival)

    def _read(self, data: bytes) -> Arrival | None:
        """Return the request that the data begins with, or None if it is the framework's."""
        line_end = data.find(b"\r\n")
        line = data[:line_end]
        target, _, query = line[: -len(_VERSION)].partition(b"?")
        served = self._fast_routes.get(target)
        if served is None or line[-len(_VERSION) :] != _VERSION or not self._is_free():
            return None
        head_end = data.find(END, line_end)
        head = _READER.read(data[line_end + 2 : head_end]) if head_end > line_end else None
        if head is None or head.body_bytes > BODY_BYTES_MAX or not served.route.takes(query):
            return None
        return Arrival(target, served, query, head, head_end + len(END))

    def _is_free(self) -> bool:
        """Return whether an answer can be written."""
        return not (self._is_write_paused or self._is_shutting_down)

    def _take_body(self, arrival: Arrival) -> None:
        """Begin to answer when the body is complete; wait for the rest of it."""
        end = arrival.body_at + arrival.head.body_bytes
        data = self._held
        if len(data) == end and self._may_begin(arrival):
            self._held = b""
            self._end_deadline()
            self._begin(arrival, data[arrival.body_at :])
        elif len(data) >= end:
            self._held = b""
            self._pass_on(data)
        elif self._arriving is None:
            self._wait_for_body(arrival)

    def _may_begin(self, arrival: Arrival) -> bool:
        """Return whether a request may begin now; a stranger's that may not waits with the framework for its turn."""
        place, may_send = self._place, arrival.served.route.may_send
        if place is None or place.has_known_client:
            return True
        names_key = may_send is not anyone and may_send(arrival.head.headers)
        return names_key or place.try_begin()

    def _wait_for_body(self, arrival: Arrival) -> None:
        """Wait for the rest of a body; the framework gets the request of a client that may send none.

        It refuses the request, or finds the key in the database, before it reads the body.
        """
        data, route = self._held, arrival.served.route
        if not route.may_send(arrival.head.headers):
            self._held = b""
            self._pass_on(data)
            return
        self._arriving = arrival
        self._due_at_s = self._loop.time() + self._limits.request_deadline_s
        self._set_timer(self._limits.request_deadline_s)
        self._held = b""
        address = self._address(arrival.served, arrival.head.headers)
        self._budget.begin(address, is_known=route.may_send is not anyone)
        self._hold_more(data, arrival)

    def _hold_more(self, data: bytes, arrival: Arrival) -> None:
        """Keep a part of a body that arrives, or refuse it when bodies have all the memory."""
        try:
            self._budget.add(len(data))
        except BodiesBusy as refusal:
            self._refuse_arriving(refusal)
            return
        self._held += data
        if len(self._held) >= arrival.body_at + arrival.head.body_bytes:
            self._take_body(arrival)

    def _hold_early(self, data: bytes, answering: Answering) -> None:
        """Keep what arrives before the answer is sent; the connection closes if memory is short."""
        self._transport.pause_reading()
        if not self._held:
            turn, place = answering.turn, self._place
            address = self._peer or "" if turn is None else turn.address
            self._budget.begin(address, is_known=place is not None and place.has_known_client)
        try:
            self._budget.add(len(data))
        except BodiesBusy:
            self._is_shutting_down = True
        else:
            self._held += data

    def _refuse_arriving(self, refusal: ForetellError) -> None:
        """Refuse the request that arrives, and close the connection."""
        url = b"" if self._arriving is None else self._arriving.url
        self._held = b""
        self._end_deadline()
        self._is_with_framework = True
        self._framework.refuse(refusal, url)

    def _begin(self, arrival: Arrival, body: bytes) -> None:
        served, headers = arrival.served, arrival.head.headers
        turn = self._turn(served, headers, len(body))
        answering = self._answering = Answering(served, headers.get("x-request-id"), turn)
        request = FastRequest(served.method, served.path, arrival.query, headers, body, turn)
        if turn is None or turn.route.is_signed:
            self._carry_out(answering, request)
        else:
            self._in_turn(answering, turn, partial(self._carry_out, answering, request))

    def _turn(
        self, served: ServedFastRoute, headers: Mapping[str, str], body_bytes: int
    ) -> Turn | None:
        """Return the turn of a request, None where no limits apply."""
        limits = served.limits
        if limits is None:
            return None
        assert served.limited is not None
        address = self._address(served, headers)
        return Turn(limits.limiter, served.limited, address, body_bytes, self._place)

    def _address(self, served: ServedFastRoute, headers: Mapping[str, str]) -> str:
        """Return the address that a request counts for."""
        if served.limits is None:
            return self._peer or ""
        addresses = served.limits.addresses
        forwarded = headers.get("x-forwarded-for") if addresses.reads_forwarded else None
        return addresses.client(self._peer, forwarded)

    def _carry_out(self, answering: Answering, request: FastRequest) -> None:
        rest = answering.served.route.begin(request, partial(self._answer, answering))
        if rest is not None:
            self._run(rest, request.turn.address if request.turn else self._peer)

    def _run(self, work: Coroutine[Any, Any, None], client: str | None) -> None:
        task = self._loop.create_task(work, context=context_of(client))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _in_turn(self, answering: Answering, turn: Turn, act: Callable[[], None]) -> None:
        """Act when it is a request's turn at its address, at once if possible."""
        try:
            if turn.take(turn.address):
                act()
            else:
                self._run(self._act_later(answering, turn, act), turn.address)
        except TooManyRequests as refusal:
            self._refuse(answering, refusal)

    async def _act_later(self, answering: Answering, turn: Turn, act: Callable[[], None]) -> None:
        try:
            await turn.admitted()
        except ForetellError as refusal:
            self._refuse(answering, refusal)
        else:
            act()

    def _refuse(self, answering: Answering, refusal: ForetellError) -> None:
        limits = answering.served.limits
        assert limits is not None
        self._send(answering, FastResponse(*limits.refused(refusal), refusal.retry_after_s))

    def _answer(self, answering: Answering, answer: FastResponse) -> None:
        """Send the answer; one that counts nowhere yet counts for the address, and waits for its turn."""
        turn = answering.turn
        if turn is not None and turn.is_open:
            self._in_turn(answering, turn, partial(self._send, answering, answer))
        else:
            self._send(answering, answer)

    def _send(self, answering: Answering, answer: FastResponse) -> None:
        """Send the answer, and take what has arrived since the request."""
        served = answering.served
        request_id = served.telemetry.request_id(answering.request_id)
        if self._answering is answering:
            self._answering = None
            if self._place is not None and self._place.is_provisional:
                self._is_shutting_down = True  # it has shown no key
            limits = "" if answering.turn is None else answering.turn.header_text()
            head = self._heads.head(answer, request_id, limits, is_last=self._is_shutting_down)
            self._transport.write(head + answer.body)
            self._server_state.total_requests += 1
            self._next()
        served.telemetry.record_answer(
            served.method, served.path, answer.status, request_id, answering.started
        )

    def _next(self) -> None:
        """Wait for the next request, or take the one that has arrived already."""
        if self._is_shutting_down:
            self._transport.close()
            self._due_at_s = self._loop.time() + self._limits.stall_deadline_s
            self._set_timer(self._limits.stall_deadline_s)
            return
        self._due_at_s = self._loop.time() + self._limits.keep_alive_s
        if self._timer is None:
            self._set_timer(self._limits.keep_alive_s)
        if self._held:
            self._loop.call_soon(self._take_held)

    def _take_held(self) -> None:
        """Take what arrived during an answer, and read on."""
        if not self._transport.is_closing():
            data, self._held = self._held, b""
            self._budget.end()
            self._transport.resume_reading()
            self._take(data)

    def _pass_on(self, data: bytes) -> None:
        """Hand a request to the framework, which then gets all data until it has answered."""
        self._is_with_framework = True
        self._end_body()
        self._framework.data_received(data)

    @property
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""
        return not self._is_with_framework and self._answering is None and self._arriving is None

    def framework_is_idle(self, *, has_begun: bool) -> None:
        """Take the next request: every one that was passed on is answered, if one has begun at all.

        Empty lines keep no connection open. One that has become a stream has no next request, so its silence has no
        deadline here.
        """
        self._is_with_framework = False
        if self._transport.is_closing() or self._transport.get_protocol() is not self:
            return
        if has_begun:
            self._is_new = False
            self._next()
        elif self._timer is None:
            self._set_timer(max(0.0, self._due_at_s - self._loop.time()))

    def framework_upgrades(self) -> None:
        """Stop the timer: the transport gets another protocol."""
        self._cancel_timer()

    def closes_after_answer(self) -> bool:
        """Close after the present fast answer; return False when there is none."""
        self._is_shutting_down = True
        return self._answering is not None

    def _end_deadline(self) -> None:
        """End the deadline of a new connection, or of a body; the timer of pauses goes on."""
        if self._is_new:
            self._is_new = False
            self._cancel_timer()
        self._end_body()

    def _end_body(self) -> None:
        """End what is counted and timed of a body that arrives."""
        if self._arriving is not None:
            self._budget.end()
            self._arriving = None
            self._cancel_timer()

    def _set_timer(self, seconds: float) -> None:
        self._cancel_timer()
        self._timer = self._loop.call_later(seconds, self._check_due)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _check_due(self) -> None:
        """Close a connection that is silent or slow for too long; else check again when it would be."""
        self._timer = None
        if self._transport.is_closing() and not self._is_shutting_down:
            return
        if self._answering is not None or self._is_with_framework:
            return  # `_next` sets it again
        left_s = self._due_at_s - self._loop.time()
        if left_s > 0:
            self._set_timer(left_s)
        elif self._arriving is not None or self._is_new:
            limits = self._limits
            wait_s = limits.silence_deadline_s if self._is_new else limits.request_deadline_s
            self._refuse_arriving(RequestTooSlow(wait_s))
        else:
            self._transport.abort()  # to close it would wait for a client that takes no answer
