"""The engine on a full disk: cancels while they fit, then nothing, then everything again."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import msgspec
import pytest
from tests.rigs.clock import Clock
from tests.rigs.digest import digest
from tests.rigs.disks import SmallDisk
from tests.rigs.values import (
    NOW_MS,
    NOW_S,
    TOKEN,
    a_buy,
    a_placing,
    an_address,
    an_observation,
    an_open_market,
    some_funds,
)

from foretell.domain.errors.exchange import EngineCancelOnly, EngineReadOnly, EngineStalled
from foretell.domain.exchange.commands import CancelOrders, PlaceOrder
from foretell.domain.exchange.order import OrderType
from foretell.engine.protocol.requests import CommittedCommand
from foretell.engine.writer.engine import STALLED_AFTER_S, Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.port import Capacity

pytestmark = pytest.mark.anyio

SEGMENT_BYTES = 16 * 1024
STALLED_S = 2.0
"""Longer than a busy disk takes for the commands before the one that waits."""


class Place:
    """An engine, its journal, and the disk below."""

    def __init__(self, folder: Path, disk: SmallDisk, stalled_after_s: float) -> None:
        self.disk = disk
        self.clock = Clock()
        self.journal = FileJournal(folder, segment_bytes=SEGMENT_BYTES, full_retry_s=0.01)
        self.engine = Engine(
            self.journal,
            self.clock.now_ms,
            stalled_after_s=stalled_after_s,
        )
        self.placed: list[PlaceOrder] = []

    def next_order(self) -> PlaceOrder:
        order = a_buy(size_units=5 * TOKEN, salt=str(len(self.placed)))
        self.placed.append(a_placing(order))
        return self.placed[-1]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 - another thread's work
                await asyncio.sleep(0.005)

    def has_segment_pool(self) -> bool:
        """Whether the spare and the reserve are there: until then capacity may change."""
        return self.journal.tail.segment_pool.is_filled

    async def become_scarce(self) -> None:
        """Place orders until the disk has no room for another spare."""
        await self.until(self.has_segment_pool)
        self.disk.fill()
        while self.journal.capacity is Capacity.AMPLE:
            with contextlib.suppress(EngineCancelOnly):
                await self.engine.submit(self.next_order())

    async def place_in_time(self) -> None:
        """Place an order as soon as there is room for it."""
        for _ in range(1_000):
            with contextlib.suppress(EngineCancelOnly):
                await self.engine.submit(self.next_order())
                return
            await asyncio.sleep(0.01)

    def become_full(self) -> "asyncio.Task[object]":
        """Begin to cancel an order on a disk that takes no writes."""
        self.disk.takes_writes = False
        cancel = CancelOrders(NOW_MS, an_address("alice"), (self.placed[0].order_id,))
        return asyncio.create_task(self.engine.submit(cancel))


@contextlib.asynccontextmanager
async def a_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, stalled_after_s: float = STALLED_AFTER_S
) -> AsyncIterator[Place]:
    place = Place(folder, SmallDisk(folder, monkeypatch), stalled_after_s)
    await place.engine.start()
    await place.engine.submit(an_open_market())
    await place.engine.submit(some_funds("alice"))
    await place.engine.submit(place.next_order())
    yield place
    place.disk.heal()
    await place.engine.close()


@pytest.fixture
async def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    async with a_place(tmp_path, monkeypatch) as place:
        yield place


async def test_while_capacity_is_scarce_no_order_is_placed(place: Place) -> None:
    await place.become_scarce()
    before = digest(place.engine.state)
    with pytest.raises(EngineCancelOnly) as refusal:
        await place.engine.submit(place.next_order())
    assert refusal.value.definite
    assert digest(place.engine.state) == before


async def test_while_capacity_is_scarce_a_known_order_gets_its_reply(place: Place) -> None:
    await place.become_scarce()
    known = place.placed[0]
    assert await place.engine.submit(known) == place.engine.state.placement_by_order[known.order_id]


@pytest.mark.case("A-06")
async def test_while_capacity_is_scarce_cancels_and_observations_work(place: Place) -> None:
    await place.become_scarce()
    order_ids = tuple(order.order_id for order in place.placed[:20])
    await place.engine.submit(CancelOrders(NOW_MS, an_address("alice"), order_ids))
    assert not set(order_ids) & set(place.engine.state.live_orders)
    await place.engine.submit(an_observation(block_number=7))
    assert place.engine.state.observed_block == 7


async def test_while_capacity_is_scarce_orders_expire(place: Place) -> None:
    dated = a_placing(a_buy(expiration_s=NOW_S + 100), OrderType.GTD)
    await place.engine.submit(dated)
    await place.become_scarce()
    place.clock.move(60_000)
    await place.engine.expire()
    assert dated.order_id not in place.engine.state.live_orders


async def test_a_command_that_waits_for_capacity_is_answered_when_there_is_some(
    place: Place,
) -> None:
    published: list[CommittedCommand] = []
    place.engine.subscribe(published.append)
    waiting = place.become_full()
    await place.until(lambda: place.journal.capacity is Capacity.NONE)
    assert not published
    assert not waiting.done()
    place.disk.heal()
    await waiting
    assert [committed.sequence for committed in published] == [place.engine.sequence]


async def test_without_capacity_nothing_is_taken_and_nothing_changes(place: Place) -> None:
    waiting = place.become_full()
    await place.until(lambda: place.journal.capacity is Capacity.NONE)
    before, sequence = digest(place.engine.state), place.engine.sequence
    for command in (place.next_order(), CancelOrders(NOW_MS, an_address("alice"), ())):
        with pytest.raises(EngineReadOnly):
            await place.engine.submit(command)
    assert (digest(place.engine.state), place.engine.sequence) == (before, sequence)
    place.disk.heal()
    await waiting


@pytest.mark.case("B-08")
async def test_without_capacity_expired_orders_wait(place: Place) -> None:
    dated = a_placing(a_buy(expiration_s=NOW_S + 100), OrderType.GTD)
    await place.engine.submit(dated)
    waiting = place.become_full()
    await place.until(lambda: place.journal.capacity is Capacity.NONE)
    place.clock.move(60_000)
    await place.engine.expire()
    assert dated.order_id in place.engine.state.live_orders
    place.disk.heal()
    await waiting
    await place.engine.expire()
    assert dated.order_id not in place.engine.state.live_orders


async def test_without_capacity_an_order_that_is_sent_again_expires_no_other(place: Place) -> None:
    """It needs no room itself; what had expired since was taken into a journal without any."""
    dated = a_placing(a_buy(expiration_s=NOW_S + 100), OrderType.GTD)
    await place.engine.submit(dated)
    waiting = place.become_full()
    await place.until(lambda: place.journal.capacity is Capacity.NONE)
    place.clock.move(60_000)
    before, sequence = digest(place.engine.state), place.engine.sequence
    known = msgspec.structs.replace(place.placed[0], at_ms=place.clock.now_ms())
    again = asyncio.create_task(place.engine.submit(known))
    await asyncio.sleep(0)
    assert (digest(place.engine.state), place.engine.sequence) == (before, sequence)
    place.disk.heal()
    await waiting
    await again


async def test_no_caller_waits_without_end_and_its_command_still_becomes_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with a_place(tmp_path, monkeypatch, stalled_after_s=STALLED_S) as place:
        published: list[CommittedCommand] = []
        place.engine.subscribe(published.append)
        waiting = place.become_full()
        with pytest.raises(EngineStalled) as refusal:
            await waiting
        assert not refusal.value.definite
        assert not published
        place.disk.heal()
        await place.until(lambda: len(published) == 1)
        await place.place_in_time()
        assert place.engine.is_ready


@pytest.mark.case("A-06")
async def test_after_capacity_came_back_the_state_is_that_of_a_replay(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    await place.become_scarce()
    waiting = place.become_full()
    await place.until(lambda: place.journal.capacity is Capacity.NONE)
    place.disk.heal()
    await waiting
    await place.until(place.has_segment_pool)
    await place.place_in_time()
    copy = tmp_path_factory.mktemp("copy")
    for path in place.disk.folder.iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    again = Engine(FileJournal(copy, segment_bytes=SEGMENT_BYTES), place.clock.now_ms)
    await again.start()
    assert digest(again.state) == digest(place.engine.state)
    await again.close()
