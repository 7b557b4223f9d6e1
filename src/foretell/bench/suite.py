"""The benchmarks of `foretell bench all`: their sizes, and the figures that each measures."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

from rich.console import Console

from foretell.bench import match
from foretell.bench.book import BookPlan, run_bench_book
from foretell.bench.durable import run_bench_durable
from foretell.bench.failover import run_bench_failover
from foretell.bench.index import IndexPlan, run_bench_index
from foretell.bench.journal import run_bench_journal
from foretell.bench.latency import run_bench_latency
from foretell.bench.memory import MemoryPlan, run_bench_memory
from foretell.bench.order import run_bench_order
from foretell.bench.replay import run_bench_replay
from foretell.bench.rigs import figures
from foretell.bench.rigs.batches import BATCH_PLAN, BatchPlan, Measured
from foretell.bench.rigs.engines import installed_peers
from foretell.bench.rigs.figures import Measurement, e2e_at, journal_of, match_at
from foretell.bench.rigs.machine import undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan
from foretell.bench.settle import SettlePlan, run_bench_settle
from foretell.bench.ws import StreamPlan, run_bench_ws
from foretell.domain.errors.command import BenchFailed
from foretell.domain.errors.families import ForetellError

CONNECTIONS: Final = 32
CONNECTIONS_MANY: Final = 128
NEEDS_POSTGRES: Final = "needs a database without a journal: --postgres URL"


class Sizes(NamedTuple):
    """The sizes of all benchmarks: each as its own command has them by default."""

    rounds: int = 5
    order: OrderPlan = OrderPlan(5, 10_000, CONNECTIONS)
    latency: OrderPlan = OrderPlan(5, 2_000)
    durable: OrderPlan = OrderPlan(3, 5_000, CONNECTIONS)
    book: BookPlan = BookPlan(5, 200)
    streams: StreamPlan = StreamPlan(5)
    match_commands: int = 20_000
    depths: tuple[int, ...] = match.DEPTHS
    batches: BatchPlan = BATCH_PLAN
    replay_orders: int = 200_000
    replay_events: int = 1_000_000
    memory: MemoryPlan = MemoryPlan(200_000, 400_000, 300.0)
    lease_s: float = 3.0
    cycles: int = 5
    settle: SettlePlan = SettlePlan()
    orders_beside_per_s: int = 300
    indexing: IndexPlan = IndexPlan()
    postgres: str | None = None

    def with_rounds(self, rounds: int) -> "Sizes":
        """Return the sizes for this number of rounds of each benchmark that has rounds."""
        return self._replace(
            rounds=rounds,
            order=self.order._replace(rounds=rounds),
            latency=self.latency._replace(rounds=rounds),
            durable=self.durable._replace(rounds=rounds),
            book=self.book._replace(rounds=rounds),
            streams=self.streams._replace(rounds=rounds),
            settle=self.settle._replace(rounds=rounds),
        )


class BenchResult(NamedTuple):
    """The measurements of a benchmark, the steps of an order if it has them, or why it failed."""

    measurements: Sequence[Measurement] = ()
    step_ms: Sequence[tuple[str, float]] = ()
    failure: str = ""


class Benchmark(NamedTuple):
    """A benchmark with the figures that it measures.

    Where `is_watched` is false a database server or a chain does a part of the work, so the use of the machine by
    other programs does not count.
    """

    figures: tuple[str, ...]
    measure: Callable[[Sizes, Console], BenchResult]
    is_watched: bool = True


def measure(name: str, sizes: Sizes) -> BenchResult:
    """Run a benchmark by its name; it prints its own table."""
    console = Console()
    console.rule(name)
    try:
        return BENCHMARKS[name].measure(sizes, console)
    except (ForetellError, OSError) as error:
        console.print(f"failed: {error}", markup=False)
        return BenchResult(failure=str(error))


def _order(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(run_bench_order(sizes.order, console))


def _order_many(sizes: Sizes, console: Console) -> BenchResult:
    """Return the ratio alone: processor time is judged at fewer connections."""
    plan = sizes.order._replace(connections=CONNECTIONS_MANY)
    return BenchResult(run_bench_order(plan, console)[:1])


def _latency(sizes: Sizes, console: Console) -> BenchResult:
    found = run_bench_latency(sizes.latency, console)
    return BenchResult(found.measurements, tuple(found.ms_by_step.items()))


def _durable(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(run_bench_durable(sizes.durable, console))


def _book(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(run_bench_book(sizes.book, console))


def _ws(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult([run_bench_ws(sizes.streams, console).measurement()])


def _match(sizes: Sizes, console: Console) -> BenchResult:
    if not installed_peers():
        raise BenchFailed(match.HOW_TO_GET_PEERS)
    measured = match.run_bench_match(sizes.rounds, sizes.match_commands, console, sizes.depths)
    return BenchResult(measurements_of_match(measured))


def measurements_of_match(measured: Sequence[match.Speeds]) -> list[Measurement]:
    """Return the book and the engine against the best peer, and the engine against its own depth."""
    by_depth = {
        depth: undisturbed([each for each in measured if each.depth == depth])
        for depth in sorted({each.depth for each in measured})
    }
    found = [
        Measurement(
            match_at(depth),
            _median([each.ratio or 0.0 for each in speeds]),
            f"best peer: {_median([each.best_peer_per_s or 0.0 for each in speeds]):,.0f} operations/s",
        )
        for depth, speeds in by_depth.items()
    ]
    _, middle, deepest = by_depth.values()
    whole = _median([each.per_s[match.WHOLE] for each in middle])
    peer = _median([each.best_peer_per_s or 0.0 for each in middle])
    deep = _median([each.per_s[match.WHOLE] for each in deepest])
    return [
        *found,
        Measurement(figures.ENGINE, whole / peer, f"best peer: {peer:,.0f} operations/s"),
        Measurement(figures.DEPTH, deep / whole, f"{whole:,.0f} commands/s with fewer orders"),
    ]


def _journal(sizes: Sizes, console: Console) -> BenchResult:
    measured = run_bench_journal(sizes.rounds, console, sizes.batches)
    return BenchResult(measurements_of_journal(measured))


def measurements_of_journal(measured: Sequence[Measured]) -> list[Measurement]:
    """Return the time of a batch of each size against the bare sync."""
    found = []
    for batch in sorted({each.batch for each in measured}):
        of_size = undisturbed([each for each in measured if each.batch == batch])
        bare_ms = _median([each.bare_ms for each in of_size])
        ceiling = f"fdatasync of the same bytes: {bare_ms:.2f} ms"
        ratio = _median([each.ratio for each in of_size])
        found.append(Measurement(journal_of(batch), ratio, ceiling))
    return found


def _replay(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(
        run_bench_replay(sizes.rounds, sizes.replay_orders, sizes.replay_events, console)
    )


def _memory(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(run_bench_memory(sizes.memory, console))


def _failover(sizes: Sizes, console: Console) -> BenchResult:
    if sizes.postgres is None:
        return BenchResult()
    return BenchResult(run_bench_failover(sizes.postgres, sizes.lease_s, sizes.cycles, console))


def _settle(sizes: Sizes, console: Console) -> BenchResult:
    return BenchResult(run_bench_settle(sizes.settle, console))


def _settle_beside(sizes: Sizes, console: Console) -> BenchResult:
    plan = sizes.settle._replace(orders_per_s=sizes.orders_beside_per_s)
    return BenchResult(run_bench_settle(plan, console))


def _index(sizes: Sizes, console: Console) -> BenchResult:
    """Index into SQLite, which an installation has by default."""
    return BenchResult(run_bench_index(sizes.indexing, console))


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)


BENCHMARKS: Final[Mapping[str, Benchmark]] = MappingProxyType(
    {
        f"order, {CONNECTIONS} connections": Benchmark(
            (e2e_at(CONNECTIONS), figures.CPU_SERVING, figures.CPU_ALL), _order
        ),
        f"order, {CONNECTIONS_MANY} connections": Benchmark(
            (e2e_at(CONNECTIONS_MANY),), _order_many
        ),
        "latency": Benchmark((figures.LATENCY,), _latency),
        "durable": Benchmark((figures.DURABLE,), _durable),
        "book": Benchmark((figures.BOOK,), _book),
        "ws": Benchmark((figures.WS,), _ws),
        "match": Benchmark((*map(match_at, match.DEPTHS), figures.ENGINE, figures.DEPTH), _match),
        "journal": Benchmark(tuple(map(journal_of, BATCH_PLAN.sizes)), _journal),
        "replay": Benchmark((figures.READY, figures.REPLAY), _replay),
        "memory": Benchmark((figures.ORDER_BYTES, figures.DAY), _memory),
        "failover": Benchmark((figures.FAILOVER,), _failover, is_watched=False),
        "settle": Benchmark((figures.SETTLE,), _settle, is_watched=False),
        "settle beside orders": Benchmark(
            (figures.SETTLE_BESIDE,), _settle_beside, is_watched=False
        ),
        "index": Benchmark((figures.INDEX, figures.INDEX_MEMORY), _index, is_watched=False),
    }
)
