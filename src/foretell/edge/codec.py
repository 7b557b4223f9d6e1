"""Request bodies of bounded size, decoding into typed values, and JSON answers."""

from collections.abc import AsyncIterator
from types import MappingProxyType
from typing import Any, Final, TypeVar

import msgspec
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import InternalServerException

from foretell.domain.errors.families import InvalidInput
from foretell.domain.errors.http import BodiesBusy, BodyCutOff, BodyTooLarge, MalformedBody
from foretell.domain.values.strict_json import check_depth
from foretell.runtime.client_bytes import ClientBytes

BODY_BYTES_MAX: Final = 64 * 1024
BODY_BYTES_BY_ALL_MAX: Final = 128 * 1024 * 1024
"""Of bodies that have begun and not ended, over all connections of a process."""
BODY_BYTES_BY_CLIENT_MAX: Final = 16 * 1024 * 1024
BODY_BYTES_RESERVED: Final = 16 * 1024 * 1024
"""Of those by all, for requests that name a known key with its passphrase: strangers cannot have them."""
AT_ONCE_BYTES: Final = 4 * 1024
"""A body that is larger waits for another turn of its client, since it may take a while to parse."""
TURN: Final = "turn"
"""The key of a request's turn in its scope: its place under the rate limits, and its client."""
CLIENT: Final = "client_address"
"""The key of the address that a stream counts for in its scope, absent where no limits apply."""
PLACE: Final = "place"
"""The key of the place of a request's connection in its scope."""
SINK: Final = "frame_sink"
"""The key of what takes the frames of a WebSocket in bytes in its scope, absent where the server has none."""
LENGTH_DIGITS_MAX: Final = 18
SENT_METHOD: Final = "sent_method"
"""The key of the method that was sent in the scope of a request that is carried out by another one."""

NOT_STORED: Final = MappingProxyType({"cache-control": "no-store"})

_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")

Value = TypeVar("Value")
AnyRequest = Request[Any, Any, State]
JsonResponse = Response[bytes]
"""A response whose body is JSON already."""


class WireObject(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An object of an answer: snake case in Python, camel case on the wire."""


class SecretObject(msgspec.Struct, frozen=True):
    """An answer with a secret, which no cache between here and the client may keep."""


def sent_method(request: AnyRequest) -> str:
    """Return the method that the client sent and signed; the framework sees GET for HEAD."""
    return str(request.scope.get(SENT_METHOD, request.method))


def sent_path(request: AnyRequest) -> str:
    """Return the path as the client sent and signed it, below the prefix of the API.

    The framework's own `path` lacks a slash at the end and is decoded.
    """
    return (request.scope["raw_path"] or b"/").decode("latin-1")


class BodyBudget:
    """The bytes of all bodies that are arriving, bounded, those of one client, and those of strangers."""

    def __init__(
        self,
        bytes_max: int = BODY_BYTES_BY_ALL_MAX,
        client_bytes_max: int = BODY_BYTES_BY_CLIENT_MAX,
        reserved_bytes: int = BODY_BYTES_RESERVED,
    ) -> None:
        self._bytes = ClientBytes(bytes_max, client_bytes_max)
        self._strangers_bytes_max = bytes_max - reserved_bytes
        self._bytes_of_strangers = 0

    @property
    def bytes_held(self) -> int:
        """The bytes of all bodies."""
        return self._bytes.held

    def take(self, client: str, size: int, *, is_known: bool = False) -> None:
        """Count bytes that arrived, or refuse: other bodies have all the memory that these may have."""
        bound = self._bytes.exceeded_by(client, size)
        if bound is not None:
            raise BodiesBusy(bound)
        if not is_known and self._bytes_of_strangers + size > self._strangers_bytes_max:
            raise BodiesBusy(self._strangers_bytes_max)
        self._count(client, size, is_known=is_known)

    def give_back(self, client: str, size: int, *, is_known: bool = False) -> None:
        """Stop counting the bytes of a body, which is complete or refused."""
        self._count(client, -size, is_known=is_known)

    def _count(self, client: str, size: int, *, is_known: bool) -> None:
        self._bytes.add(client, size)
        if not is_known:
            self._bytes_of_strangers += size


BODY_BUDGET: Final = BodyBudget()


class HeldBytes:
    """The bytes that one connection or one request holds of the budget, for one client at a time.

    The client stays the same until all bytes are given back, although the trusted proxies, by which it
    is found, may change before that. So does whether it has a known key.
    """

    __slots__ = ("_client", "_is_known", "size")

    def __init__(self) -> None:
        self._client = ""
        self._is_known = False
        self.size = 0

    def begin(self, client: str, *, is_known: bool = False) -> None:
        """Count what comes for this client; nothing is held."""
        assert self.size == 0, "what is held counts for the client before"
        self._client = client
        self._is_known = is_known

    def add(self, size: int) -> None:
        """Count more bytes, or refuse them."""
        BODY_BUDGET.take(self._client, size, is_known=self._is_known)
        self.size += size

    def end(self) -> None:
        """Give all bytes back."""
        if self.size:
            BODY_BUDGET.give_back(self._client, self.size, is_known=self._is_known)
            self.size = 0


async def body_chunks(request: AnyRequest) -> AsyncIterator[bytes]:
    """Yield the body as it arrives; refuse one that its client cuts off."""
    try:
        async for chunk in request.stream():
            yield chunk
    except InternalServerException as error:  # the framework's for a client that goes away
        raise BodyCutOff from error


async def read_body(
    request: AnyRequest, bytes_max: int = BODY_BYTES_MAX, *, is_known: bool = False
) -> bytes:
    """Return the bytes of the body as they were sent, or refuse one that is larger than the limit.

    `is_known` says that the headers name a known key with its passphrase.
    """
    declared = request.headers.get("content-length", "0")
    is_number = declared.isascii() and declared.isdigit()
    if is_number and (len(declared) > LENGTH_DIGITS_MAX or int(declared) > bytes_max):
        raise BodyTooLarge(bytes_max)
    turn: Any = request.scope.get(TURN)
    chunks, held = [], HeldBytes()
    held.begin("" if turn is None else turn.address, is_known=is_known)
    try:
        async for chunk in body_chunks(request):
            if held.size + len(chunk) > bytes_max:
                raise BodyTooLarge(bytes_max)
            held.add(len(chunk))
            chunks.append(chunk)
        place: Any = request.scope.get(PLACE)
        if held.size > AT_ONCE_BYTES and place is not None:
            await place.have_turn_again("" if turn is None else turn.address)
    finally:
        held.end()
    return b"".join(chunks)


def decode(
    raw: bytes | str, kind: type[Value], refusal: type[InvalidInput] = MalformedBody
) -> Value:
    """Return the value of this type, or refuse and name the place that is wrong.

    The depth is limited here: a library may have raised the interpreter's recursion limit so far that
    deep nesting would end the process.
    """
    try:
        check_depth(raw.encode() if isinstance(raw, str) else raw)
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.MsgspecError, MalformedBody, UnicodeError, RecursionError) as error:
        raise refusal(str(error)) from error


def encode_json(value: object) -> bytes:
    """Return a value as JSON, decimals as exact numbers."""
    return _ENCODER.encode(value)


def json_response(value: object, status: int = 200) -> JsonResponse:
    """Return the value as a JSON answer, decimals as exact numbers; a secret is to be kept nowhere."""
    headers = NOT_STORED if isinstance(value, SecretObject) else None
    return Response(
        _ENCODER.encode(value), status_code=status, media_type="application/json", headers=headers
    )
