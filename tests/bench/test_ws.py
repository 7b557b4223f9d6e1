import asyncio
import io
import re
from typing import cast

import pytest
from rich.console import Console
from tests.bench.printed_ratios import is_ratio
from typing_extensions import override

from foretell.bench.rigs.streams.readers import LAG_OF_ONE_IN, Audience
from foretell.bench.ws import StreamPlan, StreamResult, StreamRound, run_bench_ws
from foretell.domain.errors.command import BenchFailed
from foretell.domain.values.text_frames import text_frame

PLAN = StreamPlan(rounds=1, orders=50, connections=20, subscriptions=10)


def test_deliveries_to_subscribers_are_printed_next_to_writes_to_bare_sockets() -> None:
    file = io.StringIO()
    ((measured,), _) = run_bench_ws(PLAN, Console(file=file, width=250))
    assert measured.deliveries == PLAN.connections * PLAN.subscriptions > LAG_OF_ONE_IN
    printed = file.getvalue()
    ((per_s, ratio, raw_per_s),) = re.findall(
        r"ws: ([\d,]+) deliveries a second, (\S+) for each that .* \(([\d,]+) a second\)", printed
    )
    rates = [float(each.replace(",", "")) for each in (per_s, raw_per_s)]
    assert is_ratio(ratio, *rates)
    assert 0 <= measured.lag_p50_ms <= measured.lag_p99_ms


def test_the_ratio_is_deliveries_over_writes_to_bare_sockets() -> None:
    assert StreamRound(100, 60.0, 80.0, 1.0, 0.5, 1.0, 0.0, 0.0, 0.0).ratio == 0.75


def test_the_figure_is_the_median_of_the_rounds_that_others_did_not_disturb() -> None:
    rounds = [
        StreamRound(100, per_s, 100.0, 1.0, 0.5, 1.0, 0.0, lag_ms, others)
        for per_s, lag_ms, others in (
            (50.0, 9.0, 0.0),
            (90.0, 4.0, 0.0),
            (70.0, 3.0, 0.0),
            (10.0, 99.0, 1.0),
        )
    ]
    measured = StreamResult(rounds, 48_300.0).measurement()
    assert (measured.figure, measured.seen) == ("ws", 0.7)
    assert measured.ceiling == ("bare sockets: 100 writes/s; p99 lag 4 ms, 48.3 kB a connection")


class Pinging(asyncio.Protocol):
    """A server that sends a ping and a text in two pieces, and notes what comes back."""

    def __init__(self) -> None:
        self.received = bytearray()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        sent = b"\x89\x04abcd" + text_frame(b"x" * 200)
        cast("asyncio.Transport", transport).write(sent[:9])
        asyncio.get_running_loop().call_later(
            0.05, cast("asyncio.Transport", transport).write, sent[9:]
        )

    @override
    def data_received(self, data: bytes) -> None:
        self.received += data


@pytest.mark.anyio
async def test_readers_answer_pings_and_count_texts_alone() -> None:
    """Servers close connections that answer none, after a measurement of 40 seconds."""
    pinging, readers = Pinging(), Audience()
    server = await asyncio.get_running_loop().create_server(lambda: pinging, "127.0.0.1", 0)
    async with server:
        readers.expect(1)
        await readers.open(server.sockets[0].getsockname()[1], 1)
        await readers.wait()
        async with asyncio.timeout(60):
            while len(pinging.received) < 10:  # noqa: ASYNC110 - the server has no event
                await asyncio.sleep(0.01)
        readers.close()
    assert pinging.received == b"\x8a\x84\x00\x00\x00\x00abcd"


@pytest.mark.anyio
async def test_a_lost_connection_ends_a_measurement() -> None:
    readers = Audience()
    readers.expect(1)
    readers.fail()
    with pytest.raises(BenchFailed, match="a connection was closed"):
        await readers.wait()


def test_more_connections_than_files_may_be_open_are_refused() -> None:
    with pytest.raises(BenchFailed, match="--connections"):
        run_bench_ws(StreamPlan(1, connections=10**9), Console(file=io.StringIO()))
