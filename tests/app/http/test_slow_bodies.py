"""Bodies of fast routes that arrive slowly: they have a deadline, and count in the budget of all bodies."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine

import pytest
from tests.rigs.applications import serving

from foretell.app.http.fast_routes import served_under
from foretell.app.http.framework_connection import CONNECTION_LIMITS, ConnectionLimits
from foretell.edge.codec import BODY_BUDGET, BODY_BYTES_BY_CLIENT_MAX
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry

pytestmark = pytest.mark.anyio

CLIENT = "127.0.0.1"
HEAD = b"POST /fast HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n"
WITHIN_S = 5.0
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
async def connected(limits: ConnectionLimits = CONNECTION_LIMITS) -> AsyncIterator[Stream]:
    route = FastRoute(lambda query: not query, answer_later)
    telemetry = Telemetry(application, "slow", lambda: "id")
    async with serving(
        application, served_under("", {("POST", "/fast"): route}, telemetry), limits
    ) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        yield reader, writer
        writer.close()


async def answer(stream: Stream) -> tuple[int, bytes]:
    async with asyncio.timeout(WITHIN_S):
        head = await stream[0].readuntil(b"\r\n\r\n")
        length = int(head.partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), await stream[0].readexactly(length)


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
    assert (status, b"request_too_slow" in body) == (408, True)
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
        BODY_BUDGET.take(CLIENT, BODY_BYTES_BY_CLIENT_MAX)
        try:
            stream[1].write(HEAD + b"ab")
            status, body = await answer(stream)
            rest = await stream[0].read()
        finally:
            BODY_BUDGET.give_back(CLIENT, BODY_BYTES_BY_CLIENT_MAX)
    assert (status, rest) == (200 if is_early else 503, b"")
    assert is_early or b"bodies_busy" in body
    assert BODY_BUDGET.bytes_held == 0
