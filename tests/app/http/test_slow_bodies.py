"""Bodies of fast routes that arrive slowly: they have a deadline, and count in the budget of all bodies."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence

import pytest
from tests.rigs.applications import serving

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_routes import served_under
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.codec import (
    BODY_BUDGET,
    BODY_BYTES_BY_ALL_MAX,
    BODY_BYTES_BY_CLIENT_MAX,
    BODY_BYTES_RESERVED,
)
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import NO_LIMITS, RateLimits
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry
from foretell.edge.throttled_application import ApiLimits
from foretell.trading.refusals import trading_body

pytestmark = pytest.mark.anyio

CLIENT = "127.0.0.1"
HEAD = b"POST /clob/fast HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
FORWARDED = "10.1.1.1"
FORWARDED_HEAD = HEAD.replace(b"Host: x", f"Host: x\r\nX-Forwarded-For: {FORWARDED}".encode())
BEHIND_PROXY = NO_LIMITS._replace(trusted_proxies=(CLIENT,))
STRANGERS = (BODY_BYTES_BY_ALL_MAX - BODY_BYTES_RESERVED) // BODY_BYTES_BY_CLIENT_MAX
"""So many hold all that strangers may."""
WITHIN_S = 60.0
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Begin = Callable[[FastRequest, SendReply], Coroutine[None, None, None] | None]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"OK"})


def answer_at_once(request: FastRequest, reply: SendReply) -> None:
    reply(FastResponse(200, request.body))


class Held:
    """A fast route that answers when the test says so; a request that counts shows a key."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.goes_on = asyncio.Event()

    def begin(self, request: FastRequest, reply: SendReply) -> Coroutine[None, None, None]:
        async def answer() -> None:
            if request.turn is not None:
                request.turn.take("a key")
            self.begun.set()
            await self.goes_on.wait()
            reply(FastResponse(200, request.body))

        return answer()


async def read_by_server() -> None:
    """Return when the server, which has the same event loop, has read what was sent to it."""
    for _ in range(1_000):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def connected(
    limits: ConnectionLimits = CONNECTION_LIMITS,
    api: ApiLimits | None = None,
    begin: Begin = answer_at_once,
    proxies: Sequence[str] = (),
) -> AsyncIterator[Stream]:
    route = FastRoute(lambda query: not query, begin)
    telemetry = Telemetry(application, "slow", lambda: "id")
    routes = served_under("/clob", {("POST", "/fast"): route}, telemetry, api)
    refusals = ConnectionRefusals(lambda: "id", {"/clob": trading_body})
    places = ConnectionPlaces(addresses=lambda: ClientAddresses(proxies))
    async with serving(application, routes, limits, refusals, places) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        yield reader, writer
        writer.close()


async def answer(stream: Stream) -> tuple[int, bytes]:
    async with asyncio.timeout(WITHIN_S):
        head = await stream[0].readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), await stream[0].readexactly(length)


def api_limits(limits: RateLimits = BEHIND_PROXY) -> ApiLimits:
    """Return the limits of an API, behind a proxy or not."""
    return ApiLimits(RateLimiter("trading", limits, monotonic_ms), trading_body)


@contextlib.contextmanager
def budget_used_up(*clients: str, size: int = BODY_BYTES_BY_CLIENT_MAX) -> Iterator[None]:
    """Have other bodies of clients hold all that each may, or so many bytes."""
    clients = clients or (CLIENT,)
    for each in clients:
        BODY_BUDGET.take(each, size)
    try:
        yield
    finally:
        for each in clients:
            BODY_BUDGET.give_back(each, size)


async def held(size: int) -> None:
    """Wait until all bodies together hold this many bytes."""
    async with asyncio.timeout(WITHIN_S):
        while BODY_BUDGET.bytes_held != size:  # noqa: ASYNC110 - a budget notifies no one
            await asyncio.sleep(0.005)


async def test_attack_h5_a_slow_body_after_another_request_is_refused_in_words() -> None:
    """The connection was closed without an answer, as if that request had been answered in part."""
    async with connected(ConnectionLimits(request_deadline_s=0.1)) as stream:
        stream[1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await answer(stream) == (200, b"OK")
        stream[1].write(HEAD + b"ab")
        status, body = await answer(stream)
    assert (status, json.loads(body)["code"]) == (408, "request_too_slow")
    assert BODY_BUDGET.bytes_held == 0


async def test_attack_h5_a_body_of_a_fast_route_counts_until_it_is_complete() -> None:
    async with connected() as stream:
        stream[1].write(HEAD + b"ab")
        await held(len(HEAD) + 2)
        stream[1].write(b"c")
        await held(len(HEAD) + 3)
        stream[1].write(b"d")
        assert await answer(stream) == (200, b"abcd")
        assert BODY_BUDGET.bytes_held == 0
        stream[1].write(HEAD + b"ab")
        await held(len(HEAD) + 2)
    await held(0)


async def test_attack_h5_requests_before_the_answer_count_too() -> None:
    route = Held()
    async with connected(begin=route.begin) as stream:
        stream[1].write(HEAD + b"abcd")
        await route.begun.wait()
        stream[1].write(HEAD + b"efgh")
        await held(len(HEAD) + 4)
        route.goes_on.set()
        assert [await answer(stream) for _ in range(2)] == [(200, b"abcd"), (200, b"efgh")]
        assert BODY_BUDGET.bytes_held == 0


async def test_attack_h5_a_client_holds_no_more_than_its_part_of_the_memory() -> None:
    async with connected() as stream:
        with budget_used_up():
            stream[1].write(HEAD + b"ab")
            status, body = await answer(stream)
            rest = await stream[0].read()
    assert (status, rest) == (503, b"")
    assert b"bodies_busy" in body
    assert BODY_BUDGET.bytes_held == 0


async def test_attack_h5_a_client_holds_no_more_before_the_answer_either() -> None:
    route = Held()
    async with connected(begin=route.begin) as stream:
        stream[1].write(HEAD + b"abcd")
        await route.begun.wait()
        with budget_used_up():
            stream[1].write(HEAD + b"ab")
            await read_by_server()
            route.goes_on.set()
            assert await answer(stream) == (200, b"abcd")
            assert await stream[0].read() == b""
    assert BODY_BUDGET.bytes_held == 0


async def test_a_busy_refusal_of_the_first_bytes_has_the_form_of_its_api() -> None:
    """It had the form of a path that no API has."""
    async with connected() as stream:
        with budget_used_up():
            stream[1].write(HEAD + b"ab")
            status, body = await answer(stream)
    assert (status, json.loads(body)["code"]) == (503, "bodies_busy")


async def test_a_body_counts_for_one_client_though_the_proxies_change_while_it_arrives() -> None:
    """The connection was dropped at the next bytes, which counted for another address."""
    api = api_limits()
    async with connected(api=api) as stream:
        stream[1].write(FORWARDED_HEAD + b"ab")
        await held(len(FORWARDED_HEAD) + 2)
        api.change(NO_LIMITS)
        stream[1].write(b"c")
        await held(len(FORWARDED_HEAD) + 3)
        stream[1].write(b"d")
        assert await answer(stream) == (200, b"abcd")
    assert BODY_BUDGET.bytes_held == 0


async def test_requests_before_the_answer_count_for_the_client_behind_a_proxy() -> None:
    """They counted for the proxy, so for all its clients together."""
    route = Held()
    async with connected(api=api_limits(), begin=route.begin) as stream:
        stream[1].write(FORWARDED_HEAD + b"abcd")
        await route.begun.wait()
        with budget_used_up(FORWARDED):
            stream[1].write(FORWARDED_HEAD + b"efgh")
            await read_by_server()
            route.goes_on.set()
            assert await answer(stream) == (200, b"abcd")
            assert await stream[0].read() == b""
    assert BODY_BUDGET.bytes_held == 0


@contextlib.contextmanager
def reserve_left() -> Iterator[int]:
    """Have strangers hold all that they may, and give the number of bytes."""
    strangers = [f"203.0.113.{number}" for number in range(STRANGERS)]
    with budget_used_up(*strangers):
        yield BODY_BUDGET.bytes_held


async def test_attack_h5_requests_before_the_answer_to_a_known_key_have_the_reserve() -> None:
    route = Held()
    async with connected(api=api_limits(NO_LIMITS), begin=route.begin) as stream:
        stream[1].write(HEAD + b"abcd")
        await route.begun.wait()
        with reserve_left() as size:
            stream[1].write(HEAD + b"efgh")
            await held(size + len(HEAD) + 4)
            route.goes_on.set()
            assert [await answer(stream) for _ in range(2)] == [(200, b"abcd"), (200, b"efgh")]
    assert BODY_BUDGET.bytes_held == 0


async def test_attack_h5_a_proxy_s_connection_has_no_reserve_after_a_key_either() -> None:
    """It brings the requests of strangers, too."""
    route, api = Held(), api_limits()
    async with connected(api=api, begin=route.begin, proxies=(CLIENT,)) as stream:
        stream[1].write(HEAD + b"abcd")
        await route.begun.wait()
        with reserve_left():
            stream[1].write(HEAD + b"efgh")
            await read_by_server()
            route.goes_on.set()
            assert await answer(stream) == (200, b"abcd")
            assert await stream[0].read() == b""
    assert BODY_BUDGET.bytes_held == 0
