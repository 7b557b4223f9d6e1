"""Bodies of fast routes that arrive slowly: they have a deadline, and count in the budget of all bodies."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Coroutine, Iterator

import pytest
from tests.rigs.applications import serving

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_routes import served_under
from foretell.edge.codec import BODY_BUDGET, BODY_BYTES_BY_CLIENT_MAX
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import NO_LIMITS
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry
from foretell.edge.throttled_application import ApiLimits
from foretell.trading.refusals import trading_body

pytestmark = pytest.mark.anyio

CLIENT = "127.0.0.1"
HEAD = b"POST /clob/fast HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
FORWARDED = "10.1.1.1"
FORWARDED_HEAD = HEAD.replace(b"Host: x", f"Host: x\r\nX-Forwarded-For: {FORWARDED}".encode())
BEHIND_PROXY = NO_LIMITS._replace(trusted_proxies=(CLIENT,))
WITHIN_S = 60.0
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
    await send({"type": "http.response.body", "body": b"OK"})


def answer_later(request: FastRequest, reply: SendReply) -> Coroutine[None, None, None]:
    async def answer() -> None:
        await asyncio.sleep(0.05)
        reply(FastResponse(200, request.body))

    return answer()


@contextlib.asynccontextmanager
async def connected(
    limits: ConnectionLimits = CONNECTION_LIMITS, api: ApiLimits | None = None
) -> AsyncIterator[Stream]:
    route = FastRoute(lambda query: not query, answer_later)
    telemetry = Telemetry(application, "slow", lambda: "id")
    routes = served_under("/clob", {("POST", "/fast"): route}, telemetry, api)
    refusals = ConnectionRefusals(lambda: "id", {"/clob": trading_body})
    async with serving(application, routes, limits, refusals) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        yield reader, writer
        writer.close()


async def answer(stream: Stream) -> tuple[int, bytes]:
    async with asyncio.timeout(WITHIN_S):
        head = await stream[0].readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), await stream[0].readexactly(length)


def api_limits() -> ApiLimits:
    """Return the limits of an API behind a proxy."""
    return ApiLimits(RateLimiter("trading", BEHIND_PROXY, monotonic_ms), trading_body)


@contextlib.contextmanager
def budget_used_up(client: str = CLIENT) -> Iterator[None]:
    """Have other bodies of a client hold all that it may."""
    BODY_BUDGET.take(client, BODY_BYTES_BY_CLIENT_MAX)
    try:
        yield
    finally:
        BODY_BUDGET.give_back(client, BODY_BYTES_BY_CLIENT_MAX)


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
    async with connected() as stream:
        stream[1].write(HEAD + b"abcd")
        await asyncio.sleep(0.01)
        stream[1].write(HEAD + b"efgh")
        await held(len(HEAD) + 4)
        assert [await answer(stream) for _ in range(2)] == [(200, b"abcd"), (200, b"efgh")]
        assert BODY_BUDGET.bytes_held == 0


@pytest.mark.parametrize("is_early", [False, True])
async def test_attack_h5_a_client_holds_no_more_than_its_part_of_the_memory(
    is_early: bool,  # noqa: FBT001 - pytest passes it by position
) -> None:
    async with connected() as stream:
        if is_early:
            stream[1].write(HEAD + b"abcd")
            await asyncio.sleep(0.01)
        with budget_used_up():
            stream[1].write(HEAD + b"ab")
            status, body = await answer(stream)
            rest = await stream[0].read()
    assert (status, rest) == (200 if is_early else 503, b"")
    assert is_early or b"bodies_busy" in body
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
    async with connected(api=api_limits()) as stream:
        stream[1].write(FORWARDED_HEAD + b"abcd")
        await asyncio.sleep(0.01)
        with budget_used_up(FORWARDED):
            stream[1].write(FORWARDED_HEAD + b"efgh")
            assert await answer(stream) == (200, b"abcd")
            assert await stream[0].read() == b""
    assert BODY_BUDGET.bytes_held == 0
