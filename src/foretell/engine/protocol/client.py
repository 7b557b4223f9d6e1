"""An engine in another process, as its callers see it.

The connection is made again whenever it is lost, to wherever the engine is then; so it is when the
engine does not even answer a ping, for one that is stopped keeps its connections. How long its answers
take says nothing of that. While there is none, questions wait a while, and are then refused as while
an engine starts. Of what was asked and not answered when it was lost, an order is asked again, since
its hash makes it the same one; of anything else the outcome is unknown.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

import structlog
from typing_extensions import override

from foretell.domain.errors.exchange import AnswerLost, EngineRestarting
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
    refusal_of,
)
from foretell.engine.protocol.requests import (
    CommittedCommand,
    EngineReply,
    EngineRequest,
    FindPlacementRequest,
    PlaceRequest,
    TablesRequest,
)

CONNECT_DEADLINE_S: Final = 2.0
RETRY_S: Final = 0.05
ANSWER_DEADLINE_S: Final = 25.0
"""Longer than an engine whose disk stalls takes to say so."""
SILENT_S: Final = 3.0
"""How long an engine may say nothing at all, pings included, before it is left."""
LOOKS: Final = 3
"""How often within that it is looked whether anything came, and pinged when nothing did."""
HELD_S: Final = 10.0
"""How long a question waits for an engine that is lost; a lease is over sooner."""
HELD_MAX: Final = 10_000

log = structlog.get_logger(__name__)

Connect = Callable[[Callable[[], asyncio.Protocol]], Awaitable[object]]
"""Makes a connection to where the engine is now; raises OSError when it is nowhere."""


class EngineSubscriber(Protocol):
    """Who wants to know what an engine does."""

    def begin(self) -> None:
        """Forget what was heard of this engine: its whole state is told next."""

    def on_committed(self, committed: CommittedCommand) -> None:
        """Take what a command did."""


class _Waiting(NamedTuple):
    question: EngineRequest
    answer: asyncio.Future[EngineReply]


class RemoteShard:
    """One engine behind a socket; see `shards.Shard`."""

    def __init__(
        self, connect: Connect, token: bytes, subscriber: EngineSubscriber | None = None
    ) -> None:
        self._connect = connect
        self._token = token
        self.subscriber = subscriber
        self._line: _Line | None = None
        self._waiting_by_number: dict[int, _Waiting] = {}
        self._next_number = 1
        self._held = 0
        self.begun = asyncio.Event()

    async def ask(self, question: EngineRequest) -> EngineReply:
        """Return the answer, durable if anything changed; or raise the refusal."""
        await self._wait_for_line()
        assert self._line is not None
        number, self._next_number = self._next_number, self._next_number + 1
        answer: asyncio.Future[EngineReply] = asyncio.get_running_loop().create_future()
        self._waiting_by_number[number] = _Waiting(question, answer)
        self._line.send(frame(RequestMessage(number, question)))
        try:
            async with asyncio.timeout(ANSWER_DEADLINE_S):
                return await answer
        except TimeoutError:
            raise AnswerLost from None
        finally:
            self._waiting_by_number.pop(number, None)

    async def _wait_for_line(self) -> None:
        """Wait a while for an engine that is lost: who follows it needs no longer."""
        if self.begun.is_set():
            return
        if self._held == HELD_MAX:
            raise EngineRestarting
        self._held += 1
        try:
            async with asyncio.timeout(HELD_S):
                await self.begun.wait()
        except TimeoutError:
            raise EngineRestarting from None
        finally:
            self._held -= 1

    async def wait_for_tables(self) -> None:
        """Return when the tables hold everything that is durable now, or refuse."""
        await self.ask(TablesRequest())

    async def run(self) -> None:
        """Keep a connection to the engine, until cancelled."""
        while True:
            line = _Line(self)
            if await self._is_connected(line):
                try:
                    await self._speak(line)
                finally:
                    line.disconnect()
            await asyncio.sleep(RETRY_S)

    async def _is_connected(self, line: "_Line") -> bool:
        try:
            async with asyncio.timeout(CONNECT_DEADLINE_S):
                await self._connect(lambda: line)
        except (OSError, TimeoutError):
            return False
        return True

    async def _speak(self, line: "_Line") -> None:
        """Greet, begin, and go on until the line is lost."""
        line.send(frame(Hello(VERSION, self._token, self.subscriber is not None)))
        self._line = line
        await _stay_while_alive(line)
        self._line = None
        self.begun.clear()
        for waiting in list(self._waiting_by_number.values()):
            if not isinstance(waiting.question, _ASKED_AGAIN) and not waiting.answer.done():
                waiting.answer.set_exception(AnswerLost())

    def _begin(self) -> None:
        """Take questions, those first that an earlier line lost."""
        assert self._line is not None
        for number, waiting in self._waiting_by_number.items():
            self._line.send(frame(RequestMessage(number, waiting.question)))
        self.begun.set()

    def take(self, message: bytes) -> None:
        """Take what the engine says."""
        said = decode_engine(message)
        match said:
            case CommittedMessage():
                assert self.subscriber is not None
                self.subscriber.on_committed(CommittedCommand(said.sequence, said.effects))
            case ReplyMessage() | RefusalMessage():
                self._settle(said)
            case StateBegin():
                assert self.subscriber is not None
                self.subscriber.begin()
            case StateEnd():
                self._begin()
            case Pong():
                pass

    def _settle(self, said: ReplyMessage | RefusalMessage) -> None:
        waiting = self._waiting_by_number.get(said.number)
        if waiting is None or waiting.answer.done():
            return
        if isinstance(said, ReplyMessage):
            waiting.answer.set_result(said.answer)
        else:
            waiting.answer.set_exception(refusal_of(said))


_ASKED_AGAIN: Final = (PlaceRequest, FindPlacementRequest, TablesRequest)
_PING: Final = frame(Ping())


class _Line(FramedConnection):
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


async def _stay_while_alive(line: _Line) -> None:
    """Return when the line is lost; an engine that says nothing, asked or not, is hung up on.

    Looks are counted, not time: whoever was stopped itself hears first what came meanwhile.
    """
    quiet = 0
    while not await _is_lost_within(line, SILENT_S / LOOKS):
        quiet = 0 if line.has_received else quiet + 1
        line.has_received = False
        if quiet == LOOKS:
            log.warning("hung up on an engine that is silent")
            line.disconnect()
            await line.lost.wait()
        elif quiet:
            line.send(_PING)


async def _is_lost_within(line: _Line, within_s: float) -> bool:
    try:
        async with asyncio.timeout(within_s):
            return await line.lost.wait()
    except TimeoutError:
        return False
