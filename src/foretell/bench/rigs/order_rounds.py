"""Rounds of orders on an exchange, shared by all benchmarks that place orders over HTTP.

The ceiling of a round is how many signers one core recovers in a second, because recovery is the most
expensive step of an order. It is measured just before the round, while the exchange is idle.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.cpu_profile import ProcessorTime, processor_time_of
from foretell.bench.rigs.exchange import Exchange
from foretell.bench.rigs.load import make_requests, send_all, send_paced
from foretell.bench.rigs.machine import (
    RECOVERIES,
    SYNCS,
    disturbance,
    others_words,
    recovery_speed,
    sync_s,
    usage_with,
)
from foretell.bench.rigs.world import World


class OrderPlan(NamedTuple):
    """Rounds, orders of each and kept connections; then orders to warm up and samples of the machine."""

    rounds: int
    orders: int
    connections: int = 1
    warm_up_orders: int = 500
    recoveries: int = RECOVERIES
    syncs: int = SYNCS


class Round(NamedTuple):
    """The figures of one round, and the ceilings of the machine just before it."""

    orders_per_s: float
    recoveries_per_s: float
    p50_ms: float
    p99_ms: float
    sync_ms: float
    others_cores: float
    spent: ProcessorTime

    @property
    def ratio(self) -> float:
        """Orders for each recovery that one core could have done."""
        return self.orders_per_s / self.recoveries_per_s


class Rounds:
    """Rounds of orders on one exchange, one after the other."""

    def __init__(
        self, plan: OrderPlan, world: World, exchange: Exchange, folder: Path, console: Console
    ) -> None:
        self._plan = plan
        self._world = world
        self._exchange = exchange
        self._folder = folder
        self.console = console
        self._salt = 0

    def warm_up(self) -> None:
        """Place some orders that are not counted."""
        plan = self._plan
        self.console.print(f"signing {plan.warm_up_orders} orders to warm up")
        requests = self._sign(plan.warm_up_orders)
        uvloop.run(send_all(self._exchange.port, requests, plan.connections))

    def measure(self, per_s: float | None = None) -> Round:
        """Sign orders, measure the ceilings, and place the orders, at a rate if one is given."""
        plan, pids = self._plan, self._exchange.pids
        self.console.print(f"signing {plan.orders} orders, then placing them")
        requests = self._sign(plan.orders)
        recovery = recovery_speed(plan.recoveries)
        sync_ms = self.sync_ms()
        before, spent = usage_with(*pids), processor_time_of(pids)
        port = self._exchange.port
        answers = uvloop.run(
            send_all(port, requests, plan.connections)
            if per_s is None
            else send_paced(port, requests, plan.connections, per_s)
        )
        quantiles = statistics.quantiles(answers.latencies_s, n=100)
        return Round(
            orders_per_s=plan.orders / answers.seconds,
            recoveries_per_s=recovery.per_s,
            p50_ms=quantiles[49] * 1e3,
            p99_ms=quantiles[98] * 1e3,
            sync_ms=sync_ms,
            others_cores=before.others_cores(usage_with(*pids)),
            spent=spent.until(processor_time_of(pids)).in_recoveries(
                plan.orders, recovery.per_cpu_s
            ),
        )

    def sync_ms(self) -> float:
        """Return the median time until a record on the journal's disk is durable, now."""
        return sync_s(self._folder, self._plan.syncs) * 1e3

    def echo_ms(self, requests: int) -> float:
        """Return the median time of a response to an order by a server that does nothing but echo it."""
        answers = uvloop.run(send_all(self._exchange.echo_port, self._sign(requests), 1))
        return statistics.median(answers.latencies_s) * 1e3

    def _sign(self, orders: int) -> list[bytes]:
        first, self._salt = self._salt, self._salt + orders
        path = self._exchange.path
        return make_requests(self._world, path, orders, first, now_ms() // 1000)


class Compared(NamedTuple):
    """The median ratio of two exchanges' orders a second, and those of the second."""

    ratio: float
    second_per_s: float


def compare_pairs(first: Rounds, second: Rounds, rounds: int) -> Compared:
    """Measure both in turns, print all rounds, and return the median ratio of their orders a second.

    Rounds come in pairs, so those that other programs disturbed are counted, too.
    """
    pairs = [(first.measure(), second.measure()) for _ in range(rounds)]
    measured = [one for pair in pairs for one in pair]
    first.console.print(table_of(measured))
    if words := disturbance(measured):
        first.console.print(words.replace(": not counted", ", and are counted"))
    return Compared(
        statistics.median(one.orders_per_s / other.orders_per_s for one, other in pairs),
        statistics.median(other.orders_per_s for _, other in pairs),
    )


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
