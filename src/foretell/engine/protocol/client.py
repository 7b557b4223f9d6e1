"""The client of an engine in another process.

A lost connection is made again, to wherever the engine runs then. An engine that does not even
answer a ping counts as lost, since a stopped process keeps its connections; how long its replies
take does not matter. While there is no connection requests wait for a while, and are then refused
as while an engine starts. Of requests whose reply was lost, an order is sent again, since its hash
identifies it; the outcome of most others is unknown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

import structlog
from typing_extensions import override

from foretell.domain.errors.exchange import AnswerLost, EngineRestarting
from foretell.engine.protocol.decided import committed_of
from foretell.engine.protocol.endpoint import SettlePlacing
from foretell.engine.protocol.framing import FramedConnection
from foretell.engine.protocol.messages import (
    VERSION,
    CommittedMessage,
    Hello,
    Ping,
    Pong,
    RefusalMessage,
    ReplyMessage,
    RequestMessage,
    StateBegin,
    StateEnd,
    decode_engine,
    frame,
)
from foretell.engine.protocol.refusal_codec import decode_refusal
from foretell.engine.protocol.requests import (
    CommittedCommand,
    EngineReply,
    EngineRequest,
    FindPlacementRequest,
    PlaceRequest,
    TablesRequest,
)
from foretell.runtime.backoff import pauses_s
from foretell.runtime.failures import FailureLog

CONNECT_DEADLINE_S: Final = 2.0
RETRY_S: Final = 0.05
RETRY_S_MAX: Final = 0.5
CHECKS: Final = 3
"""How often within `silent_s` the connection is checked, and pinged if nothing was received."""

SENT_AGAIN: Final = (PlaceRequest, FindPlacementRequest, TablesRequest)
_PING: Final = frame(Ping())

log = structlog.get_logger(__name__)

Connect = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Connects to where the engine runs now; raises OSError when it runs nowhere."""


class ClientLimits(NamedTuple):
    """The seconds that a client waits for its engine, and the requests that wait at once."""

    reply_s: float = 25.0
    """For a reply; longer than an engine with a stalled disk takes to refuse."""
    silent_s: float = 3.0
    """For any bytes at all, pongs included, before it disconnects."""
    held_s: float = 10.0
    """For a lost engine, before requests are refused; a lease is over sooner."""
    held_max: int = 10_000
    """How many requests wait for a lost engine at once."""


LIMITS: Final = ClientLimits()


class EngineSubscriber(Protocol):
    """A subscriber to an engine's commands."""

    def begin(self) -> None:
        """Forget this engine's state: its whole state follows."""

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take a command and what was decided."""


class _Pending(NamedTuple):
    request: EngineRequest
    reply: asyncio.Future[EngineReply]


class RemoteShard:
    """One engine behind a socket; see `endpoint.Shard`."""

    def __init__(
        self,
        connect: Connect,
        token: bytes,
        subscriber: EngineSubscriber | None = None,
        *,
        name: str = "engine",
        limits: ClientLimits = LIMITS,
    ) -> None:
        self._connect = connect
        self._token = token
        self.subscriber = subscriber
        self._limits = limits
        self._failures = FailureLog(f"connection to {name}")
        self.connection: _Connection | None = None
        self._pending_by_number: dict[int, _Pending] = {}
        self._next_number = 1
        self._held = 0
        self.ready = asyncio.Event()
        """Set while requests are taken."""

    async def handle(self, request: EngineRequest) -> EngineReply:
        """Return the reply, durable if anything changed; or raise the refusal."""
        await self._wait_until_ready()
        assert self.connection is not None
        number, self._next_number = self._next_number, self._next_number + 1
        reply: asyncio.Future[EngineReply] = asyncio.get_running_loop().create_future()
        self._pending_by_number[number] = _Pending(request, reply)
        self.connection.send(frame(RequestMessage(number, request)))
        try:
            async with asyncio.timeout(self._limits.reply_s):
                return await reply
        except TimeoutError:
            raise AnswerLost from None
        finally:
            self._pending_by_number.pop(number, None)

    def begin_placing(self, request: PlaceRequest, settle: SettlePlacing) -> bool:
        """Return False: a request to another process may wait for a connection."""
        del request, settle
        return False

    async def _wait_until_ready(self) -> None:
        """Wait a while for an engine that is lost: the next leader takes no longer."""
        if self.ready.is_set():
            return
        if self._held == self._limits.held_max:
            raise EngineRestarting
        self._held += 1
        try:
            async with asyncio.timeout(self._limits.held_s):
                await self.ready.wait()
        except TimeoutError:
            raise EngineRestarting from None
        finally:
            self._held -= 1

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        await self.handle(TablesRequest())

    async def run(self) -> None:
        """Keep a connection to the engine, until cancelled.

        A lasting failure is logged from when requests are refused because of it.
        """
        now_s = asyncio.get_running_loop().time
        pauses, lost_at_s = pauses_s(RETRY_S, RETRY_S_MAX), now_s()
        while True:
            failure = await self._use_connection()
            if failure is None:
                pauses, lost_at_s = pauses_s(RETRY_S, RETRY_S_MAX), now_s()
            elif now_s() - lost_at_s >= self._limits.held_s:
                self._failures.failed(failure, is_expected=True)
            await asyncio.sleep(next(pauses))

    async def _use_connection(self) -> Exception | None:
        """Connect, and serve until the connection is lost; return why no requests were taken."""
        connection = _Connection(self)
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                await self._connect(lambda: connection)
        except (OSError, TimeoutError) as error:
            return error
        self.connection = connection
        connection.send(frame(Hello(VERSION, self._token, self.subscriber is not None)))
        try:
            await _wait_until_lost(connection, self._limits.silent_s)
        finally:
            connection.disconnect()
        self.connection = None
        return self._end()

    def _end(self) -> Exception | None:
        """Stop accepting requests; of those that are not sent again the outcome is unknown."""
        if not self.ready.is_set():
            return ConnectionError("the engine disconnected before it took requests")
        self.ready.clear()
        for pending in list(self._pending_by_number.values()):
            if not isinstance(pending.request, SENT_AGAIN) and not pending.reply.done():
                pending.reply.set_exception(AnswerLost())
        return None

    def _begin(self) -> None:
        """Take requests, after those that an earlier connection lost."""
        assert self.connection is not None
        for number, pending in self._pending_by_number.items():
            self.connection.send(frame(RequestMessage(number, pending.request)))
        self._failures.passed()
        self.ready.set()

    def take(self, message: bytes) -> None:
        """Handle a message of the engine."""
        decoded = decode_engine(message)
        match decoded:
            case CommittedMessage():
                assert self.subscriber is not None
                self.subscriber.on_committed(committed_of(decoded.command))
            case ReplyMessage() | RefusalMessage():
                self._resolve(decoded)
            case StateBegin():
                assert self.subscriber is not None
                self.subscriber.begin()
            case StateEnd():
                self._begin()
            case Pong():
                pass

    def _resolve(self, received: ReplyMessage | RefusalMessage) -> None:
        pending = self._pending_by_number.get(received.number)
        if pending is None or pending.reply.done():
            return
        if isinstance(received, ReplyMessage):
            pending.reply.set_result(received.reply)
        else:
            pending.reply.set_exception(decode_refusal(received.refusal))


class _Connection(FramedConnection):
    """One connection to the engine."""

    def __init__(self, shard: RemoteShard) -> None:
        super().__init__()
        self._shard = shard
        self.has_received = False
        self.lost = asyncio.Event()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.lost.set()

    @override
    def data_received(self, data: bytes) -> None:
        self.has_received = True
        super().data_received(data)

    @override
    def take(self, message: bytes) -> None:
        self._shard.take(message)


async def _wait_until_lost(connection: _Connection, silent_s: float) -> None:
    """Return when the connection is lost; disconnect from an engine without even a pong.

    Checks are counted instead of time: a client that was stopped itself first receives what arrived
    while it was.
    """
    silent_checks = 0
    while not await _is_lost_within(connection, silent_s / CHECKS):
        silent_checks = 0 if connection.has_received else silent_checks + 1
        connection.has_received = False
        if silent_checks == CHECKS:
            log.warning("engine is silent, and is disconnected", seconds=silent_s)
            connection.disconnect()
            await connection.lost.wait()
        elif silent_checks:
            connection.send(_PING)


async def _is_lost_within(connection: _Connection, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await connection.lost.wait()
    except TimeoutError:
        return False
