import asyncio
import contextlib
import re
from collections.abc import AsyncIterator

import pytest
from tests.app.rig import serving

from foretell.app.http import bounded_connection
from foretell.app.http.bounded_connection import HEAD_BYTES_MAX
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

ANSWER_WITHIN_S = 5.0
DEADLINE_S = 0.05


async def count_body(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with how many bytes the body has."""
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

    async def say(self, data: bytes) -> None:
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
        """Wait for the server to close, and say whether it said nothing more."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            return await self.reader.read() == b""


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with serving(count_body) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        yield Client(reader, writer)
        writer.close()


@pytest.fixture
def short_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a request's time be over soon."""
    monkeypatch.setattr(bounded_connection, "REQUEST_DEADLINE_S", DEADLINE_S)


async def test_a_head_without_an_end_is_cut_off(client: Client) -> None:
    await client.say(b"GET / HTTP/1.1\r\nX: ")
    piece = b"a" * 8192
    for _ in range(HEAD_BYTES_MAX // len(piece) + 2):
        await client.say(piece)
        await asyncio.sleep(0.001)
    assert (await client.answer()).startswith(b"HTTP/1.1 431 ")
    assert await client.is_closed()


@pytest.mark.usefixtures("short_deadline")
@pytest.mark.parametrize(
    "begun",
    [b"GET /", b"GET / HTTP/1.1\r\nX: a\r\n", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n1"],
)
async def test_a_request_that_does_not_go_on_is_cut_off(client: Client, begun: bytes) -> None:
    await client.say(begun)
    answer = await client.answer()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert await client.is_closed()


async def test_a_connection_that_says_nothing_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounded_connection, "SILENCE_DEADLINE_S", DEADLINE_S)
    async with serving(count_body) as place:
        host, port = place.split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        assert (await Client(reader, writer).answer()).startswith(b"HTTP/1.1 408 ")
        writer.close()


async def test_a_body_may_be_larger_than_a_head(client: Client) -> None:
    size = 4 * HEAD_BYTES_MAX
    await client.say(b"POST / HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size + b"b" * size)
    assert (await client.answer()).endswith(str(size).encode())


async def test_requests_one_after_the_other_each_have_a_head_of_their_own(client: Client) -> None:
    padding = b"X: " + b"a" * (HEAD_BYTES_MAX // 2) + b"\r\n"
    for _ in range(4):
        await client.say(b"GET / HTTP/1.1\r\n")
        await asyncio.sleep(0.001)
        await client.say(padding + b"\r\n")
        assert (await client.answer()).startswith(b"HTTP/1.1 200 ")


@pytest.mark.usefixtures("short_deadline")
async def test_a_connection_that_is_kept_is_not_cut_off_between_requests(client: Client) -> None:
    for _ in range(3):
        await client.say(b"GET / HTTP/1.1\r\n\r\n")
        assert (await client.answer()).startswith(b"HTTP/1.1 200 ")
        await asyncio.sleep(2 * DEADLINE_S)
