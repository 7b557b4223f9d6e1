"""Messages between an engine and its clients in other processes.

A client greets first: it proves that it belongs to the installation, and states whether it
subscribes to the engine's commands. Replies come in any order, each with the number of its request.
Commands come in the engine's order, after the state that they follow. A ping is answered at once,
whatever else is owed, which distinguishes a slow engine from one that is stopped.
"""

from typing import Final

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.engine.protocol.decided import DecidedCommand
from foretell.engine.protocol.framing import framed
from foretell.engine.protocol.refusal_codec import EncodedRefusal, encode_refusal
from foretell.engine.protocol.requests import EngineReply, EngineRequest

VERSION: Final = 4


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message: the installation's token, and whether commands are wanted."""

    version: int
    token: bytes
    subscribes: bool


class RequestMessage(msgspec.Struct, frozen=True, array_like=True, tag="request"):
    """A request, under the client's own number."""

    number: int
    request: EngineRequest


class Ping(msgspec.Struct, frozen=True, array_like=True, tag="ping"):
    """A check that the engine's event loop runs; `Pong` follows at once."""


class Pong(msgspec.Struct, frozen=True, array_like=True, tag="pong"):
    """The answer to a ping, whether requests are taken yet or not."""


class ReplyMessage(msgspec.Struct, frozen=True, array_like=True, tag="reply"):
    """The reply to a request."""

    number: int
    reply: EngineReply


class RefusalMessage(msgspec.Struct, frozen=True, array_like=True, tag="refusal"):
    """The refusal of a request."""

    number: int
    refusal: EncodedRefusal


class StateBegin(msgspec.Struct, frozen=True, array_like=True, tag="state_begin"):
    """Forget this engine's state: the state at a sequence follows, up to `StateEnd`."""

    sequence: int


class StateEnd(msgspec.Struct, frozen=True, array_like=True, tag="state_end"):
    """Requests are taken; a subscriber has the whole state, and later commands follow it."""


class CommittedMessage(msgspec.Struct, frozen=True, array_like=True, tag="committed"):
    """One command and what was decided, or a part of the state that it follows."""

    command: DecidedCommand


FromClient = Hello | RequestMessage | Ping
FromEngine = ReplyMessage | RefusalMessage | StateBegin | StateEnd | CommittedMessage | Pong

_ENCODER: Final = msgspec.msgpack.Encoder()
_FROM_CLIENT: Final[msgspec.msgpack.Decoder[FromClient]] = msgspec.msgpack.Decoder(FromClient)
_FROM_ENGINE: Final[msgspec.msgpack.Decoder[FromEngine]] = msgspec.msgpack.Decoder(FromEngine)


def frame(message: FromClient | FromEngine) -> bytes:
    """Return the bytes of a message, its length before it."""
    return framed(_ENCODER.encode(message))


def decode_client(raw: bytes) -> FromClient:
    """Return a message from a client; raises msgspec.MsgspecError."""
    return _FROM_CLIENT.decode(raw)


def decode_engine(raw: bytes) -> FromEngine:
    """Return a message from an engine; raises msgspec.MsgspecError."""
    return _FROM_ENGINE.decode(raw)


def refused(number: int, refusal: ForetellError) -> RefusalMessage:
    """Return the message that refuses a request."""
    return RefusalMessage(number, encode_refusal(refusal))
