"""Messages between a serving process and the process that answers its dear reads.

An answer comes as its head and then its body in parts, so that a large one never holds up the event loop.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from foretell.engine.protocol.framing import framed

PART_BYTES_MAX: Final = 128 * 1024


class BeginReads(msgspec.Struct, frozen=True, array_like=True, tag="begin"):
    """The database, the base URL of images, and seconds.

    These are the delay of sports markets, the deadline of a read, and those after which the process works where others
    leave time.
    The URL may hold a password, which is why it comes here and not on the command line.
    """

    url: str
    blob_base_url: str
    sports_delay_s: int
    read_s: float
    yields_after_s: float = 0.0


class Read(msgspec.Struct, frozen=True, array_like=True, tag="read"):
    """A request: its number, the API, the path below it, the query, the client, and the answers that it has."""

    number: int
    api: str
    path: str
    query: bytes
    client: str
    known: bytes


class AnswerHead(msgspec.Struct, frozen=True, array_like=True, tag="head"):
    """The begin of the answer to a request."""

    number: int
    status: int
    headers: Sequence[tuple[bytes, bytes]]


class Part(msgspec.Struct, frozen=True, array_like=True, tag="part"):
    """The next part of the body of an answer."""

    number: int
    content: bytes
    is_last: bool


ToReads = BeginReads | Read
FromReads = AnswerHead | Part

_ENCODER: Final = msgspec.msgpack.Encoder()
_TO_READS: Final[msgspec.msgpack.Decoder[ToReads]] = msgspec.msgpack.Decoder(ToReads)
_FROM_READS: Final[msgspec.msgpack.Decoder[FromReads]] = msgspec.msgpack.Decoder(FromReads)


def message(content: ToReads | FromReads) -> bytes:
    """Return a message as it is sent."""
    return framed(_ENCODER.encode(content))


def decode_to_reads(received: bytes) -> ToReads:
    """Return a message of the serving process."""
    return _TO_READS.decode(received)


def decode_from_reads(received: bytes) -> FromReads:
    """Return a message of the process."""
    return _FROM_READS.decode(received)


def parts_of(number: int, body: bytes) -> list[Part]:
    """Return the parts of a body, at least one."""
    starts = range(0, max(1, len(body)), PART_BYTES_MAX)
    return [
        Part(number, body[start : start + PART_BYTES_MAX], start + PART_BYTES_MAX >= len(body))
        for start in starts
    ]
