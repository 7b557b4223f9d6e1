"""`foretell bench match`: orders a second that the engine takes in memory, by the depth of the book.

No signature, network or disk: what is measured is `domain.fold.apply`. One order in four crosses,
and each resting order that is added or filled keeps the book at its depth.
"""

import time
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from foretell.app.chance import new_key
from foretell.cli.bench.stream import Stream
from foretell.cli.bench.world import World, funding_command, make_world, market_commands
from foretell.domain.commands import Command
from foretell.domain.fold import apply
from foretell.domain.state import Placement, State

DEPTHS: Final = (10, 1_000, 100_000)


class Speed(NamedTuple):
    """What was measured at a depth: orders resting, commands a second, fills."""

    depth: int
    commands_per_s: float
    fills: int


def run_bench_match(commands: int, console: Console) -> None:
    """Measure at each depth and print the ratio of the deepest to the middle one."""
    world = make_world(new_key())
    speeds = [measure(world, depth, commands) for depth in DEPTHS]
    table = Table("resting orders", "commands/s", "fills")
    for speed in speeds:
        table.add_row(f"{speed.depth:,}", f"{speed.commands_per_s:,.0f}", f"{speed.fills:,}")
    console.print(table)
    _, middle, deepest = speeds
    console.print(
        f"match-depth: {deepest.commands_per_s / middle.commands_per_s:.2f} of the commands a"
        f" second with {deepest.depth:,} resting orders that there are with {middle.depth:,}"
    )


def measure(world: World, depth: int, count: int) -> Speed:
    """Return how fast the engine takes this many commands while so many orders rest."""
    state = State()
    apply(state, market_commands(world, 0)[0])
    apply(state, funding_command(world, 0))
    stream = Stream(world, makers=1, markets=1).commands(depth)
    for _ in range(depth):
        apply(state, next(stream))
    commands: list[Command] = [next(stream) for _ in range(count)]
    started = time.perf_counter()
    outcomes = [apply(state, command) for command in commands]
    seconds = time.perf_counter() - started
    assert abs(len(state.live_orders) - depth) <= 1, "the book keeps its depth"
    placed = [one.result for one in outcomes if isinstance(one.result, Placement)]
    return Speed(depth, count / seconds, sum(len(placement.trade_ids) for placement in placed))
