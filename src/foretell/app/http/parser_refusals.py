"""The refusals of requests that the parser of HTTP does not take."""

import re
from collections.abc import Sequence
from http import HTTPMethod
from typing import Final

import httptools
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHeader
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS, Request
from websockets.server import ServerProtocol

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import (
    HeadersTooLarge,
    MalformedRequest,
    UnknownMethod,
    UnsupportedVersion,
    UrlTooLong,
)

_METHOD: Final = re.compile(rb"[A-Za-z][A-Za-z-]{0,39}(?= )")
_PATH: Final = re.compile(rb"[A-Za-z][A-Za-z-]{0,39} (/[^/?\s]*)")
_KNOWN_METHODS: Final = frozenset(HTTPMethod)
_OTHER_VERSION: Final = "Invalid HTTP version"
"""The parser's words for a version that does not exist."""
_VERSIONS: Final = frozenset({"1.0", "1.1"})
_LINE_MARKS: Final = len(b"GET HTTP/1.1 : \r\n")
"""At least what a line has besides a target, or a name and a value."""
_HANDSHAKES: Final = ServerProtocol()
"""Judges handshakes; none is carried out by it."""
PATH_FACTOR: Final = 5
"""The memory of a path over its length: its bytes twice, and its characters, which may take four bytes each."""
HEADER_BYTES: Final = 170
"""The memory of a header beside its bytes: a pair, and two objects."""


class HeadSize:
    """The size of the head that arrives: what is complete counts as parsed, what is not as received."""

    __slots__ = (
        "_bytes_max",
        "_headers",
        "_headers_max",
        "_parsed_bytes",
        "_received_bytes",
        "kept_bytes",
    )

    def __init__(self, bytes_max: int, headers_max: int) -> None:
        self._bytes_max = bytes_max
        self._headers_max = headers_max
        self.begin()

    def begin(self) -> None:
        """Begin the next head."""
        self._received_bytes = self._parsed_bytes = self._headers = 0
        self.kept_bytes = 0
        """The memory that the parsed head takes, roughly."""

    def may_receive(self, size: int) -> bool:
        """Count bytes that were received, and return whether the head is within its bounds."""
        self._received_bytes += size
        return self._received_bytes <= self._bytes_max

    def may_have(self, *parts: bytes) -> bool:
        """Count a target, or the name and value of a header, and return whether the head is within its bounds."""
        size, is_header = sum(map(len, parts)), len(parts) > 1
        self._parsed_bytes += size
        self._headers += is_header
        self.kept_bytes += size + HEADER_BYTES if is_header else PATH_FACTOR * size
        return self._parsed_bytes <= self._bytes_max and self._headers <= self._headers_max

    def refusal(self, url: bytes) -> ForetellError:
        """Return the refusal of the larger part of the head."""
        if 2 * len(url) > max(self._received_bytes, self._parsed_bytes):
            return UrlTooLong(self._bytes_max)
        return HeadersTooLarge(self._bytes_max, self._headers_max)


class RequestRefused(Exception):
    """Ends the parsing of a request from within one of the parser's callbacks."""

    def __init__(self, refusal: ForetellError) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def check_framing(
    parser: httptools.HttpRequestParser, headers: Sequence[tuple[bytes, bytes]]
) -> None:
    """Refuse a request that a proxy may take for another one: by its version, its host or the end of its body."""
    version = parser.get_http_version()
    if version not in _VERSIONS:
        raise RequestRefused(UnsupportedVersion())
    if parser.get_method() == b"CONNECT":
        raise RequestRefused(MalformedRequest("this is no proxy"))
    hosts = sum(name == b"host" for name, _ in headers)
    if hosts > 1 or (not hosts and version != "1.0"):
        raise RequestRefused(MalformedRequest("it must have one Host"))
    encodings = [value.strip().lower() for name, value in headers if name == b"transfer-encoding"]
    if encodings not in ([], [b"chunked"]):
        raise RequestRefused(MalformedRequest("its Transfer-Encoding must be chunked"))


def check_handshake(
    parser: httptools.HttpRequestParser, target: bytes, headers: Sequence[tuple[bytes, bytes]]
) -> None:
    """Refuse a handshake that the protocol of WebSockets would refuse in its own form."""
    if parser.get_method() != b"GET":
        raise RequestRefused(MalformedRequest("a WebSocket is opened by GET"))
    if parser.get_http_version() == "1.0":
        raise RequestRefused(MalformedRequest("a WebSocket needs HTTP/1.1"))
    if any(_announces_body(name, value) for name, value in headers):
        raise RequestRefused(MalformedRequest("a request for a WebSocket has no body"))
    longest = max(len(target), *(len(name) + len(value) for name, value in headers))
    if longest + _LINE_MARKS > MAX_LINE_LENGTH or len(headers) > MAX_NUM_HEADERS:
        raise RequestRefused(HeadersTooLarge(MAX_LINE_LENGTH, MAX_NUM_HEADERS))
    decoded = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    try:
        _HANDSHAKES.process_request(Request(target.decode("latin-1"), decoded))
    except InvalidHeader as error:
        words = f"its header {error.name} is missing or malformed"
        raise RequestRefused(MalformedRequest(words)) from None


def _announces_body(name: bytes, value: bytes) -> bool:
    return name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0")


def path_in(data: bytes) -> bytes:
    """Return the first part of the path of a request that data begins with, empty if it cannot be read.

    The parser gives no path of a target that it refuses.
    """
    found = _PATH.match(data)
    return b"" if found is None else found[1]


def refusal_of(error: httptools.HttpParserError, data: bytes) -> ForetellError:
    """Return the refusal of a request that the parser refuses; `data` begins with it, or is empty."""
    if isinstance(error.__context__, RequestRefused):
        return error.__context__.refusal
    method = _METHOD.match(data)
    if isinstance(error, httptools.HttpParserInvalidMethodError) and method is not None:
        name = method[0].decode()
        if name not in _KNOWN_METHODS:
            return UnknownMethod(name)
    if str(error) == _OTHER_VERSION:
        return UnsupportedVersion()
    if isinstance(error, httptools.HttpParserCallbackError):
        return MalformedRequest("its path is malformed")
    return MalformedRequest(str(error))
