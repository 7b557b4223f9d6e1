"""The socket where other processes ask an engine, and hear what it does.

Who hears gets the state first, once all of it is durable, and then every command in its order. One
that does not read what it is told is hung up on: it comes again and begins anew.
"""

import asyncio
import hmac
from collections.abc import Coroutine
from itertools import islice
from typing import Any, Final

import structlog
from typing_extensions import override

from foretell.domain.errors.exchange import EngineBusy
from foretell.domain.errors.families import ForetellError, Unavailable
from foretell.domain.exchange.state_effects import restored_effects
from foretell.engine.protocol.framing import FramedConnection
from foretell.engine.protocol.messages import (
    VERSION,
    CommittedMessage,
    Hello,
    Ping,
    Pong,
    ReplyMessage,
    RequestMessage,
    StateBegin,
    StateEnd,
    decode_client,
    frame,
    refused,
)
from foretell.engine.protocol.requests import CommittedCommand, EngineEndpoint
from foretell.engine.writer.engine import Engine

QUESTIONS_MAX: Final = 20_000
"""How many questions of one asker may wait at once."""
EFFECTS_PER_MESSAGE: Final = 1_000
_PONG: Final = frame(Pong())

log = structlog.get_logger(__name__)


class EngineServer:
    """Everyone who asks one engine from outside its process."""

    def __init__(self, token: bytes) -> None:
        self.token = token
        self.host: EngineEndpoint | None = None
        self.engine: Engine | None = None
        self.peers: set[_Peer] = set()
        self._subscribers: dict[_Peer, None] = {}

    def open(self, host: EngineEndpoint, engine: Engine | None = None) -> None:
        """Answer for a host that has started; who came before was hung up on.

        What an engine does is told to whoever wants to hear; a treasury has none.
        """
        self.host = host
        self.engine = engine
        if engine is not None:
            engine.subscribe(self._hear)

    def connection(self) -> asyncio.Protocol:
        """Return what speaks with a new asker."""
        return _Peer(self)

    def join(self, peer: "_Peer") -> None:
        """Tell an asker what the engine does from now on."""
        self._subscribers[peer] = None

    def leave(self, peer: "_Peer") -> None:
        """Tell an asker nothing more."""
        self._subscribers.pop(peer, None)

    def _hear(self, committed: CommittedCommand) -> None:
        if self._subscribers:
            raw = frame(CommittedMessage(committed.sequence, committed.effects))
            for peer in list(self._subscribers):
                peer.tell(committed.sequence, raw)


class _Peer(FramedConnection):
    """One connection."""

    def __init__(self, server: EngineServer) -> None:
        super().__init__()
        self._server = server
        self._host: EngineEndpoint | None = None
        self._since = 0
        self._untold: list[bytes] | None = None
        self._is_open = True
        self._tasks: set[asyncio.Task[None]] = set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._server.peers.discard(self)
        self._server.leave(self)
        self._is_open = False

    @override
    def take(self, message: bytes) -> None:
        decoded = decode_client(message)
        if isinstance(decoded, Hello):
            self._greet(decoded)
        elif self._host is None:
            raise ValueError("a question before the greeting")
        elif isinstance(decoded, Ping):
            self.send(_PONG)
        elif len(self._tasks) >= QUESTIONS_MAX:
            self.send(frame(refused(decoded.number, EngineBusy())))
        else:
            self._begin(self._answer(self._host, decoded))

    def tell(self, sequence: int, raw: bytes) -> None:
        """Send what a command did, after the state that it follows."""
        if sequence <= self._since:
            return
        if self._untold is not None:
            self._untold.append(raw)
        else:
            self.send(raw)

    def _greet(self, hello: Hello) -> None:
        if hello.version != VERSION or not hmac.compare_digest(hello.token, self._server.token):
            raise ValueError("a greeting of another installation")
        if self._server.host is None:
            self.disconnect()
            return
        self._host = self._server.host
        self._server.peers.add(self)
        if not hello.subscribes:
            self.send(frame(StateEnd()))
        elif self._server.engine is None:
            raise ValueError("nothing can be heard here")
        else:
            self._begin(self._tell_state(self._server.engine))

    async def _tell_state(self, engine: Engine) -> None:
        """Send the state as it is now, once it is durable, and then what came after it.

        The engine goes on between two messages: with many orders it takes a while to make them. A
        state that does not become durable is not told: who hears comes again.
        """
        self._since = engine.sequence
        effects = restored_effects(engine.state)
        untold = self._untold = []
        self._server.join(self)
        try:
            await engine.settle()
        except ForetellError as refusal:
            log.warning("hung up on who hears: the state is not durable", cause=refusal.message)
            self.disconnect()
            return
        self.send(frame(StateBegin(self._since)))
        while self._is_open and (part := list(islice(effects, EFFECTS_PER_MESSAGE))):
            self.send(frame(CommittedMessage(self._since, part)))
            await asyncio.sleep(0)
        self.send(frame(StateEnd()))
        for raw in untold:
            self.send(raw)
        self._untold = None

    async def _answer(self, host: EngineEndpoint, asked: RequestMessage) -> None:
        try:
            answer = await host.ask(asked.question)
        except ForetellError as refusal:
            self.send(frame(refused(asked.number, refusal)))
        except Exception:
            log.exception("unhandled", question=type(asked.question).__name__)
            self.send(frame(refused(asked.number, Unavailable("the matching engine failed"))))
        else:
            self.send(frame(ReplyMessage(asked.number, answer)))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
