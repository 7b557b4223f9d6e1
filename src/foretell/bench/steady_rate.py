"""`foretell bench latency --rate 0.7`: latencies at a steady part of the highest rate (order-open-loop).

Orders are sent when they are due, whether or not earlier ones were answered, as independent clients do.
The highest rate is measured just before each round.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.machine import disturbance, others_words, undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan, Rounds
from foretell.bench.rigs.world import make_world

CONNECTIONS: Final = 32


class PacedRound(NamedTuple):
    """The figures of a round at a steady rate."""

    most_per_s: float
    paced_per_s: float
    p50_ms: float
    p99_ms: float
    others_cores: float

    @property
    def ratio(self) -> float:
        """Time of a slow order for each of an ordinary one: p99 over p50."""
        return self.p99_ms / self.p50_ms


def run_bench_steady_rate(plan: OrderPlan, rate: float, console: Console) -> None:
    """Measure at a part of the highest rate, round after round, and print the ratio."""
    plan = plan._replace(connections=CONNECTIONS)
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            rounds = Rounds(plan, world, exchange, folder, console)
            rounds.warm_up()
            measured = [_measure(rounds, rate) for _ in range(plan.rounds)]
    console.print(_table_of(measured))
    counted = undisturbed(measured)
    ratio, p50_ms = (
        statistics.median(figures)
        for figures in zip(*((one.ratio, one.p50_ms) for one in counted), strict=True)
    )
    console.print(
        f"order-open-loop: p99 is {ratio:.1f} times p50 of {p50_ms:.2f} ms at {rate:g} of the maximum rate"
        f" (median of {len(counted)} rounds of {plan.orders}, {plan.connections} connections)"
    )
    if words := disturbance(measured):
        console.print(words)


def _measure(rounds: Rounds, rate: float) -> PacedRound:
    most = rounds.measure()
    paced = rounds.measure(rate * most.orders_per_s)
    return PacedRound(
        most.orders_per_s,
        paced.orders_per_s,
        paced.p50_ms,
        paced.p99_ms,
        max(most.others_cores, paced.others_cores),
    )


def _table_of(measured: list[PacedRound]) -> Table:
    table = Table("round", "orders/s at most", "orders/s", "p50 ms", "p99 ms", "p99 / p50")
    table.add_column("cores of others")
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.most_per_s:,.0f}",
            f"{shown.paced_per_s:,.0f}",
            f"{shown.p50_ms:.2f}",
            f"{shown.p99_ms:.2f}",
            f"{shown.ratio:.2f}",
            others_words(shown.others_cores),
        )
    return table
