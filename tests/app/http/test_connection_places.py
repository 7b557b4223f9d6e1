"""Places for connections: a bound for all and one for each address, and nobody loses the place it has."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.applications import serving
from tests.rigs.clock import Clock

from foretell.app.http.connection_places import ConnectionPlaces, Place, PlaceLimits, Standing
from foretell.app.http.request_pace import LoopClock
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
    places = ConnectionPlaces(limits, clock=LoopClock(clock.now_s, lambda: 0.0))
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
    places = ConnectionPlaces(
        limits, lambda: ClientAddresses([PROXY]), clock=LoopClock(lambda: 0.0)
    )
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


@given(
    st.lists(st.tuples(st.sampled_from("csep"), st.integers(0, 30)), max_size=80),
    st.sampled_from([1, 100]),
)
def test_attack_h2_no_anonymous_connection_takes_an_authenticated_place(
    steps: list[tuple[str, int]], kept: int
) -> None:
    """Connect, show one of three keys, end, and open a proxy's stream, in any order."""
    limits = PlaceLimits(8, of_address=100, of_account=3, kept=kept, reserved=4, provisional=2)
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
    keys = Counter(place.account for place in here if place.standing is Standing.AUTHENTICATED)
    assert all(count <= limits.of_account for count in keys.values())


def test_attack_h2_of_a_key_with_few_connections_none_is_closed() -> None:
    limits = PlaceLimits(total=4, reserved=2, provisional=1)
    places, authenticated = ConnectionPlaces(limits), [Held() for _ in range(3)]
    for number, each in enumerate(authenticated):
        show(places, each, f"key {number}")
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


def show(places: ConnectionPlaces, held: Held, key: str, peer: str = "1.1.1.1") -> bool:
    """Connect and show a key, and return whether the connection is kept."""
    held.place = places.take(peer, held)
    assert held.place is not None
    held.place.show_key(key)
    return held.place.standing is Standing.AUTHENTICATED


FEW = PlaceLimits(total=13, of_account=100, kept=3, reserved=3, provisional=1)
"""Twelve places for authenticated connections, of which a key and an address keep three each."""


@pytest.mark.parametrize(
    ("idle", "closed"), [((), 0), ((2, 5), 2), (range(8), 0)], ids=["none", "some", "all"]
)
def test_attack_h2_the_key_with_most_connections_makes_way_for_one_with_fewer(
    idle: Sequence[int], closed: int
) -> None:
    """A few clients with keys of their own took all places, and a trader had one answer a connection."""
    places = ConnectionPlaces(FEW)
    most = [Held(is_idle=number in idle) for number in range(8)]
    fewer = [Held(is_idle=True) for _ in range(4)]
    assert all(show(places, each, "most") for each in most)
    assert all(show(places, each, "fewer", "2.2.2.2") for each in fewer)

    trader = Held()
    assert show(places, trader, "trader", "3.3.3.3")
    assert [each.is_closed for each in most] == [number == closed for number in range(8)]
    assert not any(each.is_closed for each in fewer)
    assert places.taken == places.authenticated == 12


def test_attack_h2_a_key_with_most_connections_takes_no_places_of_others() -> None:
    places, others = ConnectionPlaces(FEW), [Held(is_idle=True) for _ in range(6)]
    mine = [Held(is_idle=True) for _ in range(6)]
    assert all(show(places, each, "other") for each in others)
    assert all(show(places, each, "mine") for each in mine)
    again = Held()
    assert not show(places, again, "mine", "2.2.2.2")
    assert not any(each.is_closed for each in (*others, *mine, again))


def test_attack_h2_keys_with_few_connections_each_make_way_by_their_address() -> None:
    places, crowd = ConnectionPlaces(FEW), [Held(is_idle=True) for _ in range(12)]
    for number, each in enumerate(crowd):
        assert show(places, each, f"key {number // 3}", "1.1.1.1" if number < 9 else "2.2.2.2")
    trader, neighbour = Held(is_idle=True), Held()
    assert show(places, trader, "trader", "3.3.3.3")
    assert [each.is_closed for each in crowd] == [True] + [False] * 11
    assert not show(places, neighbour, "neighbour"), "its address has most"
    assert not trader.is_closed


def test_attack_h2_of_addresses_and_keys_that_have_few_connections_none_is_closed() -> None:
    places, crowd = ConnectionPlaces(FEW), [Held(is_idle=True) for _ in range(12)]
    for number, each in enumerate(crowd):
        assert show(places, each, f"key {number // 3}", f"1.1.1.{number // 3}")
    assert not show(places, Held(), "trader", "3.3.3.3")
    assert not any(each.is_closed for each in crowd)


def test_connections_through_a_proxy_make_way_by_their_key_alone() -> None:
    places = ConnectionPlaces(FEW, lambda: ClientAddresses([PROXY]))
    proxied = [Held(is_idle=True) for _ in range(12)]
    for number, each in enumerate(proxied):
        assert show(places, each, f"key {number // 3}", PROXY)
    assert not show(places, Held(), "trader", "3.3.3.3")
    ended = proxied[0].place
    assert ended is not None
    ended.end()
    assert show(places, Held(), "key 1", PROXY)
    assert show(places, Held(), "trader", "3.3.3.3")
    assert [each.is_closed for each in proxied].index(True) == 3


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
