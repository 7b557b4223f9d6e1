"""`foretell bench memory`: the memory of a resting order, and of a server over a day of orders (memory).

The engine of a server places, matches and cancels orders as fast as it can, while their times are spread over a
day. Every order expires after an hour. So the number of resting orders hardly changes, and the memory of the
server's processes should not grow.
"""

import asyncio
import gc
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Final, NamedTuple

import msgspec
import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key
from foretell.bench.replay import Run, in_new_process
from foretell.bench.rigs.command_stream import CommandStream
from foretell.bench.rigs.figures import DAY, ORDER_BYTES, Measurement
from foretell.bench.rigs.journal_fixture import with_blocks
from foretell.bench.rigs.machine import family
from foretell.bench.rigs.operations import BEST_ASK, BEST_BID, BookOperation
from foretell.bench.rigs.startup import resident_bytes
from foretell.bench.rigs.trading_alone import TradingAlone, trading_alone
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import Command, PlaceOrder, decode_command, encode_command
from foretell.domain.exchange.order import OrderType
from foretell.domain.exchange.state import State
from foretell.domain.values.sharding import ALONE
from foretell.runtime.garbage_collection import settle_memory
from foretell.store.trading.trades import load_sequence

DAY_S: Final = 86_400
LIFE_S: Final = 3_600
PARTS: Final = 10
TRADES_PER_BLOCK: Final = 1_000
SUBMITTED_AT_ONCE: Final = 500
TABLES_LAG_MAX: Final = 10_000
"""The commands that the tables may be behind the engine: a server under this load would be as far behind."""
TABLES_DEADLINE_S: Final = 60.0
TABLES_LOOK_S: Final = 0.05
_NOT_KEPT: Final = (type, ModuleType, FunctionType)


class MemoryPlan(NamedTuple):
    """Resting orders whose memory is measured; commands of a day, the time that it may take, its resting orders.

    The commands before the day fill what an engine keeps of past orders up to a limit. A day that takes too long ends
    early.
    """

    orders: int
    commands: int
    seconds: float
    depth: int = 5_000
    warm_up_commands: int = 200_000


class OrderBytes(NamedTuple):
    """Bytes for each resting order: growth of the process, and sizes of the objects."""

    resident: float
    sized: float


class DayPart(NamedTuple):
    """The end of a tenth: its hour, commands until then, resting orders, the memory of all processes."""

    hour: float
    commands: int
    resting: int
    resident_bytes: int


def run_bench_memory(
    plan: MemoryPlan, console: Console, run: Run = in_new_process
) -> list[Measurement]:
    """Measure both in new processes, and print them."""
    order: OrderBytes = run(order_bytes, plan.orders)
    console.print(
        f"memory of a resting order: {order.resident:,.0f} bytes by the growth of the process,"
        f" {order.sized:,.0f} by the sizes of its objects ({plan.orders:,} orders)"
    )
    console.print(f"a day of {plan.commands:,} commands, in {plan.seconds:g} s at most")
    parts: Sequence[DayPart] = run(day_of_orders, plan)
    console.print(_table_of(parts))
    first, last = parts[0].resident_bytes, parts[-1].resident_bytes
    growth = last / first
    console.print(
        f"memory of a day: {growth:.2f} times the memory after the first tenth, with"
        f" {parts[-1].commands - parts[0].commands:,} commands since ({parts[-1].hour:.1f} hours)"
    )
    return [
        Measurement(ORDER_BYTES, order.resident, f"{order.sized:,.0f} B in objects"),
        Measurement(DAY, growth, f"{first / 1e6:,.0f} MB after the first tenth"),
    ]


def order_bytes(orders: int) -> OrderBytes:
    """Return the bytes of a resting order, with its place in the book and everything that the engine keeps of it.

    The growth is that by the second half of the orders, because an engine keeps more of its newest orders.
    """
    world = make_world(new_key())
    state, stream = State(), CommandStream(world, len(world.conditions))
    for command in _opening(world, 0):
        apply(state, command)
    sized_before, half = sized_bytes(state), orders // 2
    _rest(state, stream, range(half))
    gc.collect()
    resident_before = resident_bytes()
    _rest(state, stream, range(half, orders))
    gc.collect()
    resident = (resident_bytes() - resident_before) / (orders - half)
    assert len(state.live_orders) == orders
    return OrderBytes(resident, (sized_bytes(state) - sized_before) / orders)


def _opening(world: World, at_ms: int) -> list[Command]:
    return [*market_commands(world, at_ms), funding_command(world, at_ms)]


def _rest(state: State, stream: CommandStream, numbers: range) -> None:
    """Rest an order for each number, on both sides of every market in turn.

    A command is decoded, as those of clients are, so that it shares no text with another one.
    """
    markets = stream.markets
    for number in numbers:
        market, turn = number % markets, number // markets
        distance = 1 + turn // 2 * 7 % (BEST_BID - 1)
        is_bid = turn % 2 == 0
        price = BEST_BID - distance if is_bid else BEST_ASK + distance
        operation = BookOperation(turn, is_cancel=False, is_bid=is_bid, price_ticks=price, lots=1)
        apply(state, decode_command(encode_command(stream.command(market, operation))))


def sized_bytes(root: object) -> int:
    """Return the sizes of all objects that an object leads to, without code."""
    seen: set[int] = set()
    found, total = [root], 0
    while found:
        one = found.pop()
        if id(one) not in seen and not isinstance(one, _NOT_KEPT):
            seen.add(id(one))
            total += sys.getsizeof(one)
            found += gc.get_referents(one)
    return total


def day_of_orders(plan: MemoryPlan) -> list[DayPart]:
    """Run a server for a day of orders, and return its memory after each tenth."""
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        return uvloop.run(_run_day(plan, Path(name)))


async def _run_day(plan: MemoryPlan, folder: Path) -> list[DayPart]:
    master_key = new_key()
    world = make_world(master_key)
    async with trading_alone(world.deployment, master_key, folder) as alone:
        for command in _opening(world, alone.engine.clock_ms()):
            await alone.engine.submit(command)
        day = _Day(world, alone, plan)
        await day.warm_up()
        settle_memory()
        return [await day.pass_tenth() for _ in range(PARTS)]


class _Day:
    """A day that passes by commands, and begins now."""

    def __init__(self, world: World, alone: TradingAlone, plan: MemoryPlan) -> None:
        self._alone = alone
        self._plan = plan
        stream = CommandStream(world, len(world.conditions)).commands(plan.depth)
        self._commands = with_blocks(stream, TRADES_PER_BLOCK)
        self._began_ms = alone.engine.clock_ms()
        self._submitted = 0

    async def warm_up(self) -> None:
        """Submit commands before the day."""
        for _ in range(0, self._plan.warm_up_commands, SUBMITTED_AT_ONCE):
            await self._submit_some(self._began_ms)

    async def pass_tenth(self) -> DayPart:
        """Submit the commands of a tenth, as far as its time allows."""
        plan, give_up_at_s = self._plan, time.monotonic() + self._plan.seconds / PARTS
        until = self._submitted + plan.commands // PARTS
        while self._submitted < until and time.monotonic() < give_up_at_s:
            self._submitted += SUBMITTED_AT_ONCE
            await self._submit_some(self._began_ms + int(self._passed_s * 1000))
        resting = len(self._alone.engine.state.live_orders)
        resident = sum(map(resident_bytes, family(os.getpid())))
        return DayPart(self._passed_s / 3600, self._submitted, resting, resident)

    @property
    def _passed_s(self) -> float:
        return self._submitted / self._plan.commands * DAY_S

    async def _submit_some(self, at_ms: int) -> None:
        """Submit commands together, and wait for the tables if they are far behind."""
        await asyncio.gather(*map(self._alone.engine.submit, self._dated(at_ms)))
        give_up_at_s = time.monotonic() + TABLES_DEADLINE_S
        while await self._tables_lag() > TABLES_LAG_MAX:
            if time.monotonic() > give_up_at_s:
                raise BenchFailed(f"the tables are more than {TABLES_LAG_MAX} commands behind")
            await asyncio.sleep(TABLES_LOOK_S)

    async def _tables_lag(self) -> int:
        async with self._alone.database.reading() as tx:
            return self._alone.engine.sequence - await load_sequence(tx, ALONE.name)

    def _dated(self, at_ms: int) -> Iterator[Command]:
        """Yield commands at this time; orders expire after an hour."""
        for command in islice(self._commands, SUBMITTED_AT_ONCE):
            dated = msgspec.structs.replace(command, at_ms=at_ms)
            if isinstance(dated, PlaceOrder):
                expiring = msgspec.structs.replace(dated.order, expiration_s=at_ms // 1000 + LIFE_S)
                dated = msgspec.structs.replace(dated, order=expiring, order_type=OrderType.GTD)
            yield dated


def _table_of(parts: Sequence[DayPart]) -> Table:
    table = Table("hours", "commands", "resting orders", "resident MB")
    for part in parts:
        table.add_row(
            f"{part.hour:.1f}",
            f"{part.commands:,}",
            f"{part.resting:,}",
            f"{part.resident_bytes / 1e6:,.1f}",
        )
    return table
