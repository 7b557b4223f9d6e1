"""Memory of connections that wait, and of those that have ended."""

import asyncio
import gc
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import pytest
from httptools import HttpRequestParser
from tests.app.http.test_malformed_requests import ORDER, a_request, a_server, connected
from tests.rigs.applications import serving
from websockets.asyncio.client import connect

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.fast_connection import FastConnection
from foretell.app.http.framework_connection import FrameworkConnection
from foretell.app.http.stream_connection import StreamConnection
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

CONNECTIONS = 5
SOON_S = 10.0
KINDS = (FastConnection, FrameworkConnection, StreamConnection)
REQUESTS = {
    "nothing": b"",
    "a fast request": a_request(ORDER, b"Content-Length: 2", body=b"{}"),
    "a request": a_request(b"GET /data/x HTTP/1.1"),
    "pipelined requests": a_request(b"GET /data/x HTTP/1.1") * 3,
    "half a request": b"GET /data/x HTTP/1.1\r\n",
    "half a body": a_request(ORDER, b"Content-Length: 200", body=b"{}"),
    "a large body in part": a_request(
        b"POST /data/x HTTP/1.1", b"Content-Length: 900000", body=bytes(300_000)
    ),
    "pipelined bodies": a_request(
        b"POST /data/x HTTP/1.1", b"Content-Length: 9000", body=bytes(9_000)
    )
    * 3,
    "no request": b"x\r\n\r\n",
}


@pytest.fixture(autouse=True)
def nothing_is_searched() -> Iterator[None]:
    """Leave all memory to reference counting."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
async def place() -> AsyncIterator[str]:
    async with a_server() as place:
        yield place


def connections() -> Counter[str]:
    """Return the connections of each kind that have memory."""
    kinds = map(type, gc.get_objects())
    return Counter(each.__name__ for each in kinds if each in KINDS)


async def until_none_is_left() -> None:
    found = connections()
    for _ in range(500):
        if not found:
            return
        await asyncio.sleep(0.01)
        found = connections()
    raise AssertionError(f"{found} wait for a search for garbage")


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
async def test_connections_that_ended_are_freed_without_a_search_for_garbage(
    place: str, sent: bytes
) -> None:
    """A server that was never idle kept closed connections for an hour."""
    for _ in range(CONNECTIONS):
        async with connected(place) as peer:
            await peer.send(sent)
            await asyncio.sleep(0.01)
    await until_none_is_left()


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    """Send each text back."""
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})
    assert scope["type"] == "websocket"


async def test_connections_that_were_reset_are_freed_too(place: str) -> None:
    for _ in range(CONNECTIONS):
        async with connected(place) as peer:
            await peer.send(REQUESTS["a request"])
            await peer.answer()
            end = peer.writer.get_extra_info("socket")
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            peer.writer.transport.abort()
    await until_none_is_left()


async def test_attack_h2_provisional_connections_that_ended_are_freed_at_once() -> None:
    """A finding: each was kept until the time to show a key was over, thousands of an address that opens them fast."""
    places = ConnectionPlaces(PlaceLimits(total=2, reserved=2, provisional=2))
    limits = ConnectionLimits(provisional_s=3_600.0)
    async with serving(echo, limits=limits, places=places) as place:
        for _ in range(CONNECTIONS):
            async with connected(place):
                await asyncio.sleep(0.01)
        await until_none_is_left()


async def until_parsers_are(number: int) -> None:
    async with asyncio.timeout(SOON_S):
        while sum(isinstance(each, HttpRequestParser) for each in gc.get_objects()) != number:  # noqa: ASYNC110 - memory notifies no one
            await asyncio.sleep(0.01)


async def test_attack_h2_a_connection_that_waits_has_no_parser(place: str) -> None:
    """Ten thousand parsers took memory, most of which the server kept when the connections had ended."""
    async with connected(place) as peer:
        for _ in range(2):
            await until_parsers_are(0)
            await peer.send(REQUESTS["half a request"])
            await until_parsers_are(1)
            await peer.send(b"Host: x\r\n\r\n")
            assert (await peer.answer()).status == 200
        await until_parsers_are(0)


@pytest.mark.parametrize("is_cut_off", [False, True], ids=["closed", "cut off"])
async def test_streams_that_ended_are_freed_without_a_search_for_garbage(
    *, is_cut_off: bool
) -> None:
    async with serving(echo) as place:
        for _ in range(CONNECTIONS):
            async with connect(f"ws://{place}/", proxy=None) as stream:
                await stream.send("text")
                assert await stream.recv() == "text"
                if is_cut_off:
                    stream.transport.abort()
        await until_none_is_left()
