"""A process that serves traders over HTTP is killed, at random and at fault points, and restarted.

`make faults` does the same many more times.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.faults.fault_points import LAST_SYNCED
from tests.faults.people import BUYERS, SELLERS
from tests.faults.processes import Member, Processes
from tests.faults.rig import FaultRig, a_fault_rig

from foretell.domain.errors.command import ApiUnreachable
from foretell.domain.exchange.commands import Command, PlaceOrder
from foretell.domain.values.hexadecimal import Bytes32

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

CYCLES = int(os.environ.get("FORETELL_TEST_CYCLES", "3"))
CYCLES_PER_LIFE = 20
KILLED_WITHIN_S = 1.0
ROUNDS = max(1, CYCLES // 20)
ALL_FAULTS = [
    ("after_sync", True),
    ("at_append", False),
    ("at_sync", True),
    ("before_reply", True),
]
FAULTS = ALL_FAULTS[: max(1, CYCLES // 20)]
"""The fault points, and whether the journal has the command by then.

The test of orders runs all of them, however few the cycles are.
"""


async def live_and_die(exchange: FaultRig, cycles: int, rng: random.Random) -> None:
    for _ in range(cycles):
        serving = await exchange.start()
        await exchange.check()
        trading = asyncio.create_task(exchange.trade())
        await asyncio.sleep(rng.uniform(0, KILLED_WITHIN_S))
        await serving.kill()
        await trading
    await exchange.start()
    await exchange.check()


@pytest.mark.case("A-01")
async def test_an_exchange_that_is_killed_repeatedly_under_load_loses_and_doubles_nothing(
    made: Processes, tmp_path: Path, empty_database: Path, played: Callable[[int], None]
) -> None:
    rng = random.Random(CYCLES)
    for first in range(0, CYCLES, CYCLES_PER_LIFE):
        folder = tmp_path / f"life {first}"
        async with a_fault_rig(folder, empty_database, made, rng) as exchange:
            cycles = min(CYCLES_PER_LIFE, CYCLES - first)
            await live_and_die(exchange, cycles, rng)
            assert len(exchange.received().answer_by_order) > cycles
    played(CYCLES)


@pytest.fixture
async def exchange(
    made: Processes, tmp_path: Path, empty_database: Path
) -> AsyncIterator[FaultRig]:
    async with a_fault_rig(tmp_path, empty_database, made, random.Random(1)) as exchange:
        yield exchange


async def send_until_it_ends(exchange: FaultRig, serving: Member, sending: Awaitable[Any]) -> None:
    """Send a request whose handling ends the process, so that no answer comes."""
    exchange.armed.touch()
    with pytest.raises(ApiUnreachable):
        await sending
    assert await serving.ended() == -signal.SIGKILL


def orders_of(commands: Sequence[Command]) -> list[Bytes32]:
    return [command.order_id for command in commands if isinstance(command, PlaceOrder)]


@pytest.mark.case("A-02", "G-06")
@pytest.mark.parametrize(("fault", "is_kept"), ALL_FAULTS)
async def test_an_order_whose_answer_was_never_sent_is_placed_once(
    exchange: FaultRig, played: Callable[[int], None], fault: str, *, is_kept: bool
) -> None:
    buyer = exchange.people[BUYERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        order = buyer.order(price=30)
        await send_until_it_ends(exchange, serving, buyer.place(order))
        serving = await exchange.start(fault)
        first, second = await buyer.client.place(order), await buyer.client.place(order)
        order_id = first["orderID"]
        first.pop("present", None)
        assert (first.get("replayed", False), second["replayed"]) == (is_kept, True)
        assert second.pop("present", {}).get("id", order_id) == order_id
        assert second == first | {"replayed": True}
        assert orders_of(exchange.replayed().commands).count(order_id) == 1
    await exchange.check()
    played(ROUNDS)


@pytest.mark.case("A-02")
@pytest.mark.parametrize(("fault", "is_kept"), FAULTS)
async def test_a_cancel_whose_answer_was_never_sent_holds_and_is_done_once(
    exchange: FaultRig, played: Callable[[int], None], fault: str, *, is_kept: bool
) -> None:
    buyer = exchange.people[BUYERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        order_id = (await buyer.place(buyer.order(price=30)))["orderID"]
        await send_until_it_ends(exchange, serving, buyer.cancel(order_id))
        serving = await exchange.start(fault)
        assert (order_id in exchange.replayed().state.live_orders) is not is_kept
        again = await buyer.cancel(order_id)
        assert (again["canceled"] == [order_id]) is not is_kept
        assert (order_id in again["not_canceled"]) is is_kept
        assert order_id not in exchange.replayed().state.live_orders
    await exchange.check()
    played(ROUNDS)


@pytest.mark.case("A-02")
@pytest.mark.parametrize(("fault", "is_kept"), FAULTS)
async def test_a_trade_whose_answer_was_never_sent_happens_once(
    exchange: FaultRig, played: Callable[[int], None], fault: str, *, is_kept: bool
) -> None:
    buyer, seller = exchange.people[BUYERS[0]], exchange.people[SELLERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        resting = (await seller.place(seller.order(price=60)))["orderID"]
        order = buyer.order(price=60)
        await send_until_it_ends(exchange, serving, buyer.place(order))
        serving = await exchange.start(fault)
        answer = await buyer.client.place(order)
        assert (answer["status"], answer.get("replayed", False)) == ("matched", is_kept)
        await exchange.caught_up()
        trades = [row[0] for row in exchange.rows("fills") if resting in row]
        assert trades == answer["tradeIDs"]
        assert len(trades) == 1
    await exchange.check()
    played(ROUNDS)


@pytest.mark.case("A-05")
async def test_a_disk_that_fails_ends_the_process_and_nothing_is_acknowledged_after_it(
    exchange: FaultRig,
) -> None:
    serving = await exchange.start("failing_sync")
    trading = asyncio.create_task(exchange.trade())
    await exchange.more_answers(1)
    exchange.armed.touch()
    assert await serving.ended() == 1
    await trading
    last_synced = int((exchange.folder / LAST_SYNCED).read_text())
    received, kept = exchange.received(), exchange.replayed().commands[:last_synced]
    assert received.answer_by_order
    assert received.answer_by_order.keys() <= set(orders_of(kept))
    await exchange.start()
    await exchange.check()
