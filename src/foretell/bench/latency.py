"""`foretell bench latency`: the time of one order on an idle exchange (order-latency).

The floor is the sum of its steps, measured in the same run without the network, and one sync of the
journal's disk.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from foretell.app.clock_and_ids import new_key, now_ms
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.load import make_order
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.order_rounds import OrderPlan, Rounds, table_of
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import PlaceOrder, encode_command
from foretell.domain.exchange.order import OrderType, order_terms
from foretell.domain.exchange.state import State
from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.eip712 import recover_signer
from foretell.domain.values.hexadecimal import Bytes32, word_of
from foretell.sdk.trading import order_body
from foretell.trading.wire.order_body import parse_placing, signed_order

STEPS_ORDERS: Final = 1_000


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

    def prepare(self, number: int) -> Callable[[], None]:
        """Return a function with the steps of the order of this number."""
        user = self._world.users[number % len(self._world.users)]
        signer = self._signers[number % len(self._world.users)]
        order = make_order(self._world, user, self._separators, number)
        key_id = user.credentials.key_id
        raw = msgspec.json.encode(order_body(order, key_id, OrderType.GTC))
        signature = signer.sign("1", "POST", "/order", raw)

        def place() -> None:
            signer.check(signature, "1", "POST", "/order", raw)
            self._place(raw, key_id)

        return place

    def _place(self, raw: bytes, owner: str) -> None:
        order = signed_order(parse_placing(raw).order)
        tokens = [str(pair.yes) for pair in self._world.tokens]
        condition_id: Bytes32 = self._world.conditions[tokens.index(order.token_id)]
        market = self._state.market_by_id[condition_id]
        digest = self._separators.digest(order, 0)
        signer = recover_signer(digest, order.signature)
        assert signer == order.signer
        order_id = word_of(digest)
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
        encode_command(command)
        apply(self._state, command)


def steps_s(world: World, orders: int) -> float:
    """Return the median time of the steps of one order."""
    steps = Steps(world)
    prepared = [steps.prepare(number) for number in range(orders)]
    return statistics.median(_time(place) for place in prepared)


def run_bench_latency(plan: OrderPlan, console: Console, steps_orders: int = STEPS_ORDERS) -> None:
    """Measure on one connection, round after round, and print the ratio to the floor."""
    plan = plan._replace(connections=1)
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            rounds = Rounds(plan, world, exchange, folder, console)
            rounds.warm_up()
            measured = [rounds.measure() for _ in range(plan.rounds)]
            steps = steps_s(world, steps_orders)
    console.print(table_of(measured))
    counted = undisturbed(measured)
    p50_ms = statistics.median(one.p50_ms for one in counted)
    tail = statistics.median(one.p99_ms / one.p50_ms for one in counted)
    sync_ms = statistics.median(one.sync_ms for one in counted)
    floor_ms = steps * 1e3 + sync_ms
    console.print(
        f"order-latency: p50 {p50_ms:.2f} ms is {p50_ms / floor_ms:.2f} times its floor of"
        f" {floor_ms:.2f} ms (steps {steps * 1e3:.2f}, fdatasync {sync_ms:.2f});"
        f" p99 is {tail:.1f} times p50 (median of {len(counted)} rounds of {plan.orders},"
        " 1 connection)"
    )
    if words := disturbance(measured):
        console.print(words)


def _time(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
