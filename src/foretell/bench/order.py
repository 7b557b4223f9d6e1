"""`foretell bench order`: durable, verified, matched orders a second over HTTP (order-e2e).

The figure is the median of the rounds' ratios to the ceiling, which is the signers that one core recovers.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Final

from rich.console import Console

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.cpu_profile import median_time, processor_time_words
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.figures import CPU_ALL, CPU_SERVING, Measurement, e2e_at
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan, Rounds, table_of
from foretell.bench.rigs.world import make_world

ONE_RECOVERY: Final = "1 is one signer recovery"


def run_bench_order(plan: OrderPlan, console: Console) -> list[Measurement]:
    """Measure round after round, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            rounds = Rounds(plan, world, exchange, folder, console)
            rounds.warm_up()
            measured = [rounds.measure() for _ in range(plan.rounds)]
    console.print(table_of(measured))
    counted = undisturbed(measured)
    ratio, p50, p99 = (
        statistics.median(figures)
        for figures in zip(*((one.ratio, one.p50_ms, one.p99_ms) for one in counted), strict=True)
    )
    console.print(
        f"order-e2e: {ratio:.2f} durable, verified, matched orders for each signer recovery that"
        f" one core does; p50 {p50:.1f} ms, p99 {p99:.1f} ms"
        f" (median of {len(counted)} rounds of {plan.orders}, {plan.connections} connections)"
    )
    spent = median_time([one.spent for one in counted])
    console.print(processor_time_words(spent))
    if words := disturbance(measured):
        console.print(words)
    recoveries_per_s = statistics.median(one.recoveries_per_s for one in counted)
    ceiling = f"{recoveries_per_s:,.0f} recoveries/s on one core"
    return [
        Measurement(e2e_at(plan.connections), ratio, ceiling),
        Measurement(CPU_SERVING, spent.serving_s, ONE_RECOVERY),
        Measurement(CPU_ALL, spent.all_s, ONE_RECOVERY),
    ]
