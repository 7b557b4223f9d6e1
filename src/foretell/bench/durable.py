"""`foretell bench durable`: what it costs that nothing is answered before it is on disk (durable-cost).

Two exchanges take turns, one of which does not wait for its disk. Nobody can ask an installation for
that: it is a difference of this benchmark alone.
"""

import contextlib
import tempfile
from pathlib import Path

from rich.console import Console

from foretell.app.clock_and_ids import new_key
from foretell.bench.order import Rounds, tell_pairs
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.world import make_world


def run_bench_durable(rounds: int, orders: int, connections: int, console: Console) -> None:
    """Measure with and without waiting for the disk, in turns, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with contextlib.ExitStack() as stack:
        placing = []
        for is_durable in (True, False):
            name = stack.enter_context(tempfile.TemporaryDirectory(prefix="foretell-bench-"))
            folder = Path(name)
            exchange = stack.enter_context(
                running_exchange(master_key, folder, is_durable=is_durable)
            )
            placing.append(Rounds(world, exchange, folder, console))
            placing[-1].warm_up(connections)
        durable, loose = placing
        console.print("each round twice: waiting for the disk, then not")
        ratio = tell_pairs(durable, loose, rounds, orders, connections)
    console.print(
        f"durable-cost: {ratio:.2f} of the orders a second that there would be without waiting for"
        f" the disk (median of {rounds} pairs of rounds of {orders}, {connections} connections)"
    )
