"""`foretell bench order --workers N --shards M`: orders a second by several processes (order-scale).

A fleet and an exchange in one process take turns, on the same machine and with the same client.
"""

import contextlib
import tempfile
from pathlib import Path

from rich.console import Console

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.fleet import Size, running_fleet
from foretell.bench.rigs.order_rounds import OrderPlan, Rounds, compare_pairs
from foretell.bench.rigs.world import make_world


def run_bench_scale(plan: OrderPlan, size: Size, url: str, console: Console) -> None:
    """Measure with a fleet and with one process, in turns, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with contextlib.ExitStack() as stack:
        folder_of_one, folder_of_fleet = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foretell-bench-")))
            for _ in range(2)
        )
        exchange = stack.enter_context(running_exchange(master_key, folder_of_one))
        fleet = stack.enter_context(running_fleet(world, folder_of_fleet, url, size))
        one = Rounds(plan, world, exchange, folder_of_one, console)
        several = Rounds(plan, world, fleet, folder_of_fleet, console)
        for rounds in (one, several):
            rounds.warm_up()
        console.print("each round twice: with the fleet, then with one process")
        compared = compare_pairs(several, one, plan.rounds)
    console.print(
        f"order-scale: {compared.ratio:.2f} orders a second by {size.workers} processes and {size.shards}"
        f" engines for each one with one process (median of {plan.rounds} pairs of rounds of"
        f" {plan.orders}, {plan.connections} connections)"
    )
