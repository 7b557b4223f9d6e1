"""The places that are reserved for authenticated connections, over real sockets."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import NamedTuple

import httpx
import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, an_asset
from tests.trading.rig import listening
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.fast_routes import served_under
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import NO_LIMITS
from foretell.edge.telemetry import Telemetry
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication
from foretell.trading.refusals import trading_body
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

LIMITS = PlaceLimits(total=8, reserved=4, provisional=2)
ANONYMOUS_MAX = LIMITS.total - LIMITS.reserved
WITHIN_S = 60.0
PROVISIONAL_S = 4.0
"""Long enough for a request on a machine that is busy with other things."""
GET = b"GET /time HTTP/1.1\r\nHost: x\r\n\r\n"
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Served(NamedTuple):
    """A served trading API, and its places."""

    host: str
    places: ConnectionPlaces


@contextlib.asynccontextmanager
async def served(
    rig: TradingRig,
    limits: PlaceLimits = LIMITS,
    proxies: tuple[str, ...] = (),
    provisional_s: float = WITHIN_S,
) -> AsyncIterator[Served]:
    places = ConnectionPlaces(limits, lambda: ClientAddresses(proxies))
    rates = NO_LIMITS._replace(trusted_proxies=proxies)
    api = ApiLimits(RateLimiter("trading", rates, monotonic_ms), trading_body)
    app = Telemetry(ThrottledApplication(rig.app, api), "places", lambda: "an id")
    routes = served_under("", fast_routes(rig.context), app, api)
    connection = ConnectionLimits(provisional_s=provisional_s)
    async with serving(app, routes, connection, places=places) as host:
        yield Served(host, places)


async def opened(host: str, address: str = "127.0.0.1") -> Stream:
    name, port = host.split(":")
    return await asyncio.open_connection(name, int(port), local_addr=(address, 0))


async def answer(stream: Stream, request: bytes = GET) -> bytes:
    """Return the head of an answer, empty if the connection ends."""
    reader, writer = stream
    try:
        async with asyncio.timeout(WITHIN_S):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if b"content-length" in line)
            await reader.readexactly(int(length.split(b":")[1]))
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""
    return head


async def ends(stream: Stream) -> bool:
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(WITHIN_S):
            await stream[0].read()
    stream[1].close()
    return True


@contextlib.asynccontextmanager
async def a_client(host: str) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(
        base_url=f"http://{host}",
        trust_env=False,
        timeout=60,
        limits=httpx.Limits(max_connections=1),
    ) as client:
        yield client


async def trade(trader: Trader, client: httpx.AsyncClient, salt: int) -> None:
    """Place an order and cancel it."""
    placed = await trader.send(
        "POST", "/order", trader.body(a_buy(trader.name, salt=salt)), client=client
    )
    assert placed.status_code == 200, placed.text
    order = {"orderID": placed.json()["orderID"]}
    canceled = await trader.send("DELETE", "/order", order, client=client)
    assert canceled.json()["canceled"] == [order["orderID"]]


async def test_attack_h2_anonymous_connections_that_hold_all_they_can_keep_no_key_out(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    """Idle anonymous connections once took every place, and orders and cancels were refused."""
    async with served(rig) as (host, places), a_client(host) as kept, a_client(host) as new:
        await trade(alice, kept, 1)
        anonymous = [await opened(host) for _ in range(ANONYMOUS_MAX)]
        for each in anonymous:
            assert b" 200 " in await answer(each)
        waiting = [await opened(host) for _ in range(3 * LIMITS.total)]
        for each in waiting[: -LIMITS.provisional]:
            assert await ends(each)
        assert places.taken <= LIMITS.total

        await trade(alice, kept, 2)
        await trade(bob, new, 3)
        await trade(bob, new, 4)
        assert (places.authenticated, places.taken <= LIMITS.total) == (2, True)
        for _, writer in (*anonymous, *waiting):
            writer.close()


@pytest.mark.parametrize("path", ["/order", "/order?x"], ids=["fast", "framework"])
async def test_attack_h2_a_first_request_with_a_key_makes_a_place_last(
    rig: TradingRig, alice: Trader, path: str
) -> None:
    async with (
        served(rig, provisional_s=PROVISIONAL_S) as (host, places),
        a_client(host) as client,
    ):
        anonymous = [await opened(host) for _ in range(ANONYMOUS_MAX)]
        body = json.dumps({"orderID": "0x" + 64 * "0"}).encode()
        headers = alice.l2_headers("DELETE", "/order", body)
        first = await client.request("DELETE", path, content=body, headers=headers)
        assert (first.status_code, "connection" in first.headers) == (200, False)
        assert await ends(await opened(host)), "the time is over for a later one"
        assert (places.authenticated, places.taken) == (1, ANONYMOUS_MAX + 1)
        for _, writer in anonymous:
            writer.close()


async def test_attack_h2_a_provisional_connection_without_a_key_has_one_answer(
    rig: TradingRig,
) -> None:
    async with served(rig) as (host, places):
        anonymous = [await opened(host) for _ in range(ANONYMOUS_MAX)]
        provisional = await opened(host)
        head = await answer(provisional)
        assert head.startswith(b"HTTP/1.1 200")
        assert b"connection: close" in head
        assert await ends(provisional)
        await still_answered(places, anonymous)


async def test_attack_h2_a_provisional_connection_that_is_silent_ends_soon(rig: TradingRig) -> None:
    async with served(rig, provisional_s=0.1) as (host, places):
        anonymous = [await opened(host) for _ in range(ANONYMOUS_MAX)]
        assert await ends(await opened(host))
        await still_answered(places, anonymous)


async def still_answered(places: ConnectionPlaces, streams: list[Stream]) -> None:
    """Check that these connections, and no others, have places, and close them."""
    assert places.taken == len(streams)
    for each in streams:
        assert b" 200 " in await answer(each)
        each[1].close()


async def test_attack_h2_an_address_that_opens_connections_fast_evicts_no_trader_of_another(
    rig: TradingRig, alice: Trader
) -> None:
    """The oldest provisional connection was closed, of any address: mostly before its first request."""
    async with served(rig, PlaceLimits(total=16, reserved=8, provisional=4)) as (host, places):
        anonymous = [await opened(host) for _ in range(8)]
        for each in anonymous:
            assert b" 200 " in await answer(each)
        trader = await opened(host, "127.0.0.2")
        churned = [await opened(host) for _ in range(40)]
        for each in churned[:-3]:
            assert await ends(each)
        assert places.taken == 8 + 4
        assert b" 200 " in await answer(trader, signed_get(alice))
        assert places.authenticated == 1
        for _, writer in (*anonymous, *churned, trader):
            writer.close()


async def test_attack_h1_streams_of_one_client_behind_a_proxy_share_its_turns(
    rig: TradingRig, alice: Trader
) -> None:
    """Each stream through a proxy counted as a client, so that one client had as many turns as streams."""
    async with (
        served(rig, PlaceLimits(), proxies=("127.0.0.1",)) as (host, _),
        contextlib.AsyncExitStack() as stack,
    ):
        await alice.placed(a_buy("alice"))
        found = []
        for forwarded in ("1.2.3.4, 203.0.113.1", "203.0.113.1", "203.0.113.2"):
            headers = {"X-Forwarded-For": forwarded}
            opening = connect(f"ws://{host}/ws/market", proxy=None, additional_headers=headers)
            stream = await stack.enter_async_context(opening)
            await stream.send(json.dumps({"assets_ids": [an_asset(is_yes=True)]}))
            async with asyncio.timeout(WITHIN_S):
                (book,) = json.loads(await stream.recv())
            found.append(rig.context.streams.open.find_any(book["stream_id"]).client)
    assert found == ["203.0.113.1", "203.0.113.1", "203.0.113.2"]


def signed_get(trader: Trader) -> bytes:
    """Return a request that shows the trader's key."""
    signed = trader.l2_headers("GET", "/data/orders")
    lines = "".join(f"{name}: {value}\r\n" for name, value in signed.items())
    return f"GET /data/orders HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode()


async def test_attack_h2_idle_anonymous_connections_are_closed_first(rig: TradingRig) -> None:
    """An anonymous stream stays open as long as an idle connection can be closed for its place."""
    async with served(rig) as (host, places), contextlib.AsyncExitStack() as clients:
        stream = await clients.enter_async_context(connect(f"ws://{host}/ws/market", proxy=None))
        idle = [await opened(host) for _ in range(ANONYMOUS_MAX - 1)]
        for each in idle:
            assert b" 200 " in await answer(each)
        room = LIMITS.total - LIMITS.provisional

        async def another(number: int) -> None:
            trader = await rig.trader(f"trader {number}")
            client = await clients.enter_async_context(a_client(host))
            assert (await trader.send("GET", "/data/orders", client=client)).status_code == 200

        for number in range(room - 1):
            await another(number)
        for each in idle:
            assert await ends(each)
        await stream.ping()
        await another(room)
        with pytest.raises(ConnectionClosed):
            async with asyncio.timeout(WITHIN_S):
                await stream.recv()
        assert places.authenticated == room


async def test_attack_h2_a_stream_keeps_its_place_by_logging_in(
    rig: TradingRig, alice: Trader
) -> None:
    async with served(rig, provisional_s=PROVISIONAL_S) as (host, places):
        anonymous = [await opened(host) for _ in range(ANONYMOUS_MAX)]
        async with listening(host, "/ws/user") as listener:
            await listener.log_in(alice)
            assert await ends(await opened(host)), "the time is over for a later one"
            await listener.silence()
            assert places.authenticated == 1
        for _, writer in anonymous:
            writer.close()


async def test_attack_h2_a_proxys_stream_is_not_that_of_the_key_before(
    rig: TradingRig, alice: Trader
) -> None:
    """A proxy sends the requests of many clients on one connection."""
    async with served(rig, proxies=("127.0.0.1",)) as (host, places):
        stream = await opened(host)
        assert b" 200 " in await answer(stream, signed_get(alice))
        assert places.authenticated == 1
        upgrade = (
            b"GET /ws/market HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        stream[1].write(upgrade)
        async with asyncio.timeout(WITHIN_S):
            assert (await stream[0].readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
        assert (places.authenticated, places.taken) == (0, 1)
        stream[1].close()
