"""`foretell bench match`: matching in memory, by the depth of the book (match, match-engine, match-depth).

Without signatures, network and disk. The whole engine is `domain.exchange.apply`: funds, trades, decisions
and the book. Peers have a book alone, so they are compared with our book alone: all do the same
operations in turns, and must report the same fills.
"""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.engines import Contender, OwnBook, WholeEngine, installed_peers
from foretell.bench.rigs.machine import disturbance, others_words, undisturbed, usage_with
from foretell.bench.rigs.operations import BookOperation, operations
from foretell.bench.rigs.world import make_world
from foretell.domain.errors.command import BenchFailed
from foretell.runtime.garbage_collection import settle_memory

DEPTHS: Final = (10, 1_000, 100_000)
TURN: Final = 1_000
"""Operations that each contender does before the next one does the same."""
WHOLE: Final = "engine"
BOOK: Final = "book"
HOW_TO_GET_PEERS: Final = "no peer is installed; get them with: make peers"


class Speeds(NamedTuple):
    """Operations in a second of processor time of each contender at a depth, in one round."""

    depth: int
    per_s: Mapping[str, float]
    fills: int
    others_cores: float

    @property
    def best_peer_per_s(self) -> float | None:
        """The speed of the fastest peer, None without a peer."""
        return max(
            (speed for name, speed in self.per_s.items() if name not in {WHOLE, BOOK}), default=None
        )

    @property
    def ratio(self) -> float | None:
        """The operations of our book for each one of the fastest peer."""
        return self._ratio_of(BOOK)

    @property
    def engine_ratio(self) -> float | None:
        """The commands of the whole engine for each operation of the fastest peer."""
        return self._ratio_of(WHOLE)

    def _ratio_of(self, name: str) -> float | None:
        best = self.best_peer_per_s
        return None if best is None else self.per_s[name] / best


class Field:
    """Contenders with books of the same depth, and the next operations on them."""

    def __init__(self, depth: int, contenders: Mapping[str, Contender]) -> None:
        self._depth = depth
        self._contenders = contenders
        self._operations: Iterator[BookOperation] = operations(depth)
        self._race(depth)

    def measure(self, count: int) -> Speeds:
        """Have each contender do the next operations, one contender after the other."""
        before = usage_with()
        per_s, fills = self._race(count)
        return Speeds(self._depth, per_s, fills, before.others_cores(usage_with()))

    def _race(self, count: int) -> tuple[dict[str, float], int]:
        """Return the operations a second of each, and how many fills there were."""
        seconds = dict.fromkeys(self._contenders, 0.0)
        fills = 0
        for start in range(0, count, TURN):
            batch = list(islice(self._operations, min(TURN, count - start)))
            fills_of_all = []
            for name, contender in self._contenders.items():
                prepared = contender.prepare(batch)
                started = time.thread_time()
                results = contender.run(prepared)
                seconds[name] += time.thread_time() - started
                fills_of_all.append(contender.fills(results))
                # Freed here, not when the next contender's results take the name: that one would
                # pay for it.
                del results
            for name, same in zip(self._contenders, fills_of_all, strict=True):
                if same != fills_of_all[0]:
                    raise BenchFailed(f"{name} reported other fills than the {WHOLE}")
            fills += len(fills_of_all[0])
        return {name: count / seconds[name] for name in seconds}, fills


def run_bench_match(
    rounds: int, commands: int, console: Console, depths: Sequence[int] = DEPTHS
) -> Sequence[Speeds]:
    """Measure at each depth, round after round, print the ratios, and return the speeds."""
    world = make_world(new_key())
    peers = installed_peers()
    fields = [
        Field(
            depth,
            {
                WHOLE: WholeEngine(world),
                BOOK: OwnBook(),
                **{name: make() for name, make in peers.items()},
            },
        )
        for depth in depths
    ]
    settle_memory()
    measured = [field.measure(commands) for _ in range(rounds) for field in fields]
    console.print(_table_of(measured))
    console.print(_depth_words(measured, depths))
    console.print(_peer_words(measured, depths) if peers else HOW_TO_GET_PEERS)
    if words := disturbance(measured):
        console.print(words)
    return measured


def _table_of(measured: Sequence[Speeds]) -> Table:
    names = list(measured[0].per_s)
    table = Table("resting orders", *(f"{name}/s" for name in names), "ratio", "fills")
    table.add_column("cores of others")
    for shown in sorted(measured, key=lambda each: each.depth):
        table.add_row(
            f"{shown.depth:,}",
            *(f"{shown.per_s[name]:,.0f}" for name in names),
            "-" if shown.ratio is None else f"{shown.ratio:.2f}",
            f"{shown.fills:,}",
            others_words(shown.others_cores),
        )
    return table


def _depth_words(measured: Sequence[Speeds], depths: Sequence[int]) -> str:
    _, middle, deepest = depths
    slower, faster = (
        statistics.median(shown.per_s[WHOLE] for shown in _counted(measured, depth))
        for depth in (deepest, middle)
    )
    return (
        f"match-depth: {slower / faster:.2f} of the commands a second of the engine with {deepest:,}"
        f" resting orders that there are with {middle:,}"
    )


def _peer_words(measured: Sequence[Speeds], depths: Sequence[int]) -> str:
    counted = {depth: _counted(measured, depth) for depth in depths}
    ratios = ", ".join(
        f"{_median([shown.ratio for shown in counted[depth]]):.2f} ({depth:,} resting)"
        for depth in depths
    )
    _, middle, _ = depths
    engine = _median([shown.engine_ratio for shown in counted[middle]])
    return (
        f"match: {ratios} operations of our book and its matching for each one of the best peer,"
        f" with identical fills\n"
        f"match-engine: {engine:.2f} commands of the whole engine with {middle:,} resting orders for"
        " each operation of the best peer"
    )


def _median(ratios: Sequence[float | None]) -> float:
    return statistics.median(ratio for ratio in ratios if ratio is not None)


def _counted(measured: Sequence[Speeds], depth: int) -> Sequence[Speeds]:
    return undisturbed([shown for shown in measured if shown.depth == depth])
