"""What goes between an engine and those who ask it from other processes.

Who asks says first who it is, and whether it wants to hear what the engine does. Answers come in any
order, each with the number of its question. What the engine does comes in its order, after the state
that it begins with. A ping is answered at once, whatever else is owed: so a slow engine is told from
one that is stopped. Both ends are of one installation: who greets wrongly is hung up on.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from foretell.domain.errors import exchange as matching_errors
from foretell.domain.errors import families as errors
from foretell.domain.errors import order as trading_errors
from foretell.domain.errors import storage as storage_errors
from foretell.domain.errors.families import ForetellError
from foretell.domain.exchange.effects import Effect
from foretell.engine.protocol.framing import framed
from foretell.engine.protocol.requests import EngineReply, EngineRequest

VERSION: Final = 2


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message: proof of belonging, and whether effects are wanted."""

    version: int
    token: bytes
    subscribes: bool


class RequestMessage(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """A question, by the asker's own number."""

    number: int
    question: EngineRequest


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping"):
    """Whether the engine's event loop still turns; `Pong` follows at once."""


class Pong(msgspec.Struct, frozen=True, array_like=True, tag="pong"):
    """The answer to a ping, begun or not."""


class ReplyMessage(msgspec.Struct, frozen=True, array_like=True, tag="answered"):
    """The answer to a question."""

    number: int
    answer: EngineReply


class RefusalMessage(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """The refusal of a question."""

    number: int
    kind: str
    message: str
    details: dict[str, Any]


class StateBegin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """Forget what was heard of this engine: the state at a sequence follows, and `StateEnd` ends it."""

    sequence: int


class StateEnd(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
    """Questions are taken; the state, if it was wanted, is whole, and what is told now came after it."""


class CommittedMessage(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """What one command did, or a part of the state that the rest follows."""

    sequence: int
    effects: Sequence[Effect]


FromClient = Hello | RequestMessage | Ping
FromEngine = ReplyMessage | RefusalMessage | StateBegin | StateEnd | CommittedMessage | Pong

_ENCODER: Final = msgspec.msgpack.Encoder()
_FROM_ASKER: Final[msgspec.msgpack.Decoder[FromClient]] = msgspec.msgpack.Decoder(FromClient)
_FROM_ENGINE: Final[msgspec.msgpack.Decoder[FromEngine]] = msgspec.msgpack.Decoder(FromEngine)


def frame(message: FromClient | FromEngine) -> bytes:
    """Return the bytes of a message, its length before it."""
    return framed(_ENCODER.encode(message))


def decode_client(raw: bytes) -> FromClient:
    """Return a message of one who asks; raises msgspec.MsgspecError."""
    return _FROM_ASKER.decode(raw)


def decode_engine(raw: bytes) -> FromEngine:
    """Return a message of an engine; raises msgspec.MsgspecError."""
    return _FROM_ENGINE.decode(raw)


def refused(number: int, refusal: ForetellError) -> RefusalMessage:
    """Return a refusal as it is sent."""
    return RefusalMessage(number, type(refusal).__name__, refusal.message, dict(refusal.details))


def refusal_of(sent: RefusalMessage) -> ForetellError:
    """Return the refusal that was sent, of its own class."""
    kind = _KIND_BY_NAME.get(sent.kind, errors.Unavailable)
    refusal = kind.__new__(kind)
    ForetellError.__init__(refusal, sent.message, **sent.details)
    return refusal


def _kinds(kind: type[ForetellError]) -> Iterator[type[ForetellError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


_ROOMS: Final = (errors, matching_errors, storage_errors, trading_errors)
_KIND_BY_NAME: Final = {
    kind.__name__: kind
    for kind in _kinds(ForetellError)
    if kind.__module__ in {room.__name__ for room in _ROOMS}
}
