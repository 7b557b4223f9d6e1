"""`foretell bench order`: durable, verified, matched orders a second over HTTP (order-e2e).

The ceiling is what one core can do of the dearest step, recovering signers, measured before each
round while the exchange is idle. The figure is the median of the rounds' ratios.
"""

import statistics
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.chance import new_key, now_ms
from foretell.app.installation import PREFIX_BY_ROLE, Role
from foretell.cli.bench.exchange import running_exchange
from foretell.cli.bench.load import Answers, make_requests, send_all
from foretell.cli.bench.world import World, make_world
from foretell.domain.hexadecimal import keccak256
from foretell.domain.typed_data import recover_signer, sign_digest

RECOVERIES: Final = 3_000
WARM_UP_ORDERS: Final = 500


class Round(NamedTuple):
    """What one round showed."""

    orders_per_s: float
    recoveries_per_s: float
    p50_ms: float
    p99_ms: float

    @property
    def ratio(self) -> float:
        """Orders for each recovery that one core could have done."""
        return self.orders_per_s / self.recoveries_per_s


def run_bench_order(rounds: int, orders: int, connections: int, console: Console) -> None:
    """Measure, round after round, and print the ratio."""
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as folder:
        measured = _measure(world, Path(folder), rounds, orders, connections, console)
    table = Table("round", "orders/s", "recoveries/s, one core", "ratio", "p50 ms", "p99 ms")
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.orders_per_s:,.0f}",
            f"{shown.recoveries_per_s:,.0f}",
            f"{shown.ratio:.2f}",
            f"{shown.p50_ms:.1f}",
            f"{shown.p99_ms:.1f}",
        )
    console.print(table)
    ratio = statistics.median(shown.ratio for shown in measured)
    console.print(
        f"order-e2e: {ratio:.2f} durable, verified, matched orders for each signer recovery that"
        f" one core does (median of {rounds} rounds of {orders}, {connections} connections)"
    )


def _measure(
    world: World, folder: Path, rounds: int, orders: int, connections: int, console: Console
) -> list[Round]:
    path = PREFIX_BY_ROLE[Role.TRADING]
    measured = []
    with running_exchange(world.master_key, folder) as port:
        console.print(f"signing {WARM_UP_ORDERS} orders to warm up")
        warm = make_requests(world, path, WARM_UP_ORDERS, 0, now_ms() // 1000)
        uvloop.run(send_all(port, warm, connections))
        for number in range(rounds):
            first = WARM_UP_ORDERS + number * orders
            console.print(f"round {number + 1}: signing {orders} orders, then placing them")
            requests = make_requests(world, path, orders, first, now_ms() // 1000)
            recoveries = recoveries_per_s()
            answers = uvloop.run(send_all(port, requests, connections))
            measured.append(_round(orders, recoveries, answers))
    return measured


def _round(orders: int, recoveries: float, answers: Answers) -> Round:
    quantiles = statistics.quantiles(answers.latencies_s, n=100)
    return Round(orders / answers.seconds, recoveries, quantiles[49] * 1e3, quantiles[98] * 1e3)


def recoveries_per_s() -> float:
    """Return how many signers one core recovers in a second, now."""
    key, digest = keccak256(b"bench"), keccak256(b"order")
    signature = sign_digest(digest, key)
    started = time.perf_counter()
    for _ in range(RECOVERIES):
        recover_signer(digest, signature)
    return RECOVERIES / (time.perf_counter() - started)
