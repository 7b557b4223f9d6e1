"""Clients that read much rest while others read little, and only then."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import TypeVarTuple

import pytest
from tests.rigs.clock import VirtualLoop, run_virtually
from typing_extensions import override

from foretell.store.public_reads.places import ReadPlaces, WaitBounds
from foretell.store.public_reads.rests import ALL_CLIENTS, CLIENTS_MAX, ReadRests, RestLimits

pytestmark = pytest.mark.anyio

Ts = TypeVarTuple("Ts")

LIMITS = RestLimits(window_s=1.0, much_s=0.25, others_s=0.2, per_read=3.0, most_s=0.25)


class Reading:
    """Clients that hold places on a clock that stands still otherwise."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.rests = ReadRests(LIMITS, lambda: self.now_s)

    def read(self, client: str, held_s: float) -> float:
        """Hold a place for a time, and return the rest that follows."""
        self.rests.begin(client)
        self.now_s += held_s
        return self.rests.end(client, held_s)

    def may_begin(self, client: str, running: int) -> bool:
        """Return whether a client may have a place now beside those that it has."""
        return self.rests.may_begin(client, running=running, now_s=self.now_s)


def test_one_that_reads_alone_never_rests() -> None:
    reading = Reading()
    assert {reading.read("flood", 0.05) for _ in range(40)} == {0.0}
    assert reading.may_begin("flood", running=1)


def test_what_is_read_for_all_clients_is_no_client_beside_whom_one_rests() -> None:
    """A client alone rested beside the pages of markets that it had asked for."""
    reading = Reading()
    for _ in range(20):
        reading.read("flood", 0.05)
    reading.read(ALL_CLIENTS, 0.001)
    assert reading.read("flood", 0.05) == 0.0
    assert not reading.rests.yields("flood")


def test_what_is_read_for_all_clients_does_not_rest() -> None:
    reading = Reading()
    for _ in range(20):
        reading.read(ALL_CLIENTS, 0.05)
    reading.read("other", 0.001)
    assert reading.read(ALL_CLIENTS, 0.05) == 0.0
    assert reading.may_begin(ALL_CLIENTS, running=1)


def test_one_that_reads_much_rests_beside_one_that_reads_little() -> None:
    reading = Reading()
    for _ in range(20):
        reading.read("flood", 0.05)
    reading.read("other", 0.01)
    assert reading.read("flood", 0.05) == pytest.approx(0.15)
    assert not reading.may_begin("flood", running=0)
    assert reading.may_begin("other", running=1)
    reading.now_s += 0.15
    assert reading.may_begin("flood", running=0)
    assert not reading.may_begin("flood", running=1), "one place, while the other is there"
    assert reading.read("flood", 3.0) == 0.0, "the other has left"
    reading.read("other", 0.01)
    assert reading.read("flood", 3.0) == 0.0
    reading.read("other", 0.01)
    assert reading.read("flood", 0.15) == LIMITS.most_s


def test_those_that_read_as_much_do_not_rest() -> None:
    reading = Reading()
    assert {reading.read(client, 0.05) for _ in range(40) for client in ("one", "two")} == {0.0}


def test_use_fades() -> None:
    reading = Reading()
    for _ in range(20):
        reading.read("flood", 0.05)
    reading.now_s += 5 * LIMITS.window_s
    reading.read("other", 0.001)
    assert not reading.rests.yields("flood")
    assert reading.read("flood", 0.1) == 0.0


def test_few_clients_are_remembered() -> None:
    reading = Reading()
    for number in range(CLIENTS_MAX + 5):
        reading.read(f"client {number}", 0.0)
    assert len(reading.rests) == CLIENTS_MAX


async def test_a_timer_that_comes_too_early_is_set_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Timers of an event loop count whole milliseconds: a read could wait for the next one to end, which never began."""
    loop = asyncio.get_running_loop()
    later = loop.call_later
    monkeypatch.setattr(
        loop, "call_later", lambda delay_s, *rest: later(max(delay_s / 2, 0.001), *rest)
    )
    rests = ReadRests(LIMITS._replace(much_s=0.0, others_s=60.0, per_read=1e6, most_s=0.05))
    places = ReadPlaces(4, 2, WaitBounds(wait_s=60), rests)
    await places.take("other")
    await places.take("flood")
    await asyncio.sleep(0.01)
    places.release("flood")
    await asyncio.wait_for(places.take("flood"), 30)


async def test_a_rest_that_a_read_elsewhere_causes_ends_too() -> None:
    rests = ReadRests(LIMITS._replace(much_s=0.0, others_s=60.0, per_read=1e6, most_s=0.05))
    places = ReadPlaces(4, 2, WaitBounds(wait_s=60), rests)
    rests.begin("other")
    rests.end("flood", 1.0)
    await asyncio.wait_for(places.take("flood"), 30)
    waiting = asyncio.create_task(places.take("flood"))
    await asyncio.sleep(0)
    rests.end("flood", 1.0)
    places.release("flood")
    await asyncio.wait_for(waiting, 30)


class TimerLoop(VirtualLoop):
    """A loop that keeps the timers that are set meanwhile, and starts none."""

    def __init__(self) -> None:
        super().__init__()
        self.timers: list[Callable[[], object]] = []

    @override
    def call_later(
        self,
        delay: float,
        callback: Callable[[*Ts], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self.timers.append(partial(callback, *args))
        return asyncio.TimerHandle(0.0, callback, args, self, context)


class MovingClock:
    """A clock that moves by a step with each reading."""

    def __init__(self) -> None:
        self._now_s = 100.0
        self._step_s = 0.0

    def now_s(self) -> float:
        self._now_s += self._step_s
        return self._now_s

    def reach(self, end_s: float, readings: int) -> None:
        """Move so that a time is reached just after so many readings."""
        self._step_s = 1e-6
        self._now_s = end_s - (readings + 0.5) * self._step_s


RESTED_AT_S = 100.15


def resting(clock: MovingClock) -> ReadPlaces:
    """Return places beside which `flood` rests until `RESTED_AT_S`."""
    rests = ReadRests(LIMITS._replace(much_s=0.0, others_s=60.0), clock.now_s)
    rests.begin("other")
    assert rests.end("flood", 0.05) == pytest.approx(0.15)
    return ReadPlaces(4, 2, rests=rests)


@pytest.mark.parametrize("readings", range(6))
def test_a_rest_that_ends_between_two_looks_at_the_clock_ends_for_the_read_that_waits(
    readings: int,
) -> None:
    """The client still rested when places were given, and a moment later it did not, so no timer was set."""
    loop, clock = TimerLoop(), MovingClock()

    async def play() -> None:
        waiting = asyncio.create_task(resting(clock).take("flood"))
        await asyncio.sleep(0)
        timer = loop.timers.pop()
        clock.reach(RESTED_AT_S, readings)
        timer()
        await asyncio.sleep(0)
        assert waiting.done() or loop.timers
        waiting.cancel()

    run_virtually(play(), loop)


@pytest.mark.parametrize("readings", range(6))
def test_a_rest_that_ends_while_a_read_begins_to_wait_ends_for_it(readings: int) -> None:
    loop, clock = TimerLoop(), MovingClock()

    async def play() -> None:
        places = resting(clock)
        clock.reach(RESTED_AT_S, readings)
        waiting = asyncio.create_task(places.take("flood"))
        for _ in range(3):
            await asyncio.sleep(0)
        assert waiting.done() or loop.timers
        waiting.cancel()

    run_virtually(play(), loop)


async def test_a_rest_that_begins_elsewhere_while_a_read_waits_for_others_ends_too() -> None:
    """A place that another client gave back while it rested was given to it only when another one was given back."""
    rests = ReadRests(LIMITS._replace(much_s=0.0, others_s=60.0, per_read=1e6, most_s=0.05))
    places = ReadPlaces(1, 1, WaitBounds(wait_s=60), rests)
    await places.take("other")
    waiting = asyncio.create_task(places.take("flood"))
    await asyncio.sleep(0)
    assert rests.end("flood", 1.0)
    places.release("other")
    assert not waiting.done()
    await asyncio.wait_for(waiting, 30)


def test_a_rest_ends_and_the_next_read_of_the_client_begins() -> None:
    """On a clock that passes only while everything waits: no rest is over too early."""
    loop = VirtualLoop()
    limits = LIMITS._replace(much_s=0.0, others_s=60.0, per_read=1e6, most_s=0.05)

    async def play() -> None:
        places = ReadPlaces(4, 2, rests=ReadRests(limits, loop.time))
        await places.take("other")
        await places.take("flood")
        await asyncio.sleep(0.01)
        places.release("flood")
        waiting = asyncio.create_task(places.take("flood"))
        await asyncio.sleep(0)
        assert not waiting.done(), "it rests, though there are places"
        await asyncio.wait_for(waiting, 60)
        second = asyncio.create_task(places.take("flood"))
        await asyncio.sleep(0)
        assert not second.done(), "one at a time"
        places.release("flood")
        await asyncio.wait_for(second, 60)
        assert places.waiting == 0

    run_virtually(play(), loop)
