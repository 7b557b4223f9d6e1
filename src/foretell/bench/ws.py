"""`foretell bench ws`: deliveries of the market stream to many subscribers (ws).

Each order that rests is one message to every connection that subscribed to its market. The ceiling is a process that
writes the bytes of such a message to as many sockets, with the same readers, in the same round.
"""

import resource
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.bench.rigs.cpu_profile import kernel_time_of, processor_time_of
from foretell.bench.rigs.exchange import Exchange, running_exchange
from foretell.bench.rigs.figures import WS, Measurement
from foretell.bench.rigs.load import Offer, requests_of, send_all
from foretell.bench.rigs.machine import disturbance, others_words, undisturbed, usage_with
from foretell.bench.rigs.startup import resident_bytes
from foretell.bench.rigs.streams.raw_writer import RawWriter, running_raw_writer
from foretell.bench.rigs.streams.readers import Audience, opening_of
from foretell.bench.rigs.world import World, make_world
from foretell.domain.errors.command import BenchFailed

ORDER_CONNECTIONS: Final = 8
PRICES: Final = 40
FILES_BESIDE: Final = 200
"""Open files of this process that are no readers."""


class StreamPlan(NamedTuple):
    """Rounds and their orders, connections, and the markets that each of them subscribes to."""

    rounds: int
    orders: int = 200
    connections: int = 2_000
    subscriptions: int = 20


class StreamRound(NamedTuple):
    """Deliveries of a round: by the exchange, and by bare sockets.

    Times are those of the thread that writes, for one delivery; `kernel_us` is the part of it that the kernel takes.
    """

    deliveries: int
    per_s: float
    raw_per_s: float
    cpu_us: float
    kernel_us: float
    raw_cpu_us: float
    lag_p50_ms: float
    lag_p99_ms: float
    others_cores: float

    @property
    def ratio(self) -> float:
        """Deliveries for each one of bare sockets in the same time."""
        return self.per_s / self.raw_per_s


class StreamResult(NamedTuple):
    """All rounds, and the bytes of memory that a connection takes in the server."""

    rounds: Sequence[StreamRound]
    memory_bytes: float

    def measurement(self) -> Measurement:
        """Return the ratio to bare sockets, the median of the rounds, and beside it lag and memory."""
        counted = undisturbed(self.rounds)
        raw_per_s = self._median([one.raw_per_s for one in counted])
        p99_ms = self._median([one.lag_p99_ms for one in counted])
        ceiling = (
            f"bare sockets: {raw_per_s:,.0f} writes/s; p99 lag {p99_ms:.0f} ms,"
            f" {self.memory_bytes / 1e3:,.1f} kB a connection"
        )
        return Measurement(WS, self.ratio, ceiling)

    @property
    def ratio(self) -> float:
        """The median of the rounds that count."""
        return self._median([one.ratio for one in undisturbed(self.rounds)])

    def words(self, plan: StreamPlan) -> str:
        """Return the medians of the rounds that count, in words."""
        counted = undisturbed(self.rounds)
        per_s, raw_per_s, cpu_us, kernel_us, raw_us, p99_ms = (
            self._median([getattr(one, name) for one in counted])
            for name in ("per_s", "raw_per_s", "cpu_us", "kernel_us", "raw_cpu_us", "lag_p99_ms")
        )
        return (
            f"ws: {per_s:,.0f} deliveries a second, {self.ratio:.2f} for each that bare sockets take of the"
            f" same bytes ({raw_per_s:,.0f} a second); {cpu_us:.1f} us of the serving thread for each, of"
            f" which {kernel_us:.1f} in the kernel, and {raw_us:.1f} us without an exchange; p99 lag"
            f" {p99_ms:.0f} ms; {self.memory_bytes / 1e3:,.1f} kB a connection (median of {len(counted)}"
            f" rounds, {plan.connections} connections, {plan.subscriptions} markets each)"
        )

    @staticmethod
    def _median(values: Sequence[float]) -> float:
        return statistics.median(values)


def run_bench_ws(plan: StreamPlan, console: Console) -> StreamResult:
    """Measure round after round, and print the ratio to bare sockets."""
    _check_files(plan)
    master_key = new_key()
    world = make_world(master_key)
    with (
        tempfile.TemporaryDirectory(prefix="foretell-bench-") as name,
        running_exchange(master_key, Path(name)) as exchange,
        running_raw_writer() as writer,
    ):
        measured = uvloop.run(_Streams(plan, world, exchange, writer).measure())
    console.print(_table_of(measured.rounds))
    console.print(measured.words(plan))
    if words := disturbance(measured.rounds):
        console.print(words)
    return measured


class _Streams:
    """The readers of both, and their rounds."""

    def __init__(
        self, plan: StreamPlan, world: World, exchange: Exchange, writer: RawWriter
    ) -> None:
        self._plan = plan
        self._world = world
        self._exchange = exchange
        self._writer = writer
        self._placed = 0
        markets = range(len(world.tokens))
        self._readers_by_market: list[list[int]] = [[] for _ in markets]
        for number in range(plan.connections):
            for market in self._markets_of(number):
                self._readers_by_market[market].append(number)

    async def measure(self) -> StreamResult:
        """Return the rounds, and the memory of a connection."""
        plan, world = self._plan, self._world
        openings = [
            opening_of(
                self._exchange.path,
                [world.tokens[market].yes for market in self._markets_of(number)],
            )
            for number in range(plan.connections)
        ]
        readers, raw = Audience(), Audience()
        try:
            before_bytes = sum(map(resident_bytes, self._exchange.pids))
            await readers.open(self._exchange.port, plan.connections, openings)
            await raw.open(self._writer.port, plan.connections)
            await self._deliver(readers, self._take_orders())
            after_bytes = sum(map(resident_bytes, self._exchange.pids))
            rounds = [await self._measure(readers, raw) for _ in range(plan.rounds)]
        finally:
            readers.close()
            raw.close()
        return StreamResult(rounds, max(after_bytes - before_bytes, 0) / plan.connections)

    async def _measure(self, readers: Audience, raw: Audience) -> StreamRound:
        pids = (*self._exchange.pids, self._writer.pid)
        numbers = self._take_orders()
        requests = self._requests(numbers)
        markets = [self._readers_by_market[self._market_of(number)] for number in numbers]
        deliveries = sum(map(len, markets))
        readers.lags_ms.clear()
        before = usage_with(*pids)
        served, in_kernel_s = processor_time_of(pids[:-1]), kernel_time_of(pids[:-1])
        seconds = await self._deliver(readers, numbers, requests)
        spent_s = served.until(processor_time_of(pids[:-1])).serving_s
        kernel_s = kernel_time_of(pids[:-1]) - in_kernel_s
        written = processor_time_of([self._writer.pid])
        raw.expect(deliveries)
        began_s = time.perf_counter()
        self._writer.write(readers.frame, markets)
        raw_seconds = await raw.wait() - began_s
        raw_spent_s = written.until(processor_time_of([self._writer.pid])).serving_s
        percentiles = statistics.quantiles(readers.lags_ms, n=100)
        return StreamRound(
            deliveries,
            deliveries / seconds,
            deliveries / raw_seconds,
            spent_s / deliveries * 1e6,
            kernel_s / deliveries * 1e6,
            raw_spent_s / deliveries * 1e6,
            percentiles[49],
            percentiles[98],
            before.others_cores(usage_with(*pids)),
        )

    async def _deliver(
        self, readers: Audience, numbers: range, requests: Sequence[bytes] | None = None
    ) -> float:
        """Place orders, and return the seconds until every subscriber has all messages of them."""
        prepared = self._requests(numbers) if requests is None else requests
        readers.expect(
            sum(len(self._readers_by_market[self._market_of(number)]) for number in numbers)
        )
        began_s = time.perf_counter()
        await send_all(self._exchange.port, prepared, ORDER_CONNECTIONS)
        return await readers.wait() - began_s

    def _take_orders(self) -> range:
        first, self._placed = self._placed, self._placed + self._plan.orders
        return range(first, self._placed)

    def _requests(self, numbers: range) -> list[bytes]:
        """Return distinct bids that no order meets, in all markets in turn."""
        markets = len(self._world.tokens)
        offers = (
            (number, Offer(self._market_of(number), True, 1 + number // markets % PRICES))  # noqa: FBT003
            for number in numbers
        )
        return requests_of(self._world, self._exchange.path, offers, now_ms() // 1000)

    def _market_of(self, number: int) -> int:
        return number % len(self._world.tokens)

    def _markets_of(self, connection: int) -> list[int]:
        markets = len(self._world.tokens)
        return [(connection + step) % markets for step in range(self._plan.subscriptions)]


def _check_files(plan: StreamPlan) -> None:
    """Refuse more connections than this process and the exchange may open."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * plan.connections + FILES_BESIDE
    if wanted > most:
        raise BenchFailed(
            f"{plan.connections} connections need {wanted} open files, and this process may have"
            f" {most}; raise it with ulimit -n, or name fewer with --connections"
        )


def _table_of(measured: Sequence[StreamRound]) -> Table:
    names = ("round", "deliveries", "a second", "bare sockets", "ratio")
    table = Table(
        *names, "us", "in kernel", "us, bare", "lag p50 ms", "lag p99 ms", "cores of others"
    )
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.deliveries:,}",
            f"{shown.per_s:,.0f}",
            f"{shown.raw_per_s:,.0f}",
            f"{shown.ratio:.2f}",
            f"{shown.cpu_us:.1f}",
            f"{shown.kernel_us:.1f}",
            f"{shown.raw_cpu_us:.1f}",
            f"{shown.lag_p50_ms:.0f}",
            f"{shown.lag_p99_ms:.0f}",
            others_words(shown.others_cores),
        )
    return table
