"""`foretell bench order`: durable, verified, matched orders a second over HTTP (order-e2e).

The ceiling is what one core can do of the dearest step, recovering signers, measured before each
round while the exchange is idle. The figure is the median of the rounds' ratios.
"""

import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.bench.rigs.cpu_profile import Spent, spent_by, spent_words
from foretell.bench.rigs.exchange import Exchange, running_exchange
from foretell.bench.rigs.load import make_requests, send_all, send_paced
from foretell.bench.rigs.machine import (
    disturbance,
    others_words,
    recoveries_per_s,
    sync_s,
    undisturbed,
    usage_with,
)
from foretell.bench.rigs.world import World, make_world

WARM_UP_ORDERS: Final = 500


class Round(NamedTuple):
    """What one round showed, and the machine's ceilings just before it."""

    orders_per_s: float
    recoveries_per_s: float
    p50_ms: float
    p99_ms: float
    sync_ms: float
    others_cores: float
    spent: Spent

    @property
    def ratio(self) -> float:
        """Orders for each recovery that one core could have done."""
        return self.orders_per_s / self.recoveries_per_s


class Rounds:
    """Rounds of orders on one exchange, one after the other."""

    def __init__(self, world: World, exchange: Exchange, folder: Path, console: Console) -> None:
        self._world = world
        self._exchange = exchange
        self._folder = folder
        self.console = console
        self._salt = 0

    def warm_up(self, connections: int) -> None:
        """Place some orders that are not counted."""
        self.console.print(f"signing {WARM_UP_ORDERS} orders to warm up")
        uvloop.run(send_all(self._exchange.port, self._sign(WARM_UP_ORDERS), connections))

    def measure(self, orders: int, connections: int, per_s: float | None = None) -> Round:
        """Sign orders, measure the ceilings, and place the orders, so many a second if it is said."""
        self.console.print(f"signing {orders} orders, then placing them")
        requests = self._sign(orders)
        recoveries, sync = recoveries_per_s(), sync_s(self._folder)
        before, spent = usage_with(*self._exchange.pids), spent_by(self._exchange.pids)
        port = self._exchange.port
        answers = uvloop.run(
            send_all(port, requests, connections)
            if per_s is None
            else send_paced(port, requests, connections, per_s)
        )
        quantiles = statistics.quantiles(answers.latencies_s, n=100)
        return Round(
            orders_per_s=orders / answers.seconds,
            recoveries_per_s=recoveries,
            p50_ms=quantiles[49] * 1e3,
            p99_ms=quantiles[98] * 1e3,
            sync_ms=sync * 1e3,
            others_cores=before.others_cores(usage_with(*self._exchange.pids)),
            spent=spent.until(spent_by(self._exchange.pids)).in_recoveries(orders, recoveries),
        )

    def _sign(self, orders: int) -> list[bytes]:
        first, self._salt = self._salt, self._salt + orders
        path = self._exchange.path
        return make_requests(self._world, path, orders, first, now_ms() // 1000)


def run_bench_order(rounds: int, orders: int, connections: int, console: Console) -> None:
    """Measure, round after round, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            placing = Rounds(world, exchange, folder, console)
            placing.warm_up(connections)
            measured = [placing.measure(orders, connections) for _ in range(rounds)]
    console.print(table_of(measured))
    counted = undisturbed(measured)
    ratio, p50, p99 = (
        statistics.median(figures)
        for figures in zip(*((one.ratio, one.p50_ms, one.p99_ms) for one in counted), strict=True)
    )
    console.print(
        f"order-e2e: {ratio:.2f} durable, verified, matched orders for each signer recovery that"
        f" one core does; p50 {p50:.1f} ms, p99 {p99:.1f} ms"
        f" (median of {len(counted)} rounds of {orders}, {connections} connections)"
    )
    console.print(spent_words([one.spent for one in counted]))
    if words := disturbance(measured):
        console.print(words)


def tell_pairs(first: Rounds, second: Rounds, rounds: int, orders: int, connections: int) -> float:
    """Measure in turns, print all rounds, and return how many times as many orders the first took.

    Rounds come in pairs, so those that others disturbed count, too.
    """
    pairs = [
        (first.measure(orders, connections), second.measure(orders, connections))
        for _ in range(rounds)
    ]
    measured = [one for pair in pairs for one in pair]
    first.console.print(table_of(measured))
    if words := disturbance(measured):
        first.console.print(words.replace(": not counted", ", and are counted"))
    return statistics.median(one.orders_per_s / other.orders_per_s for one, other in pairs)


def table_of(measured: Sequence[Round]) -> Table:
    """Return the rounds as a table."""
    columns = ("round", "orders/s", "recoveries/s, one core", "ratio", "p50 ms", "p99 ms")
    table = Table(*columns, "fdatasync p50 ms", "cores of others")
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.orders_per_s:,.0f}",
            f"{shown.recoveries_per_s:,.0f}",
            f"{shown.ratio:.2f}",
            f"{shown.p50_ms:.1f}",
            f"{shown.p99_ms:.1f}",
            f"{shown.sync_ms:.2f}",
            others_words(shown.others_cores),
        )
    return table
