import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Coroutine

import pytest
from tests.app.http.test_slow_bodies import budget_used_up
from tests.app.http.test_unread_bodies import settled
from tests.rigs.applications import serving

from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces
from foretell.app.http.fast_routes import served_under
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.telemetry import AsgiApp, Receive, Scope, Send, Telemetry

pytestmark = pytest.mark.anyio

ANSWER_WITHIN_S = 60.0
DEADLINE_S = 0.05
HEAD_BYTES_MAX = CONNECTION_LIMITS.head_bytes_max


async def count_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the number of bytes in the body."""
    assert scope["type"] == "http"
    size, has_more = 0, True
    while has_more:
        message = await receive()
        size += len(message.get("body", b""))
        has_more = message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> bytes:
        """Return the next answer, whole."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            (length,) = re.findall(rb"content-length: (\d+)", head)
            return head + await self.reader.readexactly(int(length))

    async def is_closed(self) -> bool:
        """Wait for the server to close, and return whether it sent nothing more."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await self.reader.read() == b""


@contextlib.asynccontextmanager
async def connected(limits: ConnectionLimits) -> AsyncIterator[Client]:
    async with serving(count_body, limits=limits) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        yield Client(reader, writer)
        writer.close()


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with connected(CONNECTION_LIMITS) as client:
        yield client


@pytest.fixture
async def hurried_client() -> AsyncIterator[Client]:
    """A client with little time for each request."""
    async with connected(ConnectionLimits(request_deadline_s=DEADLINE_S)) as client:
        yield client


@pytest.mark.case("G-02")
async def test_a_head_without_an_end_is_cut_off(client: Client) -> None:
    await client.send(b"GET / HTTP/1.1\r\nHost: x\r\nX: ")
    piece = b"a" * 8192
    for _ in range(HEAD_BYTES_MAX // len(piece) + 2):
        await client.send(piece)
        await asyncio.sleep(0.001)
    assert (await client.answer()).startswith(b"HTTP/1.1 431 ")
    assert await client.is_closed()


@pytest.mark.case("G-02")
@pytest.mark.parametrize(
    "begun",
    [
        b"GET /",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1",
    ],
)
async def test_a_request_that_stays_incomplete_is_cut_off(
    hurried_client: Client, begun: bytes
) -> None:
    await hurried_client.send(begun)
    answer = await hurried_client.answer()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert await hurried_client.is_closed()


@pytest.mark.case("G-02")
async def test_a_silent_connection_is_cut_off() -> None:
    async with connected(ConnectionLimits(silence_deadline_s=DEADLINE_S)) as client:
        assert (await client.answer()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_may_be_larger_than_a_head(client: Client) -> None:
    size = 4 * HEAD_BYTES_MAX
    await client.send(
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size + b"b" * size
    )
    assert (await client.answer()).endswith(str(size).encode())


async def test_the_head_of_each_request_is_counted_by_itself(client: Client) -> None:
    padding = b"X: " + b"a" * (HEAD_BYTES_MAX // 2) + b"\r\n"
    for _ in range(4):
        await client.send(b"GET / HTTP/1.1\r\nHost: x\r\n")
        await asyncio.sleep(0.001)
        await client.send(padding + b"\r\n")
        assert (await client.answer()).startswith(b"HTTP/1.1 200 ")


async def test_a_kept_connection_is_not_cut_off_between_requests(hurried_client: Client) -> None:
    for _ in range(3):
        await hurried_client.send(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await hurried_client.answer()).startswith(b"HTTP/1.1 200 ")
        await asyncio.sleep(2 * DEADLINE_S)


async def until_free(places: ConnectionPlaces) -> None:
    """Return when the server has no connection any more."""
    async with asyncio.timeout(ANSWER_WITHIN_S):
        while places.taken:  # noqa: ASYNC110 - the server notifies no one
            await asyncio.sleep(0.01)


async def test_an_answer_that_is_not_taken_is_held_no_longer_than_a_pause() -> None:
    """Unread answers of a stranger once kept their memory, and the places of their connections."""
    size = 64 * 1024 * 1024

    async def answer(_scope: Scope, _receive: Receive, send: Send) -> None:
        headers = [(b"content-length", str(size).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(size)})

    limits, places = ConnectionLimits(stall_deadline_s=0.2), ConnectionPlaces()
    async with serving(answer, limits=limits, places=places) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await until_free(places)
        taken = 0
        async with asyncio.timeout(ANSWER_WITHIN_S):
            with contextlib.suppress(ConnectionError):
                while part := await reader.read(1024 * 1024):
                    taken += len(part)
        writer.transport.abort()
    assert taken < size


async def send_without_end(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer in parts, as long as the client reads them."""
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    gone = asyncio.create_task(_disconnected(receive))
    while not gone.done():
        await send({"type": "http.response.body", "body": bytes(64 * 1024), "more_body": True})
        await asyncio.sleep(0)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@pytest.mark.case("G-02")
async def test_an_answer_that_its_client_does_not_read_is_cut_off() -> None:
    """An answer in parts kept its place and its memory for as long as the client liked."""
    limits, places = ConnectionLimits(stall_deadline_s=0.2), ConnectionPlaces()
    async with serving(send_without_end, limits=limits, places=places) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        await until_free(places)
        with contextlib.suppress(ConnectionResetError):
            async with asyncio.timeout(ANSWER_WITHIN_S):
                while await reader.read(1024 * 1024):
                    pass
        writer.close()


async def test_an_answer_that_its_client_reads_slowly_goes_on() -> None:
    limits = ConnectionLimits(stall_deadline_s=2.0)
    async with serving(send_without_end, limits=limits) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(50):
            assert await reader.read(8 * 1024 * 1024)
            await asyncio.sleep(0.05)
        writer.close()


UNREAD_BYTES = 32 * 1024 * 1024
"""More than the sockets take; the server's buffer takes the rest without a pause."""
HURRIED = ConnectionLimits(
    write_buffer_bytes=2 * UNREAD_BYTES, stall_deadline_s=0.2, request_deadline_s=0.2
)


async def answer_much(_scope: Scope, _receive: Receive, send: Send) -> None:
    headers = [(b"content-length", str(UNREAD_BYTES).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": bytes(UNREAD_BYTES)})


async def begin_much(_scope: Scope, receive: Receive, send: Send) -> None:
    """Begin an answer before the body is whole, and wait for the rest of that."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    part = {"type": "http.response.body", "body": bytes(UNREAD_BYTES), "more_body": True}
    await send(part)
    await _disconnected(receive)


class SlowRoute:
    """A fast route that answers much when it may."""

    def __init__(self) -> None:
        self.may_answer = asyncio.Event()

    def begin(self, _request: FastRequest, reply: SendReply) -> Coroutine[None, None, None]:
        async def answer() -> None:
            await self.may_answer.wait()
            reply(FastResponse(200, bytes(UNREAD_BYTES)))

        return answer()


@pytest.mark.parametrize(
    ("app", "request_bytes"),
    [
        pytest.param(
            answer_much, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="closed"
        ),
        pytest.param(
            begin_much, b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc", id="refused"
        ),
        pytest.param(
            answer_much,
            b"POST /clob/fast HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok",
            id="of a fast route",
        ),
    ],
)
async def test_attack_h2_a_last_answer_that_is_not_read_holds_no_place(
    app: AsgiApp, request_bytes: bytes
) -> None:
    """A finding: a connection that was being closed waited for ever for the client to take the rest."""
    places = ConnectionPlaces()
    slow = SlowRoute()
    route = FastRoute(lambda query: not query, slow.begin)
    fast = served_under("/clob", {("POST", "/fast"): route}, Telemetry(app, "much", lambda: "id"))
    async with serving(app, fast, HURRIED, places=places) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
        try:
            writer.write(request_bytes)
            if b"/fast" in request_bytes:
                await settled()
                with budget_used_up():
                    writer.write(request_bytes)  # which has no room, so that the connection closes
                    await settled()
                    slow.may_answer.set()
                    await reader.readuntil(b"\r\n\r\n")
            else:
                await reader.readuntil(b"\r\n\r\n")
            await until_free(places)
        finally:
            writer.transport.abort()
