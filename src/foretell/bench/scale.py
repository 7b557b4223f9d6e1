"""`foretell bench order --workers N --shards M`: what more processes bring (order-scale).

A fleet and an exchange in one process take turns, on the same machine and with the same client.
"""

import contextlib
import tempfile
from pathlib import Path

from rich.console import Console

from foretell.app.clock_and_ids import new_key
from foretell.bench.order import Rounds, tell_pairs
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.fleet import Size, running_fleet
from foretell.bench.rigs.world import make_world


def run_bench_scale(
    rounds: int, orders: int, connections: int, size: Size, url: str, console: Console
) -> None:
    """Measure with a fleet and with one process, in turns, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with contextlib.ExitStack() as stack:
        ours, theirs = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="foretell-bench-")))
            for _ in range(2)
        )
        exchange = stack.enter_context(running_exchange(master_key, ours))
        fleet = stack.enter_context(running_fleet(world, theirs, url, size))
        alone = Rounds(world, exchange, ours, console)
        many = Rounds(world, fleet, theirs, console)
        for each in (alone, many):
            each.warm_up(connections)
        console.print("each round twice: with the fleet, then with one process")
        ratio = tell_pairs(many, alone, rounds, orders, connections)
    console.print(
        f"order-scale: {ratio:.2f} orders a second by {size.workers} processes and {size.shards}"
        f" engines for each one by one process (median of {rounds} pairs of rounds of {orders},"
        f" {connections} connections)"
    )
