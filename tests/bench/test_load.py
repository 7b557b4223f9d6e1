"""Load on a server that answers as slowly as a test wants."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import pytest
from typing_extensions import override

from foretell.bench.rigs.load import send_all, send_for, send_paced
from foretell.domain.errors.command import BenchFailed

pytestmark = pytest.mark.anyio

REQUEST = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
SENT_FOR_S = 3.0
"""Time for more than the first requests, also where others have the processor for a while."""


class Answering(asyncio.Protocol):
    """One connection to a server that answers each request after a while."""

    def __init__(self, delay_s: float, status: int) -> None:
        self.transport: asyncio.Transport | None = None
        self._delay_s = delay_s
        self._answer = b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % status

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    @override
    def data_received(self, data: bytes) -> None:
        assert data == REQUEST
        asyncio.get_running_loop().call_later(self._delay_s, self._answer_now)

    def _answer_now(self) -> None:
        assert self.transport is not None
        if not self.transport.is_closing():
            self.transport.write(self._answer)


@contextlib.asynccontextmanager
async def a_server(delay_s: float = 0.0, status: int = 200) -> AsyncIterator[int]:
    answering: list[Answering] = []

    def accept() -> Answering:
        answering.append(Answering(delay_s, status))
        return answering[-1]

    loop = asyncio.get_running_loop()
    async with await loop.create_server(accept, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    for each in answering:
        if each.transport is not None:
            each.transport.close()
    await asyncio.sleep(0)


async def test_every_request_is_sent_once() -> None:
    async with a_server() as port:
        answers = await send_all(port, [REQUEST] * 25, 4)
    assert len(answers.latencies_s) == 25
    assert max(answers.latencies_s) <= answers.seconds


async def test_a_request_is_sent_again_until_the_time_is_over() -> None:
    async with a_server(delay_s=0.02) as port:
        answers = await send_for(port, REQUEST, 2, seconds=SENT_FOR_S)
    assert 2 < len(answers.latencies_s) <= 2 * round(SENT_FOR_S / 0.02)
    assert SENT_FOR_S <= answers.seconds < 60
    assert min(answers.latencies_s) >= 0.015


async def test_paced_requests_take_as_long_as_their_pace() -> None:
    async with a_server() as port:
        answers = await send_paced(port, [REQUEST] * 21, 4, per_s=100)
    assert len(answers.latencies_s) == 21
    assert answers.seconds >= 0.2


async def test_a_latency_includes_the_wait_for_a_connection() -> None:
    """Each takes 20 ms and one is due every millisecond, so the last waits for all before it."""
    async with a_server(delay_s=0.02) as port:
        answers = await send_paced(port, [REQUEST] * 10, 1, per_s=1_000)
    assert answers.latencies_s[-1] >= 10 * 0.02 - 0.01
    assert answers.latencies_s == sorted(answers.latencies_s)


@pytest.mark.parametrize("per_s", [None, 500.0])
async def test_an_answer_with_another_status_ends_a_round(per_s: float | None) -> None:
    async with a_server(status=503) as port:
        with pytest.raises(BenchFailed, match="HTTP 503"):
            await (
                send_all(port, [REQUEST] * 9, 3)
                if per_s is None
                else send_paced(port, [REQUEST] * 9, 3, per_s)
            )


async def test_a_connection_that_is_closed_ends_a_round() -> None:
    async def disconnect(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with await asyncio.start_server(disconnect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(BenchFailed, match="closed a connection"):
            await send_all(port, [REQUEST], 1)
