"""Places for connections: a bound for all and one for each address, and nobody loses the place it has."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.applications import serving
from tests.rigs.clock import Clock

from foretell.app.http.connection_places import ConnectionPlaces, Place, PlaceLimits, Standing
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
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
    "places", [ConnectionPlaces(PlaceLimits(total=2)), ConnectionPlaces(PlaceLimits(of_address=2))]
)
async def test_attack_h2_new_connections_beyond_the_places_are_refused_and_kept_ones_go_on(
    places: ConnectionPlaces,
) -> None:
    """Beyond the limit every request was refused, those with a key on kept connections too."""
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


@pytest.mark.case("G-02")
async def test_attack_h2_connections_that_an_address_opens_too_fast_are_refused_unread() -> None:
    """An address that closed its connections could open others without end."""
    clock = Clock()
    limits = PlaceLimits(opened_burst=3, opened_per_s=2)
    places = ConnectionPlaces(limits, now_s=clock.now_s)
    async with a_server(places) as host:
        kept = await connect(host)
        for _ in range(2):
            assert await status_of(kept) == 200
            await close(places, await connect_and_ask(host))
        for _ in range(4):  # what is refused does not count
            reader, writer = await connect(host)
            async with asyncio.timeout(WITHIN_S):
                refusal = await reader.read()
            writer.close()
            assert refusal.startswith(b"HTTP/1.1 503")
            assert b"too_many_connections" in refusal
        assert await status_of(kept) == 200
        clock.move_s(0.5)
        await close(places, await connect_and_ask(host))
        await close(places, kept)


async def connect_and_ask(host: str) -> Stream:
    stream = await connect(host)
    assert await status_of(stream) == 200
    return stream


def test_connections_of_a_proxy_may_be_opened_as_fast_as_it_likes() -> None:
    limits = PlaceLimits(opened_burst=1, opened_per_s=1)
    places = ConnectionPlaces(limits, lambda: ClientAddresses([PROXY]), now_s=lambda: 0.0)
    assert clients_of(places, PROXY, PROXY, PROXY) == [""] * 3
    assert clients_of(places, "10.0.0.2", "10.0.0.2", "10.0.0.3") == ["10.0.0.2", None, "10.0.0.3"]


@pytest.mark.parametrize(("of_address", "burst"), [(1, 1_000), (1_000, 1_000), (5_000, 5_000)])
def test_an_address_may_open_all_its_connections_at_once(of_address: int, burst: int) -> None:
    limits = PlaceLimits.of(16_128, of_address)
    assert (limits.opened_burst, limits.opened_per_s) == (burst, burst / 5)


async def test_a_stream_has_a_place_until_it_ends() -> None:
    places = ConnectionPlaces(PlaceLimits(total=2))
    async with a_server(places) as host:
        streams = [await connect(host) for _ in range(2)]
        assert [await status_of(each, UPGRADE) for each in streams] == [101, 101]
        assert places.taken == 2
        await close(places, *streams)
        assert places.taken == 0


class Held:
    """A connection that is idle or not, and may have been closed."""

    def __init__(self, *, is_idle: bool = False) -> None:
        self.is_idle = is_idle
        self.is_closed = False
        self.place: Place | None = None

    def close_now(self) -> None:
        self.is_closed = True

    def keep_open(self) -> None:
        pass


def clients_of(places: ConnectionPlaces, *peers: str) -> list[str | None]:
    """Return the clients that connections of these addresses count for, None for those refused."""
    taken = [places.take(peer, Held()) for peer in peers]
    return [None if each is None else each.client for each in taken]


def test_clients_behind_a_trusted_proxy_count_in_total_only() -> None:
    places = ConnectionPlaces(PlaceLimits(4, 1), lambda: ClientAddresses([PROXY]))
    assert clients_of(places, PROXY, PROXY, PROXY) == [""] * 3
    assert clients_of(places, "10.0.0.2", PROXY) == ["10.0.0.2", None]


def test_an_ipv6_network_is_one_client() -> None:
    places = ConnectionPlaces(PlaceLimits(of_address=1))
    assert clients_of(places, "2001:db8::1", "2001:db8::2") == ["2001:db8::/64", None]
    assert clients_of(places, "2001:db8:0:1::1") == ["2001:db8:0:1::/64"]


@given(st.lists(st.sampled_from(["1.1.1.1", "2.2.2.2", "3.3.3.3", "end"]), max_size=60))
def test_no_more_places_are_taken_than_there_are(steps: list[str]) -> None:
    places, taken = ConnectionPlaces(PlaceLimits(5, 2)), list[Place]()
    for step in steps:
        if step != "end":
            place = places.take(step, Held())
            full = len(taken) == 5 or [each.client for each in taken].count(step) == 2
            assert (place is None) == full
            taken += [] if place is None else [place]
        elif taken:
            taken.pop(0).end()
        assert places.taken == len(taken)


@given(st.lists(st.tuples(st.sampled_from("csep"), st.integers(0, 30)), max_size=80))
def test_attack_h2_no_anonymous_connection_takes_an_authenticated_place(
    steps: list[tuple[str, int]],
) -> None:
    """Connect, show one of three keys, end, and open a proxy's stream, in any order."""
    limits = PlaceLimits(total=8, of_address=100, of_key=3, reserved=4, provisional=2)
    places, held = ConnectionPlaces(limits, lambda: ClientAddresses([PROXY])), list[Held]()
    for act, number in steps:
        if act == "c":
            each = Held(is_idle=number % 2 == 0)
            each.place = places.take(PROXY if number % 3 == 0 else "1.1.1.1", each)
            assert each.place is not None, "the oldest provisional one is closed"
            held.append(each)
        elif held:
            place = held[number % len(held)].place
            assert place is not None
            match act:
                case "s":
                    place.show_key(f"key {number % 3}")
                case "e":
                    place.end()
                case _:
                    place.begin_stream()
        check(places, limits, held)


def check(places: ConnectionPlaces, limits: PlaceLimits, held: list[Held]) -> None:
    here = [each.place for each in held if each.place is not None and each.place.is_taken]
    counts = Counter(place.standing for place in here)
    assert places.taken == len(here) <= limits.total
    assert counts[Standing.ANONYMOUS] <= limits.total - limits.reserved
    assert counts[Standing.PROVISIONAL] <= limits.provisional
    assert counts[Standing.AUTHENTICATED] == places.authenticated
    keys = Counter(place.key for place in here if place.standing is Standing.AUTHENTICATED)
    assert all(count <= limits.of_key for count in keys.values())


def test_attack_h2_an_authenticated_connection_is_closed_for_nobody() -> None:
    limits = PlaceLimits(total=4, reserved=2, provisional=1)
    places, authenticated = ConnectionPlaces(limits), [Held() for _ in range(3)]
    for number, each in enumerate(authenticated):
        place = places.take("1.1.1.1", each)
        assert place is not None
        place.show_key(f"key {number}")
    later = [Held(), Held()]
    for each in later:
        each.place = places.take("1.1.1.1", each)
    assert later[1].place is not None
    later[1].place.show_key("another")
    assert [each.is_closed for each in (*authenticated, *later)] == [
        False,
        False,
        False,
        True,
        False,
    ]
    assert (places.authenticated, later[1].place.is_provisional) == (3, True)


CHURNED = PlaceLimits(total=40, of_address=2_000, reserved=20, provisional=8)


def with_anonymous_places_taken() -> ConnectionPlaces:
    places = ConnectionPlaces(CHURNED)
    for number in range(CHURNED.total - CHURNED.reserved):
        assert places.take(f"10.0.0.{number}", Held()) is not None
    return places


def test_attack_h2_the_address_with_most_provisional_places_loses_its_oldest() -> None:
    """One address that opened connections fast closed those of all others before their first request."""
    places, traders = with_anonymous_places_taken(), [Held() for _ in range(3)]
    for number, each in enumerate(traders):
        each.place = places.take(f"192.0.2.{number}", each)
    churned = [Held() for _ in range(1_000)]
    for each in churned:
        each.place = places.take("198.51.100.1", each)
    assert not any(each.is_closed for each in traders)
    assert [each.is_closed for each in churned] == [True] * 995 + [False] * 5
    for number, each in enumerate(traders):
        assert each.place is not None
        assert each.place.is_provisional
        each.place.show_key(f"key {number}")
    assert places.authenticated == len(traders)


def test_attack_h2_among_addresses_with_one_provisional_place_each_the_oldest_is_closed() -> None:
    places, held = with_anonymous_places_taken(), [Held() for _ in range(10)]
    for number, each in enumerate(held):
        assert places.take(f"192.0.2.{number}", each) is not None
    assert [each.is_closed for each in held] == [True] * 2 + [False] * 8


def test_provisional_places_that_end_count_for_their_address_no_more() -> None:
    places, early = with_anonymous_places_taken(), [Held() for _ in range(8)]
    for each in early:
        each.place = places.take("192.0.2.1", each)
    for each in early[1:]:
        assert each.place is not None
        each.place.end()
    later = [Held() for _ in range(8)]
    for each in later:
        each.place = places.take("192.0.2.2", each)
    assert [each.is_closed for each in (*early, *later)] == [False] * 8 + [True] + [False] * 7


def test_frames_of_an_address_count_while_it_has_connections() -> None:
    places = ConnectionPlaces(PlaceLimits(frames_burst=10, frames_per_s=5))
    one, other = places.take("127.0.0.1", Held()), places.take("127.0.0.1", Held())
    stranger = places.take("127.0.0.2", Held())
    assert one is not None
    assert other is not None
    assert stranger is not None
    assert one.take_frames(10, 0.0) == 0.0
    assert other.take_frames(5, 0.0) == 1.0
    assert stranger.take_frames(10, 0.0) == 0.0
    one.end()
    assert one.take_frames(100, 0.0) == 0.0
    assert other.take_frames(5, 0.0) == 2.0
    other.end()
    again = places.take("127.0.0.1", Held())
    assert again is not None
    assert again.take_frames(10, 0.0) == 0.0


def test_frames_through_a_proxy_count_for_each_stream_alone() -> None:
    limits = PlaceLimits(frames_burst=1, frames_per_s=1)
    places = ConnectionPlaces(limits, lambda: ClientAddresses(("127.0.0.1",)))
    proxied = places.take("127.0.0.1", Held())
    assert proxied is not None
    assert proxied.take_frames(100, 0.0) == 0.0
