"""HTTP to one node: POST requests over connections that stay open, by aiohttp."""

import asyncio
import functools
import ssl
import weakref
from contextvars import ContextVar
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import aiohttp
import httpx
from typing_extensions import override

from foretell.chain.connections.body_receiver import PIECE_BYTES, receive_rest
from foretell.domain.errors.chain import AnswerTooLarge, ChainUnavailable

CONNECTIONS_MAX: Final = 16
IDLE_S_MAX: Final = 5.0
"""A connection that was idle for longer is not used again: the node may be about to close it."""
DEADLINES_PER_ANSWER_MAX: Final = 30
"""A node that goes on sending gets so many times the deadline for its whole answer."""


_PAGE_TYPE: Final = "text/html"
"""The type of an answer that some proxy gave, and no node."""


class Unchecked(Exception):
    """A request was to be sent over a checked connection, and got another: nothing was sent."""


class HttpAnswer(NamedTuple):
    """The status and the body of an answer, and the connection that it came over."""

    status: int
    body: bytearray
    connection: object


class NodeConnections:
    """Connections to the address of one node, each used by one request at a time."""

    def __init__(self, url: str, *, timeout_s: float) -> None:
        address = httpx.URL(url)
        self._url = str(address.copy_with(userinfo=b""))
        self._is_secure = address.scheme == "https"
        self._headers = _headers(address)
        self._timeout_s = timeout_s
        self._timeout = aiohttp.ClientTimeout(
            total=DEADLINES_PER_ANSWER_MAX * timeout_s, connect=timeout_s, sock_read=timeout_s
        )
        self._current: _Session | None = None
        self._is_closed = False
        self._checked: weakref.WeakSet[Any] = weakref.WeakSet()

    def mark_checked(self, connection: object) -> None:
        """Let requests that need a checked connection use this one."""
        self._checked.add(connection)

    async def post(
        self,
        method: str,
        body: bytes,
        bytes_max: int,
        *,
        needs_checked: bool = False,
        is_repeated: bool = False,
    ) -> HttpAnswer:
        """Send a body once and return the answer to it; `method` is its name in errors.

        A longer answer than `bytes_max`, before or after its compression is undone, is not read to its end.

        Raises ChainUnavailable: the node may have received the request. It is AnswerTooLarge when the node
        carried out the request, and the answer is too long.
        Raises Unchecked when a checked connection is needed and it is another's turn: nothing was sent.
        The other one stays open for the question; when it is met again (`is_repeated`), it is closed.
        """
        way = _Way(self._checked if needs_checked else None, is_repeated=is_repeated)
        token = _WAY.set(way)
        try:
            status, received = await self._post(method, body, bytes_max)
        finally:
            _WAY.reset(token)
        return HttpAnswer(status, received, way.connection)

    async def _post(self, method: str, body: bytes, bytes_max: int) -> tuple[int, bytearray]:
        session = self._current or _Session(self._opened())
        self._current = None if self._is_closed else session
        session.requests += 1
        try:
            end_s = asyncio.get_running_loop().time() + DEADLINES_PER_ANSWER_MAX * self._timeout_s
            sending = session.http.post(self._url, data=body, allow_redirects=False)
            async with sending as response:
                return response.status, await self._body(response, method, bytes_max, end_s)
        except (aiohttp.ClientError, OSError) as error:
            raise ChainUnavailable(method, type(error).__name__) from error
        finally:
            session.requests -= 1
            if session is not self._current:
                await session.close_unused()

    async def discard(self) -> None:
        """Use no present connection for another request; one that a request uses is closed after it."""
        session, self._current = self._current, None
        if session is not None:
            await session.close_unused()

    async def close(self) -> None:
        """Close the connections; one that a request uses is closed after it."""
        self._is_closed = True
        await self.discard()

    async def _body(
        self, response: aiohttp.ClientResponse, method: str, bytes_max: int, end_s: float
    ) -> bytearray:
        body, loop = bytearray(), asyncio.get_running_loop()
        _check_size(response, response.content_length or 0, method, bytes_max)
        # aiohttp's own deadline for a piece ends when it cannot parse one, and its reader goes on waiting.
        async with asyncio.timeout(self._timeout_s) as deadline:

            def progressed() -> None:
                if not deadline.expired():
                    deadline.reschedule(min(end_s, loop.time() + self._timeout_s))

            async for piece in response.content.iter_any():
                body += piece
                _check_size(response, len(body), method, bytes_max)
                progressed()
                if await receive_rest(response, body, progressed):
                    break
        return body

    def _opened(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=_Connector(
                limit=CONNECTIONS_MAX,
                keepalive_timeout=IDLE_S_MAX,
                ssl=_tls() if self._is_secure else True,
            ),
            headers=self._headers,
            skip_auto_headers=["Accept-Encoding"],
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            read_bufsize=PIECE_BYTES,
            trust_env=False,
        )


class _Way:
    """The connection of one request, and those that it may use, unless it may use any."""

    def __init__(self, allowed: weakref.WeakSet[Any] | None, *, is_repeated: bool) -> None:
        self.allowed = allowed
        self.is_repeated = is_repeated
        self.connection: object = None


_WAY: Final[ContextVar[_Way]] = ContextVar("_WAY")
"""The way of the request that the present task sends: aiohttp connects in the task that asked."""


class _Connector(aiohttp.TCPConnector):
    """A pool that names the connection of a request before a byte of it is sent."""

    @override
    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Any], timeout: aiohttp.ClientTimeout
    ) -> Any:
        connection = await super().connect(req, traces, timeout)
        way = _WAY.get()
        way.connection = connection.protocol
        if way.allowed is not None and way.connection not in way.allowed:
            if way.is_repeated:
                connection.close()
            else:
                connection.release()
            raise Unchecked
        return connection


class _Session:
    """Connections, and how many requests use them or wait for one.

    aiohttp would cancel the tasks of requests that wait when it closes a session, and forget those that read.
    """

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self.http = http
        self.requests = 0

    async def close_unused(self) -> None:
        """Close the connections unless a request uses one."""
        if not self.requests:
            await self.http.close()


def _check_size(response: aiohttp.ClientResponse, size: int, method: str, bytes_max: int) -> None:
    if size <= bytes_max:
        return
    if response.status == HTTPStatus.OK and response.content_type != _PAGE_TYPE:
        raise AnswerTooLarge(method, bytes_max)
    raise ChainUnavailable(method, f"HTTP {response.status} with more than {bytes_max} bytes")


def _headers(url: httpx.URL) -> dict[str, str]:
    """Return the headers of every request.

    Compression is asked for over TLS, from nodes far away: near ones answer faster without.
    """
    headers = {
        "Accept": "application/json",
        "Content-Type": "application/json",
        "User-Agent": "foretell",
    }
    if url.scheme == "https":
        headers["Accept-Encoding"] = "gzip, deflate"
    if url.userinfo:
        headers["Authorization"] = aiohttp.encode_basic_auth(url.username, url.password)
    return headers


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the certificates to trust; reading them takes 30 ms, so they are read once."""
    return httpx.create_ssl_context(trust_env=False)
