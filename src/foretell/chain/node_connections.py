"""HTTP/1.1 to one node: POST requests over connections that stay open.

An answer of known length is received into the memory that is then decoded. A client of general use passes
it on in small pieces and copies each of them several times, which takes about as long as decoding JSON does.
"""

import asyncio
import base64
import functools
import ssl
import zlib
from http import HTTPStatus
from typing import Final, NamedTuple, cast

import httptools
import httpx
from typing_extensions import override

from foretell.domain.errors.chain import ChainUnavailable

CONNECTIONS_MAX: Final = 16
IDLE_S_MAX: Final = 5.0
"""A connection that was idle for longer is not used again: the node may be about to close it."""
PIECE_BYTES: Final = 64 * 1024
DEADLINES_PER_ANSWER_MAX: Final = 30
"""A node that goes on sending gets so many times the deadline for its whole answer."""

_PORTS: Final = {"http": 80, "https": 443}
_UNREADABLE: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)
"""The errors of an answer that is not HTTP; an error of reading it is the context of the first."""
_ANY_COMPRESSION: Final = zlib.MAX_WBITS | 32
"""The format, gzip or zlib, follows from the first bytes."""


class HttpAnswer(NamedTuple):
    """The status and the body of an answer."""

    status: int
    body: bytes | bytearray


class NodeConnections:
    """Connections to the address of one node, each used by one request at a time."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        self._url = httpx.URL(url)
        self._timeout_s = timeout_s
        self._head = _head_of(self._url)
        self._places = asyncio.Semaphore(CONNECTIONS_MAX)
        self._idle: list[_Connection] = []
        self._is_closed = False

    async def post(self, method: str, body: bytes, bytes_max: int) -> HttpAnswer:
        """Send a body once and return the answer to it; `method` is its name in errors.

        A longer answer than `bytes_max`, before or after its compression is undone, is not read to its end.

        Raises ChainUnavailable: the node may have received the request.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._places.acquire()
            try:
                return await self._exchange(method, body, bytes_max)
            finally:
                self._places.release()
        except (OSError, *_UNREADABLE) as error:
            raise ChainUnavailable(method, type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections; one that a request uses is closed after it."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # the loop closes their sockets

    async def _exchange(self, method: str, body: bytes, bytes_max: int) -> HttpAnswer:
        connection = self._taken() or await self._opened()
        head = b"%scontent-length: %d\r\n\r\n" % (self._head, len(body))
        try:
            answer = await connection.send(
                head + body, _Reading(method, bytes_max, self._timeout_s)
            )
        except BaseException:
            connection.close()
            raise
        if self._is_closed:
            connection.close()
        elif connection.is_open:
            self._idle.append(connection)
        return answer

    def _taken(self) -> "_Connection | None":
        now_s = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open and now_s - connection.used_at_s <= IDLE_S_MAX:
                return connection
            connection.close()
        return None

    async def _opened(self) -> "_Connection":
        url = self._url
        if url.scheme not in _PORTS:
            raise ConnectionError("neither http nor https")
        tls = _tls() if url.scheme == "https" else None
        port = url.port or _PORTS[url.scheme]
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._timeout_s):
            host = url.raw_host.decode()
            _, connection = await loop.create_connection(_Connection, host, port, ssl=tls)
        return connection


class _Reading(NamedTuple):
    """The request that an answer belongs to, and its limits."""

    method: str
    bytes_max: int
    timeout_s: float


class _Connection(asyncio.BufferedProtocol):
    """One connection: it has at most one request whose answer has not ended."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        # A view, because asyncio's TLS writes into a part of the buffer, which of a bytearray would be a copy.
        self._piece = memoryview(bytearray(PIECE_BYTES))
        self._answer: _Answer | None = None
        self._ended: asyncio.Future[None] | None = None
        self._deadline: asyncio.Timeout | None = None
        self._last_s = 0.0
        self._timeout_s = 0.0
        self.used_at_s = 0.0
        self.is_open = False

    async def send(self, request: bytes, reading: _Reading) -> HttpAnswer:
        """Send a request and return its answer."""
        assert self._transport is not None
        assert self._ended is None
        self._answer = answer = _Answer(reading)
        self._ended = self._loop.create_future()
        self._timeout_s = reading.timeout_s
        self._last_s = self._loop.time() + DEADLINES_PER_ANSWER_MAX * reading.timeout_s
        self._transport.write(request)
        try:
            async with asyncio.timeout(reading.timeout_s) as self._deadline:
                await self._ended
        finally:
            answer.close()
            self._answer = self._ended = self._deadline = None
        self.used_at_s = self._loop.time()
        if not answer.keeps_connection:
            self.close()
        return HttpAnswer(answer.status, answer.body)

    def close(self) -> None:
        """Close the connection; what has not been sent is dropped."""
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin with a new connection."""
        self._transport, self.is_open = cast("asyncio.Transport", transport), True

    @override
    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the memory for the next bytes: the rest of the body, if its length is known."""
        rest = None if self._answer is None else self._answer.rest()
        return self._piece if rest is None else rest

    @override
    def buffer_updated(self, nbytes: int) -> None:
        """Read bytes that have arrived."""
        answer, ended = self._answer, self._ended
        if answer is None or ended is None or ended.done():
            self.close()  # an answer to no request
            return
        try:
            answer.add(self._piece, nbytes)
        except _UNREADABLE as error:
            cause = error.__context__
            ended.set_exception(cause if isinstance(cause, ChainUnavailable) else error)
            return
        if answer.has_ended:
            ended.set_result(None)
        elif self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(min(self._last_s, self._loop.time() + self._timeout_s))

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        """End the answer: well, if its end is that of the connection."""
        self.is_open = False
        answer, ended = self._answer, self._ended
        if answer is None or ended is None or ended.done():
            return
        if exc is None and answer.ends_with_connection:
            ended.set_result(None)
        else:
            ended.set_exception(exc or ConnectionResetError())


class _Answer:
    """An answer while it arrives."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        self._inflater: zlib._Decompress | None = None
        self._length: int | None = None
        self._is_chunked = False
        self._view: memoryview | None = None
        self._filled = 0
        self.status = 0
        self.body = bytearray()
        self.keeps_connection = False
        self.has_ended = False

    @property
    def ends_with_connection(self) -> bool:
        """Whether the body is everything until the connection ends."""
        return self.status > 0 and self._length is None and not self._is_chunked

    def rest(self) -> memoryview | None:
        """Return the memory of the body that has not arrived; None without a known length, or at its end."""
        if self._view is None or self.has_ended:
            return None
        return self._view[self._filled :]

    def add(self, piece: memoryview, size: int) -> None:
        """Read so many bytes: from the piece, or already in the body."""
        if self._view is None:
            assert self._parser is not None
            self._parser.feed_data(bytes(piece[:size]))
        else:
            self._filled += size
            self.has_ended = self._filled == len(self._view)

    def close(self) -> None:
        """End the reading: the parser refers to this answer, and would keep its body until a collection of garbage."""
        self._parser = None

    def on_message_begin(self) -> None:
        """Refuse an answer behind the one that was asked for."""
        if self.has_ended:
            raise ChainUnavailable(self._reading.method, "more than one answer")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read a header."""
        match name.lower(), value.strip().lower():
            case b"content-length", digits:
                self._length = int(digits)
            case b"transfer-encoding", _:
                self._is_chunked = True
            case b"content-encoding", b"gzip" | b"deflate":
                self._inflater = zlib.decompressobj(_ANY_COMPRESSION)
            case _:
                """Headers that say nothing of the body."""

    def on_headers_complete(self) -> None:
        """Prepare for the body."""
        assert self._parser is not None
        self.status = self._parser.get_status_code()
        self.keeps_connection = self._parser.should_keep_alive()
        if self._length is not None and not self._is_chunked:
            self._check_size(self._length)
            if self._inflater is None and self._length and self.status >= HTTPStatus.OK:
                self.body = bytearray(self._length)
                self._view = memoryview(self.body)

    def on_body(self, part: bytes) -> None:
        """Read a part of the body."""
        if self._view is not None:
            self._view[self._filled : self._filled + len(part)] = part
            self._filled += len(part)
            return
        if self._inflater is not None:
            left = self._reading.bytes_max - len(self.body)
            part = self._inflater.decompress(part, left + 1)
        self.body += part
        self._check_size(len(self.body))

    def on_message_complete(self) -> None:
        """End the answer, unless another one follows."""
        if self.status >= HTTPStatus.OK:
            self.has_ended = True
        else:
            self._length, self._is_chunked, self.status = None, False, 0

    def _check_size(self, size: int) -> None:
        if size > self._reading.bytes_max:
            raise ChainUnavailable(
                self._reading.method, f"more than {self._reading.bytes_max} bytes"
            )


def _head_of(url: httpx.URL) -> bytes:
    """Return the head of every request, up to the length of its body.

    Compression is asked for over TLS, from nodes far away: near ones answer faster without.
    """
    lines = [
        b"POST %s HTTP/1.1" % url.raw_path,
        b"host: %s" % url.netloc,
        b"content-type: application/json",
        b"accept: application/json",
        b"user-agent: foretell",
    ]
    if url.scheme == "https":
        lines.append(b"accept-encoding: gzip, deflate")
    if url.userinfo:
        account = base64.b64encode(f"{url.username}:{url.password}".encode())
        lines.append(b"authorization: Basic %s" % account)
    return b"".join(line + b"\r\n" for line in lines)


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the certificates to trust; reading them takes 30 ms, so they are read once."""
    return httpx.create_ssl_context(trust_env=False)
