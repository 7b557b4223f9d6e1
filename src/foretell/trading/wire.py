"""What goes between an engine and those who ask it from other processes, and how it is framed.

    bytes   field
    4       length of the message
    ...     message: MessagePack, an array that begins with its kind

Who asks says first who it is, and whether it wants to hear what the engine does. Answers come in any
order, each with the number of its question. What the engine does comes in its order, after the state
that it begins with. Both ends are of one installation: what greets wrongly is hung up on.
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from foretell.domain import errors, matching_errors, storage_errors, trading_errors
from foretell.domain.effects import Effect
from foretell.domain.errors import ForetellError
from foretell.trading.questions import Answer, Question

LENGTH_BYTES: Final = 4
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
VERSION: Final = 1


class Hello(msgspec.Struct, frozen=True, array_like=True, tag="hello"):
    """The first message: proof of belonging, and whether effects are wanted."""

    version: int
    token: bytes
    hears: bool


class Ask(msgspec.Struct, frozen=True, array_like=True, tag="ask"):
    """A question, by the asker's own number."""

    number: int
    question: Question


class Answered(msgspec.Struct, frozen=True, array_like=True, tag="answered"):
    """The answer to a question."""

    number: int
    answer: Answer


class Refused(msgspec.Struct, frozen=True, array_like=True, tag="refused"):
    """The refusal of a question."""

    number: int
    kind: str
    message: str
    details: dict[str, Any]


class Begin(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """Forget what was heard of this engine: the state at a sequence follows, then what comes after."""

    sequence: int


class Told(msgspec.Struct, frozen=True, array_like=True, tag="told"):
    """What one command did, or a part of the state that the rest follows."""

    sequence: int
    effects: Sequence[Effect]


FromAsker = Hello | Ask
FromEngine = Answered | Refused | Begin | Told

_ENCODER: Final = msgspec.msgpack.Encoder()
_FROM_ASKER: Final[msgspec.msgpack.Decoder[FromAsker]] = msgspec.msgpack.Decoder(FromAsker)
_FROM_ENGINE: Final[msgspec.msgpack.Decoder[FromEngine]] = msgspec.msgpack.Decoder(FromEngine)


def frame(message: FromAsker | FromEngine) -> bytes:
    """Return the bytes of a message."""
    raw = _ENCODER.encode(message)
    return len(raw).to_bytes(LENGTH_BYTES, "little") + raw


def decode_asker(raw: bytes | memoryview) -> FromAsker:
    """Return a message of one who asks; raises msgspec.MsgspecError."""
    return _FROM_ASKER.decode(raw)


def decode_engine(raw: bytes | memoryview) -> FromEngine:
    """Return a message of an engine; raises msgspec.MsgspecError."""
    return _FROM_ENGINE.decode(raw)


class FrameReader:
    """Cuts what arrives into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the messages that are whole now; raises ValueError on one that is too large."""
        self._buffer += data
        start = 0
        while len(self._buffer) - start >= LENGTH_BYTES:
            length = int.from_bytes(self._buffer[start : start + LENGTH_BYTES], "little")
            if length > MESSAGE_BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            end = start + LENGTH_BYTES + length
            if len(self._buffer) < end:
                break
            yield bytes(self._buffer[start + LENGTH_BYTES : end])
            start = end
        del self._buffer[:start]


def refused(number: int, refusal: ForetellError) -> Refused:
    """Return a refusal as it is sent."""
    return Refused(number, type(refusal).__name__, refusal.message, dict(refusal.details))


def refusal_of(sent: Refused) -> ForetellError:
    """Return the refusal that was sent, of its own class."""
    kind = _KIND_BY_NAME.get(sent.kind, errors.Unavailable)
    refusal = kind.__new__(kind)
    ForetellError.__init__(refusal, sent.message, **sent.details)
    return refusal


def _kinds(kind: type[ForetellError]) -> Iterator[type[ForetellError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _kinds(child)


_KIND_BY_NAME: Final = {
    kind.__name__: kind
    for kind in _kinds(ForetellError)
    if kind.__module__
    in {module.__name__ for module in (errors, matching_errors, storage_errors, trading_errors)}
}
