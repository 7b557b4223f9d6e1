"""`foretell bench latency`: how long one order takes when nothing else is asked (order-latency).

The floor is what has to be done for it one after the other: each step of the way, measured by
itself in the same run, and one sync of the journal's disk.
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
from foretell.bench.order import Rounds, table_of
from foretell.bench.rigs.exchange import running_exchange
from foretell.bench.rigs.load import make_order
from foretell.bench.rigs.machine import disturbance, undisturbed
from foretell.bench.rigs.world import World, funding_command, make_world, market_commands
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import PlaceOrder, encode_command
from foretell.domain.exchange.order import OrderType, check_order
from foretell.domain.exchange.state import State
from foretell.domain.values.credentials import L2Signer
from foretell.domain.values.eip712 import recover_signer
from foretell.domain.values.hexadecimal import Bytes32, word_of
from foretell.sdk.trading import order_body
from foretell.trading.wire.order_body import parse_placing, signed_order

STEPS_ORDERS: Final = 1_000


class Steps:
    """What is done for an order, without the network, the disk and everything that waits."""

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
        """Return what has to be done for the order of this number."""
        user = self._world.users[number % len(self._world.users)]
        signer = self._signers[number % len(self._world.users)]
        order = make_order(self._world, user, self._separators, number)
        key_id = user.credentials.key_id
        raw = msgspec.json.encode(order_body(order, key_id, OrderType.GTC))
        signature = signer.sign("1", "POST", "/order", raw)

        def take() -> None:
            signer.check(signature, "1", "POST", "/order", raw)
            self._place(raw, key_id)

        return take

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
            terms=check_order(order, OrderType.GTC, market.rules, order_id),
        )
        encode_command(command)
        apply(self._state, command)


def steps_s(world: World, orders: int) -> float:
    """Return how long the steps of one order take, at the median."""
    steps = Steps(world)
    prepared = [steps.prepare(number) for number in range(orders)]
    return statistics.median(_time(take) for take in prepared)


def run_bench_latency(rounds: int, orders: int, console: Console) -> None:
    """Measure on one connection, round after round, and print the ratio to the floor."""
    master_key = new_key()
    world = make_world(master_key)
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        with running_exchange(master_key, folder) as exchange:
            placing = Rounds(world, exchange, folder, console)
            placing.warm_up(1)
            measured = [placing.measure(orders, 1) for _ in range(rounds)]
            steps = steps_s(world, STEPS_ORDERS)
    console.print(table_of(measured))
    counted = undisturbed(measured)
    p50_ms = statistics.median(one.p50_ms for one in counted)
    tail = statistics.median(one.p99_ms / one.p50_ms for one in counted)
    sync_ms = statistics.median(one.sync_ms for one in counted)
    floor_ms = steps * 1e3 + sync_ms
    console.print(
        f"order-latency: p50 {p50_ms:.2f} ms is {p50_ms / floor_ms:.2f} times its floor of"
        f" {floor_ms:.2f} ms (steps {steps * 1e3:.2f}, fdatasync {sync_ms:.2f});"
        f" p99 is {tail:.1f} times p50 (median of {len(counted)} rounds of {orders}, 1 connection)"
    )
    if words := disturbance(measured):
        console.print(words)


def _time(act: Callable[[], None]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started
