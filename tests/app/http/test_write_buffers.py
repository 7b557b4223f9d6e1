"""Answers that nobody reads: what connections keep of them is bounded, and the oldest connection of who has most is closed."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

import pytest
from tests.rigs.applications import serving

from foretell.app.http.connection_places import ConnectionPlaces, Place
from foretell.app.http.write_buffers import (
    BUFFERED_BYTES_BY_CLIENT_MAX,
    BUFFERED_BYTES_MAX,
    WRITE_BUFFERS,
    WriteBuffers,
)
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.telemetry import Receive, Scope, Send

WITHIN_S: Final = 60.0
REFERENCE: Final = Path(__file__).parents[3] / "docs" / "reference"
ANSWER_BYTES: Final = 1024 * 1024
STRANGER: Final = "127.0.1.1"
STRANGERS: Final = 30
"""Connections, whose answers together are nearly twice what one client may leave unread."""
RECEIVE_BYTES: Final = 4096
"""Which the system takes of an answer for a client that does not read."""
GET: Final = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE: Final = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PROXY: Final = "10.0.0.9"


class Connections:
    """Connections of clients, each with so many bytes that are not read, and the names of those that were closed."""

    def __init__(self, client_bytes_max: int, bytes_max: int) -> None:
        self.buffers = WriteBuffers(bytes_max, client_bytes_max)
        self._places = ConnectionPlaces(addresses=lambda: ClientAddresses([PROXY]))
        self.closed: list[str] = []

    def pause(self, client: str, name: str, size: int) -> "Connection":
        connection = Connection(name, size, self.closed.append)
        place = connection.place = self._places.take(client, connection)
        assert place is not None
        self.buffers.hold(place, connection)
        return connection

    def resume(self, connection: "Connection") -> None:
        assert connection.place is not None
        self.buffers.release(connection.place)


class Connection:
    """A connection that has paused."""

    is_idle = False

    def __init__(self, name: str, size: int, close: Callable[[str], None]) -> None:
        self.size = size
        self.place: Place | None = None
        self._name = name
        self._close = close

    def close_now(self) -> None:
        self._close(self._name)

    def keep_open(self) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.size


def test_a_buffer_is_held_until_its_connection_goes_on() -> None:
    connections = Connections(100, 100)
    first, second = connections.pause("a", "first", 4), connections.pause("a", "second", 5)
    assert connections.buffers.bytes_held == 9
    for _ in range(2):
        connections.resume(first)
    assert connections.buffers.bytes_held == 5
    connections.resume(second)
    assert connections.buffers.bytes_held == 0
    assert connections.closed == []


def test_beyond_the_bytes_of_a_client_its_oldest_connections_are_closed() -> None:
    connections = Connections(10, 100)
    connections.pause("b", "another client's", 10)
    connections.pause("a", "first", 4)
    connections.pause("a", "second", 4)
    connections.pause("a", "third", 7)
    assert connections.closed == ["first", "second"]
    assert connections.buffers.bytes_held == 17


def test_an_answer_larger_than_the_bytes_of_a_client_may_be_read() -> None:
    connections = Connections(10, 100)
    connections.pause("a", "small", 1)
    connections.pause("a", "large", 11)
    assert connections.closed == ["small"]
    assert connections.buffers.bytes_held == 11


def test_beyond_the_bytes_of_all_the_client_with_most_loses_its_oldest_connection() -> None:
    connections = Connections(100, 20)
    connections.pause("a", "small", 6)
    for name in ("heavy", "heavy, too"):
        connections.pause("b", name, 5)
    connections.pause("c", "last", 5)
    assert connections.closed == ["heavy"]
    assert connections.buffers.bytes_held == 16


def test_what_was_read_in_the_meantime_does_not_count() -> None:
    connections = Connections(10, 20)
    first = connections.pause("a", "first", 9)
    first.size = 2
    connections.pause("a", "second", 6)
    assert connections.closed == []
    assert connections.buffers.bytes_held == 8
    connections.pause("b", "heavy", 10).size = 1
    connections.pause("c", "last", 9)
    assert connections.closed == []
    assert connections.buffers.bytes_held == 18


def test_each_connection_of_a_proxy_is_a_client_of_its_own() -> None:
    connections = Connections(10, 30)
    for name, size in (("first", 9), ("second", 12), ("third", 8)):
        connections.pause(PROXY, name, size)
    assert connections.closed == []
    connections.pause("a", "last", 5)
    assert connections.closed == ["second"]


def test_the_bounds_are_those_of_the_page() -> None:
    page = " ".join((REFERENCE / "http.md").read_text().split())
    of_all, of_client = (
        each // 2**20 for each in (BUFFERED_BYTES_MAX, BUFFERED_BYTES_BY_CLIENT_MAX)
    )
    assert (
        f"Unread answers have {of_all} MiB of memory in a process, those of one address {of_client} MiB"
        in page
    )


class Application:
    """Answers with a mebibyte, or sends messages on a stream without an end."""

    def __init__(self) -> None:
        self.requests = 0
        self.messages = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await self._stream(receive, send)
            return
        self.requests += 1
        headers = [(b"content-length", str(ANSWER_BYTES).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": bytes(ANSWER_BYTES)})

    async def _stream(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        for _ in range(1_000):
            await send({"type": "websocket.send", "text": "x" * 10_000})
            self.messages += 1
            await asyncio.sleep(0)


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def place(application: Application) -> AsyncIterator[str]:
    async with serving(application) as place:
        yield place


class Client:
    """A connection whose system takes little of what is not read."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end

    @classmethod
    async def connect(cls, place: str, source: str = "127.0.0.1") -> "Client":
        host, port = place.split(":")
        end = socket.socket()
        end.settimeout(0)
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        end.bind((source, 0))
        await asyncio.get_running_loop().sock_connect(end, (host, int(port)))
        return cls(end)

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self._end, data)

    async def read(self, size: int) -> bytes:
        """Return what comes, of so many bytes or fewer if the connection ends before."""
        data = bytearray()
        async with asyncio.timeout(WITHIN_S):
            with contextlib.suppress(ConnectionError):
                while len(data) < size:
                    part = await asyncio.get_running_loop().sock_recv(self._end, size - len(data))
                    if not part:
                        break
                    data += part
        return bytes(data)

    async def answer(self) -> bytes:
        """Return the body of the next answer, or what there is of it."""
        head = b""
        while not head.endswith(b"\r\n\r\n") and (byte := await self.read(1)):
            head += byte
        return await self.read(ANSWER_BYTES)

    def close(self) -> None:
        self._end.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not condition():  # noqa: ASYNC110 - buffers notify no one
            await asyncio.sleep(0.01)


async def settled(application: Application, requests: int) -> None:
    """Wait until so many requests were carried out, and their answers are in buffers."""
    await until(lambda: application.requests >= requests)
    await asyncio.sleep(0.05)


@pytest.mark.anyio
async def test_guard_answers_that_an_address_does_not_read_do_not_pile_up(
    place: str, application: Application
) -> None:
    """A finding: any number of answers was kept for 75 s, such as that to `POST /books` on each connection."""
    reader = await Client.connect(place)
    await reader.send(GET)
    await settled(application, 1)
    strangers = []
    for number in range(STRANGERS):
        stranger = await Client.connect(place, STRANGER)
        strangers.append(stranger)
        await stranger.send(GET)
        await settled(application, 2 + number)
        assert WRITE_BUFFERS.bytes_held <= BUFFERED_BYTES_BY_CLIENT_MAX + ANSWER_BYTES
    assert WRITE_BUFFERS.bytes_held > BUFFERED_BYTES_BY_CLIENT_MAX / 2
    assert len(await reader.answer()) == ANSWER_BYTES
    sizes = [len(await stranger.answer()) for stranger in strangers]
    cut_off = sum(size < ANSWER_BYTES for size in sizes)
    assert 0 < cut_off < STRANGERS
    assert sizes[cut_off:] == [ANSWER_BYTES] * (STRANGERS - cut_off)
    for each in (reader, *strangers):
        each.close()
    await until(lambda: WRITE_BUFFERS.bytes_held == 0)


@pytest.mark.anyio
async def test_a_request_begins_when_the_answers_before_it_are_read(
    place: str, application: Application
) -> None:
    """A second answer waited in memory behind the first one, where nothing counted it."""
    client = await Client.connect(place)
    await client.send(GET * 3)
    await settled(application, 1)
    assert application.requests == 1
    for _ in range(3):
        assert len(await client.answer()) == ANSWER_BYTES
    assert application.requests == 3
    await client.send(GET)
    assert len(await client.answer()) == ANSWER_BYTES
    client.close()
    await until(lambda: WRITE_BUFFERS.bytes_held == 0)


@pytest.mark.anyio
async def test_a_client_that_leaves_before_its_answers_has_no_request_begun(
    place: str, application: Application
) -> None:
    client = await Client.connect(place)
    await client.send(GET * 2)
    await settled(application, 1)
    client.close()
    await until(lambda: WRITE_BUFFERS.bytes_held == 0)
    await asyncio.sleep(0.05)
    assert application.requests == 1


@pytest.mark.anyio
@pytest.mark.parametrize("before", [b"", GET], ids=["a stream", "a stream behind an answer"])
async def test_what_a_stream_has_unread_counts_too(
    place: str, application: Application, before: bytes
) -> None:
    """A stream behind an unread answer wrote on, whatever its client took."""
    client = await Client.connect(place)
    await client.send(before)
    await settled(application, len(before) // len(GET))
    await client.send(UPGRADE)
    await until(lambda: WRITE_BUFFERS.bytes_held > 0)
    await asyncio.sleep(0.2)
    assert application.messages < 100
    held = WRITE_BUFFERS.bytes_held
    assert held < ANSWER_BYTES + 100_000
    assert len(await client.read(ANSWER_BYTES + 2_000_000)) == ANSWER_BYTES + 2_000_000
    assert application.messages > 100
    client.close()
    await until(lambda: WRITE_BUFFERS.bytes_held == 0)
