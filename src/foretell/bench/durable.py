"""`foretell bench durable`: the cost of answering only what is on disk (durable-cost).

Two exchanges take turns, one of which does not wait for its disk. No setting of an installation does
that: it exists in this benchmark alone.
"""

import contextlib
import tempfile
from pathlib import Path

from rich.console import Console

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.figures import DURABLE, Measurement
from foretell.bench.rigs.order_rounds import OrderPlan, Rounds, compare_pairs
from foretell.bench.rigs.world import make_world


def run_bench_durable(plan: OrderPlan, console: Console) -> list[Measurement]:
    """Measure with and without waiting for the disk, in turns, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with contextlib.ExitStack() as stack:
        rounds = []
        for is_durable in (True, False):
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="foretell-bench-"))
            folder = Path(name)
            exchange = stack.enter_context(
                running_exchange(master_key, folder, is_durable=is_durable)
            )
            rounds.append(Rounds(plan, world, exchange, folder, console))
            rounds[-1].warm_up()
        durable, not_durable = rounds
        console.print("each round twice: waiting for the disk, then not")
        compared = compare_pairs(durable, not_durable, plan.rounds)
    console.print(
        f"durable-cost: {compared.ratio:.2f} of the orders a second that there would be without waiting for"
        f" the disk (median of {plan.rounds} pairs of rounds of {plan.orders},"
        f" {plan.connections} connections)"
    )
    ceiling = f"{compared.second_per_s:,.0f} orders/s without waiting for the disk"
    return [Measurement(DURABLE, compared.ratio, ceiling)]
