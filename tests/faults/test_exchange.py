"""A process that serves traders over HTTP is killed at random, and at chosen points, and started again.

`make faults` does the same many more times.
"""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.faults.exchange import Exchange, an_exchange
from tests.faults.fault_points import LAST_SYNCED
from tests.faults.people import BUYERS, SELLERS
from tests.faults.processes import Member, Processes

from foretell.domain.errors.command import ApiUnreachable
from foretell.domain.exchange.commands import Command, PlaceOrder
from foretell.domain.values.hexadecimal import Bytes32

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

CYCLES = int(os.environ.get("FORETELL_TEST_CYCLES", "3"))
CYCLES_PER_LIFE = 20
KILLED_WITHIN_S = 1.0
ROUNDS = max(1, CYCLES // 20)
FAILS_AFTER_S = 0.3
ALL_FAULTS = [
    ("after_sync", True),
    ("at_append", False),
    ("at_sync", True),
    ("before_answer", True),
]
FAULTS = ALL_FAULTS[: max(1, CYCLES // 20)]
"""Where the process ends, and whether the journal has by then what it was asked for.

An order meets all of them however few the cycles are.
"""


async def live_and_die(exchange: Exchange, cycles: int, chance: random.Random) -> None:
    for _ in range(cycles):
        serving = await exchange.start()
        await exchange.check()
        trading = asyncio.create_task(exchange.trade())
        await asyncio.sleep(chance.uniform(0, KILLED_WITHIN_S))
        await serving.kill()
        await trading
    await exchange.start()
    await exchange.check()


async def test_an_exchange_that_is_killed_under_load_again_and_again_loses_and_doubles_nothing(
    made: Processes, tmp_path: Path, empty_database: Path
) -> None:
    chance = random.Random(CYCLES)
    for first in range(0, CYCLES, CYCLES_PER_LIFE):
        folder = tmp_path / f"life {first}"
        async with an_exchange(folder, empty_database, made, chance) as exchange:
            cycles = min(CYCLES_PER_LIFE, CYCLES - first)
            await live_and_die(exchange, cycles, chance)
            assert len(exchange.told().answer_by_order) > cycles


@pytest.fixture
async def exchange(
    made: Processes, tmp_path: Path, empty_database: Path
) -> AsyncIterator[Exchange]:
    async with an_exchange(tmp_path, empty_database, made, random.Random(1)) as exchange:
        yield exchange


async def ask_until_it_ends(exchange: Exchange, serving: Member, asking: Awaitable[Any]) -> None:
    """Ask what the fault ends the process at, so that nobody answers."""
    exchange.armed.touch()
    with pytest.raises(ApiUnreachable):
        await asking
    assert await serving.ended() == -signal.SIGKILL


def orders_of(commands: Sequence[Command]) -> list[Bytes32]:
    return [command.order_id for command in commands if isinstance(command, PlaceOrder)]


@pytest.mark.parametrize(("fault", "is_kept"), ALL_FAULTS)
async def test_an_order_whose_answer_was_never_sent_is_placed_once(
    exchange: Exchange, fault: str, *, is_kept: bool
) -> None:
    buyer = exchange.people[BUYERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        order = buyer.order(price=30)
        await ask_until_it_ends(exchange, serving, buyer.place(order))
        serving = await exchange.start(fault)
        first, second = await buyer.client.place(order), await buyer.client.place(order)
        assert (first.get("replayed", False), second["replayed"]) == (is_kept, True)
        assert second == first | {"replayed": True}
        assert orders_of(exchange.retold().commands).count(first["orderID"]) == 1
    await exchange.check()


@pytest.mark.parametrize(("fault", "is_kept"), FAULTS)
async def test_a_cancel_whose_answer_was_never_sent_holds_and_is_done_once(
    exchange: Exchange, fault: str, *, is_kept: bool
) -> None:
    buyer = exchange.people[BUYERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        order_id = (await buyer.place(buyer.order(price=30)))["orderID"]
        await ask_until_it_ends(exchange, serving, buyer.cancel(order_id))
        serving = await exchange.start(fault)
        assert (order_id in exchange.retold().state.live_orders) is not is_kept
        again = await buyer.cancel(order_id)
        assert (again["canceled"] == [order_id]) is not is_kept
        assert (order_id in again["not_canceled"]) is is_kept
        assert order_id not in exchange.retold().state.live_orders
    await exchange.check()


@pytest.mark.parametrize(("fault", "is_kept"), FAULTS)
async def test_a_trade_that_was_never_told_of_happens_once(
    exchange: Exchange, fault: str, *, is_kept: bool
) -> None:
    buyer, seller = exchange.people[BUYERS[0]], exchange.people[SELLERS[0]]
    serving = await exchange.start(fault)
    for _ in range(ROUNDS):
        resting = (await seller.place(seller.order(price=60)))["orderID"]
        order = buyer.order(price=60)
        await ask_until_it_ends(exchange, serving, buyer.place(order))
        serving = await exchange.start(fault)
        answer = await buyer.client.place(order)
        assert (answer["status"], answer.get("replayed", False)) == ("matched", is_kept)
        await exchange.caught_up()
        trades = [row[0] for row in exchange.rows("fills") if resting in row]
        assert trades == answer["tradeIDs"]
        assert len(trades) == 1
    await exchange.check()


async def test_a_disk_that_fails_ends_the_process_and_nothing_is_acknowledged_after_it(
    exchange: Exchange,
) -> None:
    serving = await exchange.start("failing_sync")
    trading = asyncio.create_task(exchange.trade())
    await asyncio.sleep(FAILS_AFTER_S)
    exchange.armed.touch()
    assert await serving.ended() == 1
    await trading
    last_synced = int((exchange.folder / LAST_SYNCED).read_text())
    told, kept = exchange.told(), exchange.retold().commands[:last_synced]
    assert told.answer_by_order
    assert told.answer_by_order.keys() <= set(orders_of(kept))
    await exchange.start()
    await exchange.check()
