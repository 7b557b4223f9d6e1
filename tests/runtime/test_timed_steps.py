"""The time of an awaitable's own steps."""

import asyncio
import weakref

import pytest
from tests.rigs.clock import Clock

from foretell.runtime.timed_steps import TimedSteps

pytestmark = pytest.mark.anyio


async def test_the_steps_count_and_the_waits_do_not() -> None:
    clock = Clock()

    async def work() -> str:
        clock.move_s(1.0)
        await asyncio.sleep(0)
        clock.move_s(2.0)
        return "done"

    async def meanwhile() -> None:
        clock.move_s(10.0)

    steps = TimedSteps(work(), clock.now_s)
    other = asyncio.create_task(meanwhile())
    assert await steps == "done"
    await other
    assert steps.spent_s == pytest.approx(3.0)


async def test_an_error_passes_with_its_time() -> None:
    clock = Clock()

    async def fail() -> None:
        await asyncio.sleep(0)
        clock.move_s(1.0)
        raise ValueError("of the work")

    steps = TimedSteps(fail(), clock.now_s)
    with pytest.raises(ValueError, match="of the work"):
        await steps
    assert steps.spent_s == pytest.approx(1.0)


async def test_what_is_thrown_in_reaches_the_inner_one() -> None:
    clock, met = Clock(), []

    async def wait() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            met.append(error)
            clock.move_s(1.0)
            await asyncio.sleep(0)
            raise
        return "never"

    steps = TimedSteps(wait(), clock.now_s)

    async def run() -> str:
        return await steps

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(met) == 1
    assert steps.spent_s == pytest.approx(1.0)


class WorkError(Exception):
    """Raised by work that is cancelled."""


@pytest.mark.usefixtures("uncollected")
async def test_attack_h1_what_is_thrown_in_is_freed_with_the_task() -> None:
    """It had the frame that had it, and with it the whole request."""
    thrown: list[weakref.ref[BaseException]] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            thrown.append(weakref.ref(error))
            raise WorkError from None

    async def run() -> None:
        await TimedSteps(work())

    task = asyncio.create_task(run())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert isinstance(task.exception(), WorkError)
    del task
    await asyncio.sleep(0)
    assert [each() for each in thrown] == [None]
