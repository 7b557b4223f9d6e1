"""`foretell bench match`: orders a second that the engine takes in memory, by the depth of the book.

No signature, network or disk: what is measured is `domain.fold.apply`. One order in four crosses,
and each resting order that is added or filled keeps the book at its depth.
"""

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from foretell.app.chance import new_key
from foretell.cli.bench.load import make_order
from foretell.cli.bench.world import (
    TICKS_PER_ONE,
    World,
    funding_command,
    make_world,
    market_commands,
)
from foretell.domain.commands import CancelOrders, Command, PlaceOrder
from foretell.domain.fold import apply
from foretell.domain.hexadecimal import keccak256, word_of
from foretell.domain.order import OrderTerms, OrderType, Side, SignedOrder
from foretell.domain.state import Placement, State

DEPTHS: Final = (10, 1_000, 100_000)
SIZE_UNITS: Final = 10_000_000
"""Of every order: large enough to be whole lots at every price."""


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
    stream = _stream(world, depth)
    for _ in range(depth):
        apply(state, next(stream))
    commands: list[Command] = [next(stream) for _ in range(count)]
    started = time.perf_counter()
    outcomes = [apply(state, command) for command in commands]
    seconds = time.perf_counter() - started
    assert abs(len(state.live_orders) - depth) <= 1, "the book keeps its depth"
    placed = [one.result for one in outcomes if isinstance(one.result, Placement)]
    return Speed(depth, count / seconds, sum(len(placement.trade_ids) for placement in placed))


def _stream(world: World, depth: int) -> Iterator[Command]:
    """Yield orders that fill a book to its depth, then rounds of four that leave it as deep.

    A round takes the oldest order out, puts a new one in, fills the best bid and replaces that.
    """
    template = make_order(world, world.users[0], world.deployment.separators(), 0)
    resting = [
        _place(world, template, number, 1 + number % 40, Side.BUY) for number in range(depth)
    ]
    yield from resting
    number, oldest = depth, 0
    while True:
        yield CancelOrders(0, world.users[0].address, (resting[oldest % depth].order_id,))
        resting[oldest % depth] = _place(world, template, number, 1 + number % 40, Side.BUY)
        yield resting[oldest % depth]
        yield _place(world, template, number + 1, 41, Side.BUY)
        yield _place(world, template, number + 2, 41, Side.SELL, user=1)
        number, oldest = number + 3, oldest + 1


def _place(
    world: World, template: SignedOrder, number: int, price: int, side: Side, *, user: int = 0
) -> PlaceOrder:
    maker = world.users[user].address
    cost = SIZE_UNITS * price // TICKS_PER_ONE
    amounts = (cost, SIZE_UNITS) if side is Side.BUY else (SIZE_UNITS, cost)
    order = msgspec.structs.replace(
        template,
        salt=str(number),
        maker=maker,
        signer=maker,
        side=side,
        maker_amount=amounts[0],
        taker_amount=amounts[1],
    )
    return PlaceOrder(
        at_ms=0,
        order_id=word_of(keccak256(b"%d" % number)),
        order=order,
        order_type=OrderType.GTC,
        is_post_only=False,
        owner="bench",
        condition_id=world.conditions[0],
        is_yes=True,
        terms=OrderTerms(price, TICKS_PER_ONE, SIZE_UNITS, None),
    )
