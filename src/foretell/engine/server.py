"""The socket of an engine: other processes send it requests, and subscribe to its commands.

A subscriber gets the state first, once all of it is durable, and then every command in order. One
that does not read is disconnected: it connects again, and gets the state again.
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
from foretell.domain.exchange.decision import Done
from foretell.domain.exchange.state_effects import restored_effects
from foretell.engine.protocol.decided import DecidedCommand, decided_of
from foretell.engine.protocol.endpoint import EngineEndpoint
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
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import Engine

REQUESTS_MAX: Final = 20_000
"""How many requests of one client may wait at once."""
EFFECTS_PER_MESSAGE: Final = 1_000
_PONG: Final = frame(Pong())

log = structlog.get_logger(__name__)


class EngineServer:
    """The clients of one engine from outside its process."""

    def __init__(self, token: bytes, *, effects_per_message: int = EFFECTS_PER_MESSAGE) -> None:
        self.token = token
        self.effects_per_message = effects_per_message
        self.endpoint: EngineEndpoint | None = None
        self.engine: Engine | None = None
        self.peers: set[_Peer] = set()
        self.subscribers: dict[_Peer, None] = {}

    def open(self, endpoint: EngineEndpoint, engine: Engine | None = None) -> None:
        """Take requests for a host that has started; earlier clients were disconnected.

        Effects of the engine are published to subscribers; a treasury has none.
        """
        self.endpoint = endpoint
        self.engine = engine
        if engine is not None:
            engine.subscribe(self._publish)

    def connection(self) -> asyncio.Protocol:
        """Return the protocol of a new connection."""
        return _Peer(self)

    def subscribe(self, peer: "_Peer") -> None:
        """Publish commands to a client from now on."""
        self.subscribers[peer] = None

    def unsubscribe(self, peer: "_Peer") -> None:
        """Publish nothing more to a client."""
        self.subscribers.pop(peer, None)

    def _publish(self, committed: CommittedCommand) -> None:
        if self.subscribers:
            raw = frame(CommittedMessage(decided_of(committed)))
            for peer in list(self.subscribers):
                peer.publish(committed.sequence, raw)


class _Peer(FramedConnection):
    """One connection."""

    def __init__(self, server: EngineServer) -> None:
        super().__init__()
        self._server = server
        self._endpoint: EngineEndpoint | None = None
        self._state_sequence = 0
        self._behind_state: list[bytes] | None = None
        self._is_open = True
        self._tasks: set[asyncio.Task[None]] = set()

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._server.peers.discard(self)
        self._server.unsubscribe(self)
        self._is_open = False

    @override
    def take(self, message: bytes) -> None:
        decoded = decode_client(message)
        if isinstance(decoded, Hello):
            self._greet(decoded)
        elif self._endpoint is None:
            raise ValueError("a request before the greeting")
        elif isinstance(decoded, Ping):
            self.send(_PONG)
        elif len(self._tasks) >= REQUESTS_MAX:
            self.send(frame(refused(decoded.number, EngineBusy())))
        else:
            self._start(self._reply(self._endpoint, decoded))

    def publish(self, sequence: int, raw: bytes) -> None:
        """Send a command, behind the state that it follows."""
        if sequence <= self._state_sequence:
            return
        if self._behind_state is not None:
            self._behind_state.append(raw)
        else:
            self.send(raw)

    def _greet(self, hello: Hello) -> None:
        if hello.version != VERSION or not hmac.compare_digest(hello.token, self._server.token):
            raise ValueError("a greeting of another installation")
        if self._server.endpoint is None:
            self.disconnect()
            return
        self._endpoint = self._server.endpoint
        self._server.peers.add(self)
        if not hello.subscribes:
            self.send(frame(StateEnd()))
        elif self._server.engine is None:
            raise ValueError("a treasury has no commands to subscribe to")
        else:
            self._start(self._send_state(self._server.engine))

    async def _send_state(self, engine: Engine) -> None:
        """Send the state as it is now, once it is durable, and then what came after it.

        With many orders the messages take a while to build, and the engine continues between two of
        them. `restored_effects` has copied all that may change, so they stay the state of one
        sequence; later commands wait behind it. If the state does not become durable, the client
        connects again.
        """
        self._state_sequence = engine.sequence
        effects = restored_effects(engine.state)
        behind_state = self._behind_state = []
        self._server.subscribe(self)
        try:
            await engine.sync()
        except ForetellError as refusal:
            log.warning("subscriber disconnected", cause=refusal.message)
            self.disconnect()
            return
        self.send(frame(StateBegin(self._state_sequence)))
        size = self._server.effects_per_message
        while self._is_open and (part := list(islice(effects, size))):
            self.send(
                frame(CommittedMessage(DecidedCommand(self._state_sequence, b"", Done(part))))
            )
            await asyncio.sleep(0)
        self.send(frame(StateEnd()))
        for raw in behind_state:
            self.send(raw)
        self._behind_state = None

    async def _reply(self, endpoint: EngineEndpoint, received: RequestMessage) -> None:
        try:
            reply = await endpoint.handle(received.request)
        except ForetellError as refusal:
            self.send(frame(refused(received.number, refusal)))
        except Exception:
            log.exception("request failed", request=type(received.request).__name__)
            failure = Unavailable("the matching engine failed")
            self.send(frame(refused(received.number, failure)))
        else:
            self.send(frame(ReplyMessage(received.number, reply)))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
