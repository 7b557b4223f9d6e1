"""The framework's connection with a place among all connections, and a bound for what it does not take."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, Final

import httptools
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_places import CONNECTION_PAUSE_FACTOR, ConnectionPlaces, Place
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.early_data import EarlyData
from foretell.app.http.write_buffers import WRITE_BUFFERS
from foretell.domain.errors.http import TooManyConnections

_OF_UVICORN: Final = (
    "access_log",
    "access_logger",
    "app",
    "app_state",
    "asgi_version",
    "client",
    "config",
    "connections",
    "cycle",
    "expect_100_continue",
    "flow",
    "headers",
    "limit_concurrency",
    "logger",
    "loop",
    "parser",
    "pipeline",
    "root_path",
    "scheme",
    "scope",
    "server",
    "server_state",
    "tasks",
    "timeout_keep_alive",
    "timeout_keep_alive_task",
    "transport",
    "url",
    "ws_protocol_class",
)
"""The attributes of its connections: in slots they take a quarter of the memory of a dictionary with so many."""


@lru_cache(maxsize=16)
def _only(address: tuple[str, int] | None) -> tuple[str, int] | None:
    """Return the one object of an address of this server: thousands of connections have the same."""
    return address


class ShortQueue(list[Any]):
    """Requests that wait, the last one first: an empty deque takes ten times the memory, and most connections are idle."""

    __slots__ = ()

    def appendleft(self, request: Any) -> None:
        """Add one to those that wait."""
        self.insert(0, request)

    def popleft(self) -> Any:
        """Drop the last one, which is refused."""
        return self.pop(0)


class PlacedConnection(HttpToolsProtocol, ABC):
    """uvicorn's connection with its place, which it may lose, and a deadline for a client that reads no answers."""

    __slots__ = (
        *_OF_UVICORN,
        "_early",
        "_is_refused",
        "_last_cycle",
        "_limits",
        "_linger",
        "_made_in_s",
        "_places",
        "_proof",
        "_refusals",
        "_running",
        "_stall",
        "place",
    )

    def __init__(
        self,
        *arguments: Any,
        limits: ConnectionLimits,
        places: ConnectionPlaces,
        refusals: ConnectionRefusals,
        **named: Any,
    ) -> None:
        super().__init__(*arguments, **named)
        self._end_parsing()
        self.pipeline = ShortQueue()  # type: ignore[assignment] # no deque, but used as one
        self.place: Place | None = None
        self._early: EarlyData
        """What has arrived and is not parsed: too many requests wait, or too much of a body, or another turn begins."""
        self._places, self._refusals = places, refusals
        self._limits = limits
        self._is_refused = False
        """Whether nothing more is read: what arrives is dropped until the connection closes."""
        self._last_cycle: RequestResponseCycle | None = None
        """The request after which a connection closes that is admitted provisionally."""
        self._running: RequestResponseCycle | None = None
        """The request that is carried out; others may follow it that wait."""
        self._made_in_s = 0.0
        self._stall: asyncio.TimerHandle | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._proof: asyncio.TimerHandle | None = None
        """Ends a connection that has not shown a key."""

    @property
    def is_refused(self) -> bool:
        """Whether nothing more is read from the connection."""
        return self._is_refused

    @override
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        began_s = self._places.request_turns.now_s()
        super().connection_made(transport)
        self.server = _only(self.server)
        self.flow = self._early = EarlyData(transport)
        transport.set_write_buffer_limits(high=self._limits.write_buffer_bytes)
        self.place = self._places.take(None if self.client is None else self.client[0], self)
        if self.place is None:
            self._turn_away()
        else:
            self._limit_provisional(self.place)
        self._made_in_s = self._places.request_turns.now_s() - began_s

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

    @override
    def data_received(self, data: bytes) -> None:
        """Take what arrives. If more of a body is to come, it is read in a turn of the client.

        One read takes all that the system has of a connection, and very many connections may have as much. What may
        be the end of a body is taken in a turn, too: each end wakes an application, and very many may come at once.
        """
        turns = self._places.read_turns
        are_free, began_s = turns.are_free, turns.now_s()
        if not are_free and self._may_end_body(data):
            self._keep_early(data)
            self._await_read_turn()
            return
        was_in_turns = self.is_read_in_turns
        self._receive(data)
        if was_in_turns or self.is_read_in_turns:
            turns.count(turns.now_s() - began_s)
        if self.is_read_in_turns and not are_free:
            self._await_read_turn()

    def _await_read_turn(self) -> None:
        self._early.await_turn(self._places.read_turns, self._client(), self._have_read_turn)
        self._keep_time()

    def _have_read_turn(self) -> None:
        """Go on with what arrived before the turn."""
        turns = self._places.read_turns
        began_s = turns.now_s()
        self._take_early()
        turns.count(turns.now_s() - began_s)
        self._keep_time()

    @abstractmethod
    def _keep_early(self, data: bytes) -> None:
        """Keep what arrives until it may be parsed, and read nothing more."""

    @abstractmethod
    def _take_early(self) -> None:
        """Go on with what arrived early, if anything did and it need not wait for a turn."""

    @abstractmethod
    def _receive(self, data: bytes) -> None:
        """Take what arrives."""

    @property
    @abstractmethod
    def is_read_in_turns(self) -> bool:
        """Whether what comes next is a part of a body, or is dropped."""

    @abstractmethod
    def _may_end_body(self, data: bytes) -> bool:
        """Return whether data may have the end of a body that an application may receive."""

    @abstractmethod
    def _client(self) -> str:
        """Return the address that what arrives counts for."""

    @abstractmethod
    def _keep_time(self) -> None:
        """Run the deadline of the request that arrives while its client is waited for."""

    def _end_stall(self) -> None:
        if self._stall is not None:
            self._stall.cancel()
            self._stall = None

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._end_stall()
        for timer in (self._linger, self._proof):
            if timer is not None:
                timer.cancel()  # it refers to this connection
        if self.place is not None:
            WRITE_BUFFERS.release(self.place)
            self.place.end()
        self._places.request_turns.owe(CONNECTION_PAUSE_FACTOR * self._made_in_s)
        self._end_running()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    @property
    @abstractmethod
    def is_idle(self) -> bool:
        """Whether no request has begun that is not answered."""

    def _close_in_time(self) -> None:
        """Close once the client has read what was sent; what is left of an answer may never be read."""
        self.transport.close()
        self._abort_within(self._limits.stall_deadline_s)

    def _abort_within(self, seconds: float) -> None:
        if self._linger is None:
            self._linger = self.loop.call_later(seconds, self.transport.abort)

    def _close_with(self, answer: bytes) -> None:
        """Send the last answer of the connection, and close it when the client has, or soon.

        If it were closed at once with data that is not read yet, the kernel would reset it, and the
        client might lose the answer.
        """
        if not self.transport.is_closing():
            self.transport.write(answer)
            with contextlib.suppress(OSError):  # the client may have left while nothing was read
                self.transport.write_eof()
            self.flow.resume_reading()
            self._abort_within(self._limits.linger_s)

    def close_now(self) -> None:
        """End the connection at once, whatever it does."""
        self._end_running()
        self.transport.abort()

    def _end_running(self) -> None:
        """Have an application know that its connection ends: the framework reports it later, and for the last request."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()
            self._running = None

    def keep_open(self) -> None:
        """Keep the connection open after the present request."""
        if self._last_cycle is not None:
            self._last_cycle.keep_alive = True

    @property
    def _is_parsing(self) -> bool:
        return self.parser is not None

    def _begin_parsing(self) -> None:
        """Make a parser, as the framework does: one takes a kilobyte, so a connection that waits has none."""
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def _end_parsing(self) -> None:
        self.parser = None  # type: ignore[assignment] # as the framework does

    def _forget_request(self) -> None:
        """Free what the last request has left: the next one may be far."""
        self._end_parsing()
        self.cycle = self.scope = self._last_cycle = None  # type: ignore[assignment]
        self.headers, self.url = [], b""

    def _close_unless_kept(self, cycle: RequestResponseCycle) -> None:
        """Have a connection that is admitted provisionally end with the answer, unless the request shows a key."""
        if self.place is not None and self.place.is_provisional and cycle.keep_alive:
            self._last_cycle = cycle
            cycle.keep_alive = False

    def _close_behind(self, cycle: RequestResponseCycle) -> None:
        """Close when a request is answered, whatever it shows: its parser drops what comes behind it."""
        self._last_cycle = None
        cycle.keep_alive = False
        if cycle.response_complete:
            self._close_in_time()

    def _limit_provisional(self, place: Place) -> None:
        """End a connection that is admitted provisionally, unless it shows a key in time."""
        if place.is_provisional:
            wait_s = self._limits.provisional_s
            self._proof = self.loop.call_later(wait_s, self._end_provisional, place)

    def _end_provisional(self, place: Place) -> None:
        if place.is_provisional and place.is_taken:
            self.transport.abort()

    def _turn_away(self) -> None:
        """Close a connection that has no place, at once: waiting for its end would take a place."""
        self._is_refused = True
        refusal, headers = TooManyConnections(), self.server_state.default_headers
        self.transport.write(self._refusals.answer(refusal, b"", headers))
        self.transport.close()
