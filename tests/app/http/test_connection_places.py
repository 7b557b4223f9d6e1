"""Places for connections: a bound for all and one for each address, and nobody loses the place it has."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.applications import serving

from foretell.app.http.connection_places import ConnectionPlaces
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

WITHIN_S = 5.0
GET = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PROXY = "10.0.0.1"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        headers = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"OK"})
        return
    await receive()
    await send({"type": "websocket.accept"})
    await receive()


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def connect(place: str) -> Stream:
    host, port = place.split(":")
    return await asyncio.open_connection(host, int(port))


async def status_of(stream: Stream, request: bytes = GET) -> int:
    reader, writer = stream
    writer.write(request)
    async with asyncio.timeout(WITHIN_S):
        head = await reader.readuntil(b"\r\n\r\n")
    if b"content-length: 2\r\n" in head:
        await reader.readexactly(2)
    return int(head.split(b" ")[1])


async def close(places: ConnectionPlaces, *streams: Stream) -> None:
    """Close connections, and wait until the server has noticed."""
    wanted = places.taken - len(streams)
    for _, writer in streams:
        writer.close()
    async with asyncio.timeout(WITHIN_S):
        while places.taken > wanted:  # noqa: ASYNC110 - the server notifies no one
            await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def a_server(places: ConnectionPlaces) -> AsyncIterator[str]:
    async with serving(application, places=places) as host:
        yield host
    assert places.taken == 0


@pytest.mark.case("G-02")
@pytest.mark.parametrize(
    "places", [ConnectionPlaces(places_max=2), ConnectionPlaces(per_address_max=2)]
)
async def test_attack_h2_new_connections_beyond_the_places_are_refused_and_kept_ones_go_on(
    places: ConnectionPlaces,
) -> None:
    """Beyond the limit every request was refused, those of traders on kept connections too."""
    async with a_server(places) as host:
        kept = [await connect(host) for _ in range(2)]
        assert [await status_of(each) for each in kept] == [200, 200]

        reader, _ = refused = await connect(host)
        async with asyncio.timeout(WITHIN_S):
            head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert [await status_of(each) for each in kept] == [200, 200]
        await close(places, kept[0])
        later = await connect(host)
        assert await status_of(later) == 200
        refused[1].close()
        await close(places, kept[1], later)

    assert head.startswith(b"HTTP/1.1 503")
    assert b"retry-after: 1" in head
    assert json.loads(body)["error"]["code"] == "too_many_connections"


async def test_a_stream_has_a_place_until_it_ends() -> None:
    places = ConnectionPlaces(places_max=2)
    async with a_server(places) as host:
        streams = [await connect(host) for _ in range(2)]
        assert [await status_of(each, UPGRADE) for each in streams] == [101, 101]
        assert places.taken == 2
        await close(places, *streams)
        assert places.taken == 0


def test_clients_behind_a_trusted_proxy_count_in_total_only() -> None:
    places = ConnectionPlaces(4, 1, lambda: ClientAddresses([PROXY]))
    assert [places.take(PROXY) for _ in range(3)] == [""] * 3
    assert places.take("10.0.0.2") == "10.0.0.2"
    assert places.take(PROXY) is None


def test_an_ipv6_network_is_one_client() -> None:
    places = ConnectionPlaces(per_address_max=1)
    assert places.take("2001:db8::1") == "2001:db8::/64"
    assert places.take("2001:db8::2") is None
    assert places.take("2001:db8:0:1::1") == "2001:db8:0:1::/64"


@given(st.lists(st.sampled_from(["1.1.1.1", "2.2.2.2", "3.3.3.3", "end"]), max_size=60))
def test_no_more_places_are_taken_than_there_are(steps: list[str]) -> None:
    places, open_clients = ConnectionPlaces(5, 2), list[str]()
    for step in steps:
        if step != "end":
            client = places.take(step)
            full = len(open_clients) == 5 or open_clients.count(step) == 2
            assert (client is None) == full
            open_clients += [] if client is None else [client]
        elif open_clients:
            places.give_back(open_clients.pop(0))
        assert places.taken == len(open_clients)
