import asyncio
import itertools
from typing import Final

import pytest
from tests.rigs.clock import VirtualLoop, run_virtually

from foretell.runtime.loop_share import FairTurns, LoopShare
from foretell.runtime.pauses import Pauses

PART_S: Final = 0.0002
FIRST: Final = 10
"""Turns before the last one, after a longer piece of work."""


@pytest.mark.anyio
async def test_parts_of_all_answers_take_turns_with_the_rest_of_the_loop() -> None:
    share, done = LoopShare(), list[str]()

    async def answer(name: str) -> None:
        shared = share.begin()
        for _ in range(3):
            await shared.run(lambda: done.append(name))

    async def serve() -> None:
        while True:
            done.append("-")
            await asyncio.sleep(0)

    serving = asyncio.create_task(serve())
    await asyncio.gather(answer("a"), answer("b"))
    serving.cancel()
    turns = "".join(done).split("-")
    assert max(map(len, turns)) == 1
    assert "".join(turns) == "ababab"


def test_beyond_a_short_answer_the_pause_is_as_long_as_the_factor_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s, slept = [10.0], list[float]()

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)
        now_s[0] += delay_s

    def compute() -> str:
        now_s[0] += 0.5
        return "computed"

    monkeypatch.setattr(asyncio, "sleep", sleep)
    shared = LoopShare(pause_factor=3, short_s=1.0, now_s=lambda: now_s[0]).begin()

    async def play() -> None:
        for _ in range(4):
            assert await shared.run(compute) == "computed"

    asyncio.run(play())
    assert slept == pytest.approx([0, 0, 1.5, 1.5])


def test_a_part_of_less_than_a_millisecond_is_followed_by_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding: the clock of uvloop's loop counts whole milliseconds, and most such parts took none."""
    slept, now_s = list[float](), [0.0]

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)
        now_s[0] += delay_s

    def compute() -> None:
        now_s[0] += PART_S

    monkeypatch.setattr(asyncio, "sleep", sleep)
    shared = LoopShare(pause_factor=3, short_s=0.0, now_s=lambda: now_s[0]).begin()

    async def play() -> None:
        for _ in range(50):
            await shared.run(compute)

    asyncio.run(play())
    assert slept == pytest.approx([3 * PART_S] * 50)


@pytest.mark.anyio
async def test_a_part_that_fails_or_is_cancelled_gives_its_turn_to_the_next() -> None:
    share = LoopShare()

    def fail() -> None:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await share.begin().run(fail)
    pausing = asyncio.create_task(share.begin().run(lambda: None))
    waiting = asyncio.create_task(share.begin().run(lambda: None))
    await asyncio.sleep(0)
    pausing.cancel()
    waiting.cancel()
    assert await share.begin().run(lambda: "next") == "next"


def test_attack_h1_work_in_tasks_is_followed_by_a_pause_as_long_as_the_loop_was_busy() -> None:
    """Requests of twenty addresses took all of the loop's time, as each address may have half of it."""
    loop, busy_s, begun_s = VirtualLoop(), [0.0], list[float]()

    def now_s() -> float:
        return loop.time() + busy_s[0]

    def work() -> None:
        busy_s[0] += 0.0015 if len(begun_s) < FIRST else 1.0

    def begin() -> None:
        begun_s.append(now_s())
        loop.call_soon(work)

    async def wait() -> None:
        turns = FairTurns(1.0, Pauses(now_s), lambda: busy_s[0], 0.002)
        for number in range(FIRST + 1):
            turns.await_turn(number, begin)
        while len(begun_s) <= FIRST:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(0.001)

    run_virtually(wait(), loop)
    parted_s = [later - earlier for earlier, later in itertools.pairwise(begun_s)]
    assert parted_s == pytest.approx([0.003] * (FIRST - 1) + [1.0], abs=0.001), (
        "long work is a pause"
    )


@pytest.mark.parametrize("waits", ["waits", ""], ids=["waits", "at once"])
def test_attack_h1_work_in_tasks_that_follows_closely_is_paused_for_as_well(waits: str) -> None:
    """A finding: a pause began before the work that it followed, and short work had none."""
    loop, busy_s, has_begun = VirtualLoop(), [0.0], asyncio.Event()

    def now_s() -> float:
        return loop.time() + busy_s[0]

    def begin() -> None:
        busy_s[0] += PART_S
        has_begun.set()

    async def ask(turns: FairTurns) -> None:
        while now_s() < 1.0:
            if turns.may_begin():
                begin()
            elif waits:
                has_begun.clear()
                turns.await_turn("stranger", begin)
                await has_begun.wait()
            await asyncio.sleep(PART_S / 2)

    run_virtually(ask(FairTurns(1.0, Pauses(now_s), lambda: busy_s[0], 0.002)), loop)
    assert busy_s[0] == pytest.approx(0.5, abs=0.05)


def test_attack_h1_a_turn_that_fails_keeps_nobody_waiting() -> None:
    """All requests that waited would have waited for ever."""
    loop, begun = VirtualLoop(), list[str]()

    def fail() -> None:
        begun.append("fails")
        raise MemoryError

    async def wait() -> None:
        turns = FairTurns(1.0, Pauses(loop.time))
        turns.await_turn("one", fail)
        turns.await_turn("two", lambda: begun.append("goes on"))
        await asyncio.sleep(1.0)

    loop.set_exception_handler(lambda *_: None)
    run_virtually(wait(), loop)
    assert begun == ["fails", "goes on"]


def test_work_in_tasks_that_comes_alone_waits_for_nothing() -> None:
    """The time since the work before it, of whatever was done, was taken for its own."""
    loop, busy_s, begun = VirtualLoop(), [0.0], list[float]()

    async def come() -> None:
        turns = FairTurns(1.0, Pauses(loop.time), lambda: busy_s[0], 5.0)
        for _ in range(2):
            turns.await_turn("one", lambda: begun.append(0.0))
            await asyncio.sleep(0.05)
            busy_s[0] += 0.02
        turns.await_turn("one", lambda: begun.append(0.0))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(begun) == 3

    run_virtually(come(), loop)
