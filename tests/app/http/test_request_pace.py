"""The requests of an address are read at its allowance, and those of others meanwhile."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final

import pytest
from tests.app.http.test_connection_places import (
    GET,
    PROXY,
    UPGRADE,
    Held,
    Stream,
    application,
    connect,
    status_of,
)
from tests.rigs.applications import serving
from tests.rigs.clock import CountingLoop, VirtualLoop, run_virtually
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from foretell.app.http.connection_places import (
    CONNECTION_PAUSE_FACTOR,
    ConnectionPlaces,
    Place,
    PlaceLimits,
)
from foretell.app.http.request_pace import (
    COST_S_MAX,
    LOOP_BURST_S,
    LOOP_SHARE,
    LoopClock,
    LoopTime,
)
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.codec import PLACE
from foretell.edge.telemetry import AsgiApp, Receive, Scope, Send

BURST: Final = 50
PER_S: Final = 100
LIMITS: Final = PlaceLimits(requests_burst=BURST, requests_per_s=PER_S)
CONNECTIONS: Final = 10
EARLY: Final = 1_000
"""Requests beyond the burst."""
OTHER: Final = "127.0.0.2"
MADE_IN_S: Final = 0.0001
"""A connection, of the loop's time."""
STOPPED: Final = LoopClock(lambda: 0.0, lambda: 0.0)


def of_time(now_s: Callable[[], float]) -> LoopClock:
    """Return a clock by which requests take no time of the loop."""
    return LoopClock(now_s, lambda: 0.0)


async def showing_a_key(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer when the body has arrived; a request with a query is verified before that."""
    while scope["type"] == "http" and (await receive()).get("more_body"):
        pass
    if scope["query_string"]:
        scope[PLACE].show_key(scope["query_string"].decode())
    await application(scope, receive, send)


class PacedServer:
    """A server whose time passes only while everything waits, and whose loop is as busy as its application says."""

    def __init__(self, proxies: tuple[str, ...] = (), app: AsgiApp = showing_a_key) -> None:
        self.loop, self.busy_s, self.host = CountingLoop(), 0.0, ""
        self.app = app
        addresses = ClientAddresses(proxies)
        clock = LoopClock(self.loop.time, lambda: self.busy_s)
        self.places = ConnectionPlaces(LIMITS, lambda: addresses, clock)

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        async def served() -> None:
            async with serving(self.app, places=self.places) as self.host:
                await work

        run_virtually(served(), self.loop)

    async def asked(self, stream: Stream, times: int, request: bytes = GET) -> float:
        """Ask again and again, and return the seconds that it took."""
        began_s = self.loop.time()
        for _ in range(times):
            assert await status_of(stream, request) == 200
        return self.loop.time() - began_s


async def connected_from(host: str, address: str) -> Stream:
    name, port = host.split(":")
    return await asyncio.open_connection(name, int(port), local_addr=(address, 0))


def close(*streams: Stream) -> None:
    for _, writer in streams:
        writer.close()


def test_attack_h1_many_connections_of_an_address_are_read_at_its_allowance() -> None:
    """A thousand connections with a request each added 0.3 s to every turn of the event loop."""
    server = PacedServer()

    async def flood() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        each = (BURST + EARLY) // CONNECTIONS
        flooding = asyncio.gather(*(server.asked(stream, each) for stream in streams))
        await asyncio.sleep(1.0)
        stranger = await connected_from(server.host, OTHER)
        assert await server.asked(stranger, BURST) < 0.1
        assert not flooding.done()
        assert (EARLY - 1) / PER_S <= max(await flooding) <= EARLY / PER_S + 0.1
        close(*streams, stranger)

    server.run(flood())


@pytest.mark.parametrize("size", [2**20, len(GET), 1000], ids=["at once", "each", "torn"])
def test_attack_h1_pipelined_requests_are_read_at_the_allowance(size: int) -> None:
    server, requests = PacedServer(), GET * (BURST + EARLY)

    async def flood() -> None:
        reader, writer = stream = await connect(server.host)
        for at in range(0, len(requests), size):
            writer.write(requests[at : at + size])
            await asyncio.sleep(0)
        for _ in range(BURST + EARLY):
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
            await reader.readexactly(2)
        # Those of a piece begin together.
        assert (EARLY - 1024 // len(GET) - 2) / PER_S <= server.loop.time() <= EARLY / PER_S + 0.1
        close(stream)

    server.run(flood())


def test_a_connection_that_shows_a_key_is_read_at_once() -> None:
    """Also if strangers of its address have used up the allowance."""
    server = PacedServer()

    async def trade() -> None:
        strangers, trader = await connect(server.host), await connect(server.host)
        await server.asked(strangers, BURST + 10)
        assert server.loop.time() > 0.05
        signed = GET.replace(b"/", b"/?key", 1)
        assert await server.asked(trader, EARLY, signed) < 0.02, "its first one has a turn"
        assert await server.asked(strangers, 2) > 0.005
        close(strangers, trader)

    server.run(trade())


def test_requests_through_a_trusted_proxy_are_read_at_once() -> None:
    server = PacedServer(("127.0.0.1",))

    async def forward() -> None:
        proxy = await connect(server.host)
        assert await server.asked(proxy, BURST + EARLY) < 0.01
        close(proxy)

    server.run(forward())


def test_an_allowance_outlasts_the_connections_of_its_address() -> None:
    server = PacedServer()

    async def come_again() -> None:
        for _ in range(BURST + 20):
            stream = await connect(server.host)
            await server.asked(stream, 1)
            close(stream)
        assert server.loop.time() >= 19 / PER_S

    server.run(come_again())


def test_a_connection_that_waits_may_become_a_stream_or_end() -> None:
    server = PacedServer()

    async def leave() -> None:
        streams = [await connect(server.host) for _ in range(3)]
        await server.asked(streams[0], BURST)
        for each in streams[:2]:
            await server.asked(each, 1)
        assert await status_of(streams[2], UPGRADE) == 101
        for _, writer in streams:
            writer.transport.abort()

    server.run(leave())


@pytest.mark.parametrize(
    ("ended", "pause_s"),
    [(0, 0.0), (1, CONNECTION_PAUSE_FACTOR * MADE_IN_S), (500, COST_S_MAX)],
    ids=["none", "one", "hundreds"],
)
def test_attack_h2_connections_that_end_lengthen_the_pauses_of_strangers(
    monkeypatch: pytest.MonkeyPatch, ended: int, pause_s: float
) -> None:
    """Two thousand that were refused, again and again, took all of the loop: only their requests counted."""
    server, makes = PacedServer(), HttpToolsProtocol.connection_made

    def make_slowly(connection: HttpToolsProtocol, transport: asyncio.Transport) -> None:
        makes(connection, transport)
        server.loop.selector.now_s += MADE_IN_S

    monkeypatch.setattr(HttpToolsProtocol, "connection_made", make_slowly)

    async def taken(number: int) -> None:
        while server.places.taken != number:  # noqa: ASYNC110 - the server notifies no one
            await asyncio.sleep(0)

    async def come_again() -> None:
        kept = await connected_from(server.host, OTHER)
        left = [await connect(server.host) for _ in range(ended)]
        await taken(1 + ended)
        assert await server.asked(kept, 1) == 0.0
        close(*left)
        await taken(1)
        assert await server.asked(kept, 1) == pytest.approx(pause_s)
        assert await server.asked(kept, 1) == 0.0
        close(kept)

    server.run(come_again())


def test_a_large_body_is_read_whole_in_one_turn() -> None:
    server = PacedServer()
    post = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % 10**6 + bytes(10**6)

    async def upload() -> None:
        stream = await connect(server.host)
        await server.asked(stream, BURST)
        assert await server.asked(stream, 1, post) < 0.01
        assert await server.asked(stream, 1, post) > 0.005
        close(stream)

    server.run(upload())


def a_place(places: ConnectionPlaces, peer: str = "1.1.1.1") -> Place:
    place = places.take(peer, Held())
    assert place is not None
    return place


@pytest.mark.anyio
async def test_the_request_with_which_a_connection_has_to_show_a_key_begins_at_once() -> None:
    """A finding: it waited behind its neighbours' requests until the connection was ended for lack of a key."""
    places = ConnectionPlaces(LIMITS._replace(total=4, reserved=2, provisional=1))
    neighbours = [a_place(places) for _ in range(2)]
    for each in neighbours:
        for _ in range(BURST):
            each.count_request()
    assert not neighbours[0].may_begin(lambda: None)
    trader = a_place(places)
    assert trader.is_provisional
    assert trader.may_begin(lambda: None)


def begun_in_turns(*waiting: Place) -> list[int]:
    """Let a request begin on each of the connections, and return how many did in each turn of the loop."""
    begun = [0]

    def begin(place: Place) -> None:
        place.count_request()
        begun[-1] += 1

    async def begin_all() -> None:
        for place in waiting:
            if place.may_begin(partial(begin, place)):
                begin(place)
        while sum(begun) < len(waiting):
            begun.append(0)
            await asyncio.sleep(0)

    run_virtually(begin_all(), VirtualLoop())
    return begun


def test_attack_h1_one_request_of_an_address_begins_in_a_turn_of_the_loop() -> None:
    """A thousand that came together held up everything else for 0.3 s."""
    places = ConnectionPlaces(LIMITS, clock=STOPPED)
    assert begun_in_turns(*(a_place(places) for _ in range(4))).count(1) == 4


def test_attack_h1_one_request_of_all_addresses_begins_in_a_turn_of_the_loop() -> None:
    """Twenty addresses made an order wait for a piece of each of them, fifty milliseconds."""
    places = ConnectionPlaces(LIMITS, clock=STOPPED)
    crowds = [[a_place(places, f"1.1.1.{number}") for _ in range(3)] for number in range(20)]
    begun = begun_in_turns(*(each for crowd in crowds for each in crowd))
    assert (max(begun), sum(begun)) == (1, 60)


@pytest.mark.parametrize(
    ("first", "rest"), [(GET[:-2], GET[-2:]), (b"\r\n", GET)], ids=["torn", "behind empty lines"]
)
def test_attack_h1_heads_that_end_together_are_read_one_in_a_turn_of_the_loop(
    first: bytes, rest: bytes
) -> None:
    """A finding: a turn was had by the first bytes, and as many requests as there were connections began in one."""
    number_by_turn = Counter[int]()

    async def counting(scope: Scope, receive: Receive, send: Send) -> None:
        number_by_turn[server.loop.turns] += 1
        await application(scope, receive, send)

    server = PacedServer(app=counting)

    async def end_together() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        for _, writer in streams:
            writer.write(first)
        await asyncio.sleep(1.0)
        for _, writer in streams:
            writer.write(rest)
        for reader, _ in streams:
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        close(*streams)

    server.run(end_together())
    assert (max(number_by_turn.values()), number_by_turn.total()) == (1, CONNECTIONS)


@pytest.mark.anyio
async def test_a_request_that_comes_later_than_those_that_wait_begins_behind_them() -> None:
    places, begun = ConnectionPlaces(LIMITS, clock=STOPPED), list[str]()
    first, waiting, later = a_place(places), a_place(places), a_place(places, "2.2.2.2")
    assert first.may_begin(lambda: None)
    first.count_request()
    assert not waiting.may_begin(lambda: begun.append("waited"))
    await asyncio.sleep(0)
    assert not later.may_begin(lambda: begun.append("later"))
    async with asyncio.timeout(10):
        while len(begun) < 2:  # noqa: ASYNC110 - nobody is notified
            await asyncio.sleep(0)
    assert begun == ["waited", "later"]


def test_attack_h1_those_with_keys_begin_in_turns_of_their_own() -> None:
    """Keys cost nothing: one address could show keys, and send to the APIs without limits as much as it likes."""
    places = ConnectionPlaces(LIMITS, clock=STOPPED)
    strangers, traders = ([a_place(places) for _ in range(number)] for number in (2, 4))
    for each in traders:
        each.show_key("key")
    begun = begun_in_turns(*strangers, *traders)
    assert (begun[0], sum(begun)) == (2, 6)
    assert max(begun[1:]) == 2


def test_requests_through_a_proxy_begin_at_once() -> None:
    places = ConnectionPlaces(LIMITS, lambda: ClientAddresses([PROXY]), STOPPED)
    assert begun_in_turns(*(a_place(places, PROXY) for _ in range(BURST))) == [BURST]


class Loop:
    """An event loop with one processor: requests of an address, and what others do."""

    def __init__(self) -> None:
        self.now_s = self.busy_s = 0.0
        self.begun = 0
        self._loop_time = LoopTime(LOOP_SHARE, LoopClock(lambda: self.now_s, lambda: self.busy_s))

    def work_s(self, seconds: float) -> None:
        self.now_s += seconds
        self.busy_s += seconds

    def run_s(self, seconds: float, cost_s: float, others_s: float = 0.0, at_once: int = 1) -> None:
        """Begin requests as soon as they may, so many at a time that each take so long, and the others' work."""
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            if not self._loop_time.debt_s():
                for _ in range(at_once):
                    self._loop_time.count()
                self.begun += at_once
                self.work_s(at_once * cost_s)
            elif not others_s:
                self.now_s += 0.0001
            self.work_s(others_s)


@pytest.mark.parametrize("at_once", [1, 20])
@pytest.mark.parametrize("cost_s", [0.0004, COST_S_MAX])
def test_requests_of_an_address_take_their_part_of_the_loop(cost_s: float, at_once: int) -> None:
    loop = Loop()
    loop.run_s(10.0, cost_s, at_once=at_once)
    assert loop.busy_s == pytest.approx(10.0 * LOOP_SHARE + LOOP_BURST_S, rel=0.02)


def test_an_address_is_read_however_much_others_do() -> None:
    """The loop's time is counted as the address's, up to a cost for each of its requests."""
    loop = Loop()
    loop.run_s(10.0, 0.0004, others_s=0.001)
    assert loop.begun == pytest.approx(10.0 * LOOP_SHARE / COST_S_MAX, rel=0.1)


def test_an_address_that_asks_now_and_then_owes_nothing() -> None:
    loop = Loop()
    share = LoopTime(LOOP_SHARE, LoopClock(lambda: loop.now_s, lambda: loop.busy_s))
    for _ in range(1_000):
        assert not share.debt_s()
        share.count()
        loop.work_s(0.01)


@pytest.mark.parametrize(("of_address", "burst"), [(1, 5_000), (1_000, 5_000), (5_000, 25_000)])
def test_an_address_may_send_the_largest_published_limit_at_once(
    of_address: int, burst: int
) -> None:
    limits = PlaceLimits.of(16_128, of_address)
    assert (limits.requests_burst, limits.requests_per_s) == (burst, burst / 5)
