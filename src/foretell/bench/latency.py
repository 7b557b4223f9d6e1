"""`foretell bench latency`: the time of one order on an idle exchange (order-latency).

The floor is the sum of three: the steps of an order without the network, one sync of the journal's disk, and one
response by a server on the same event loop that does nothing but echo (`rigs/echo.py`). All are measured in the
same run.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from rich.console import Console

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.figures import LATENCY, Measurement
from foretell.bench.rigs.load import make_order
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan, Round, Rounds, table_of
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import PlaceOrder, encode_command
from foretell.domain.exchange.order import OrderType, order_terms
from foretell.domain.exchange.state import State
from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.eip712 import recover_signer
from foretell.domain.values.hexadecimal import Address, Bytes32, word_of
from foretell.sdk.trading import order_body
from foretell.trading.wire.order_body import parse_placing, signed_order

STEPS_ORDERS: Final = 1_000
ECHOES: Final = 500
STEPS: Final = (
    "API key",
    "JSON",
    "hash",
    "recovery of the signer",
    "rules",
    "matching",
    "encoding for the journal",
)
SYNC: Final = "fdatasync"
ECHO: Final = "HTTP and sockets (echo)"
REST: Final = "queues, wake-ups and the rest"


class LatencyRound(NamedTuple):
    """A round of single orders, and the times of an echo and of a sync after it."""

    orders: Round
    echo_ms: float
    later_sync_ms: float

    @property
    def sync_ms(self) -> float:
        """The time of a sync before or after the round, the shorter one: a disk may be busy for a while."""
        return min(self.orders.sync_ms, self.later_sync_ms)

    @property
    def others_cores(self) -> float:
        """Cores that other programs kept busy."""
        return self.orders.others_cores


class LatencyFigures(NamedTuple):
    """The latency of an order over its floor, and its time by step, in milliseconds."""

    measurements: list[Measurement]
    ms_by_step: Mapping[str, float]


class Steps:
    """The steps of an order, without the network, the disk and the waiting."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._separators = world.deployment.separators()
        self._at_ms = now_ms()
        self._state = State()
        for opening in market_commands(world, self._at_ms):
            apply(self._state, opening)
        apply(self._state, funding_command(world, self._at_ms))
        self._signers = [L2Signer(user.credentials.secret) for user in world.users]
        self._condition_by_token: dict[str, Bytes32] = {
            str(pair.yes): condition
            for pair, condition in zip(world.tokens, world.conditions, strict=True)
        }

    def prepare(self, number: int) -> Callable[[], list[float]]:
        """Return a function that does the steps of the order of this number, and returns their times."""
        user = self._world.users[number % len(self._world.users)]
        signer = self._signers[number % len(self._world.users)]
        order = make_order(self._world, user, self._separators, number)
        key_id = user.credentials.key_id
        raw = msgspec.json.encode(order_body(order, key_id, OrderType.GTC))
        signature = signer.sign("1", "POST", "/order", raw)

        def place() -> list[float]:
            begun_at_s = time.perf_counter()
            signer.check(signature, "1", "POST", "/order", raw)
            checked_at_s = time.perf_counter()
            times_s = [begun_at_s, checked_at_s, *self._place(raw, key_id, order.signer)]
            return [later - earlier for earlier, later in pairwise(times_s)]

        return place

    def _place(self, raw: bytes, owner: str, caller: Address) -> list[float]:
        """Place an order, and return the times after each step."""
        times_s = []
        order = signed_order(parse_placing(raw).order, caller)
        times_s.append(time.perf_counter())
        digest = self._separators.digest(order, 0)
        times_s.append(time.perf_counter())
        signer = recover_signer(digest, order.signature)
        times_s.append(time.perf_counter())
        assert signer == order.signer
        order_id = word_of(digest)
        condition_id = self._condition_by_token[order.token_id]
        market = self._state.market_by_id[condition_id]
        command = PlaceOrder(
            at_ms=self._at_ms,
            order_id=order_id,
            order=msgspec.structs.replace(order, profile=0),
            order_type=OrderType.GTC,
            is_post_only=False,
            owner=owner,
            condition_id=condition_id,
            is_yes=True,
            terms=order_terms(order, OrderType.GTC, market.rules, order_id),
        )
        times_s.append(time.perf_counter())
        apply(self._state, command)
        times_s.append(time.perf_counter())
        encode_command(command)
        times_s.append(time.perf_counter())
        return times_s


def seconds_by_step(world: World, orders: int) -> Mapping[str, float]:
    """Return the median time of each step of an order."""
    steps = Steps(world)
    prepared = [steps.prepare(number) for number in range(orders)]
    times_s = [place() for place in prepared]
    medians_s = [statistics.median(of_step) for of_step in zip(*times_s, strict=True)]
    return dict(zip(STEPS, medians_s, strict=True))


def run_bench_latency(
    plan: OrderPlan, console: Console, steps_orders: int = STEPS_ORDERS, echoes: int = ECHOES
) -> LatencyFigures:
    """Measure on one connection, round after round, and print the ratio to the floor."""
    plan = plan._replace(connections=1)
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            rounds = Rounds(plan, world, exchange, folder, console)
            rounds.warm_up()
            measured = [
                LatencyRound(rounds.measure(), rounds.echo_ms(echoes), rounds.sync_ms())
                for _ in range(plan.rounds)
            ]
            s_by_step = seconds_by_step(world, steps_orders)
    console.print(table_of([one.orders for one in measured]))
    counted = undisturbed(measured)
    p50_ms = statistics.median(one.orders.p50_ms for one in counted)
    tail = statistics.median(one.orders.p99_ms / one.orders.p50_ms for one in counted)
    sync_ms = statistics.median(one.sync_ms for one in counted)
    echo_ms = statistics.median(one.echo_ms for one in counted)
    steps_ms = sum(s_by_step.values()) * 1e3
    floor_ms = steps_ms + sync_ms + echo_ms
    floor = f"{floor_ms:.2f} ms (steps {steps_ms:.2f}, fdatasync {sync_ms:.2f}, HTTP echo {echo_ms:.2f})"
    console.print(
        f"order-latency: p50 {p50_ms:.2f} ms is {p50_ms / floor_ms:.2f} times its floor of {floor};"
        f" p99 is {tail:.1f} times p50 (median of {len(counted)} rounds of {plan.orders},"
        " 1 connection)"
    )
    if words := disturbance(measured):
        console.print(words)
    ms_by_step = {step: seconds * 1e3 for step, seconds in s_by_step.items()}
    ms_by_step |= {SYNC: sync_ms, ECHO: echo_ms, REST: max(p50_ms - floor_ms, 0.0)}
    return LatencyFigures([Measurement(LATENCY, p50_ms / floor_ms, floor)], ms_by_step)
