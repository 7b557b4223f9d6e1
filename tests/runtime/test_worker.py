import asyncio
from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from foretell.runtime.worker import (
    RETRY_S,
    RETRY_S_MAX,
    PollIntervals,
    Wait,
    run_watching_worker,
    run_worker,
)

pytestmark = pytest.mark.anyio

BUSY, IDLE = True, False


class Job:
    """Steps that go as a test says, and the waits between them."""

    def __init__(self, *outcomes: bool | Exception) -> None:
        self.outcomes: Iterator[bool | Exception] = iter(outcomes)
        self.waits: list[float] = []
        self.pauses: list[float] = []
        self.is_over = asyncio.Event()

    async def step(self) -> bool:
        outcome = next(self.outcomes, None)
        if outcome is None:
            self.is_over.set()
            await asyncio.Event().wait()
        if isinstance(outcome, Exception):
            raise outcome
        return bool(outcome)

    async def wait(self, seconds: float) -> None:
        self.waits.append(seconds)

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def run(self) -> None:
        pace = PollIntervals(busy_s=0.5, idle_s=15.0)
        working = run_worker("a job", self.step, pace, self.wait, pause=self.pause)
        running = asyncio.create_task(working)
        async with asyncio.timeout(60):
            await self.is_over.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running


async def test_a_worker_waits_less_while_there_is_work() -> None:
    job = Job(BUSY, IDLE, BUSY)
    await job.run()
    assert job.waits == [0.5, 15.0, 0.5]


async def test_a_step_that_fails_is_repeated_after_pauses_that_grow() -> None:
    job = Job(*[OSError("away")] * 9, BUSY, OSError("again"), IDLE)
    await job.run()
    assert job.waits == [0.5, 15.0]
    assert job.pauses[7] > 10 * job.pauses[0]
    assert max(job.pauses) <= RETRY_S_MAX
    assert job.pauses[9] <= RETRY_S


async def test_a_wait_that_cannot_be_set_up_yet_is_set_up_later() -> None:
    job = Job(BUSY, IDLE)
    attempts: list[str] = []

    async def set_up() -> Wait:
        attempts.append("")
        if len(attempts) == 1:
            raise OSError("away")
        return job.wait

    pace = PollIntervals(busy_s=0.5, idle_s=15.0)
    working = run_watching_worker("a job", job.step, pace, set_up, expected=(OSError,))
    running = asyncio.create_task(working)
    async with asyncio.timeout(60):
        await job.is_over.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (len(attempts), job.waits) == (2, [0.5, 15.0])


async def test_a_failure_is_logged_once_and_its_end_too() -> None:
    job = Job(*[OSError("away")] * 3, IDLE)
    with capture_logs() as logs:
        await job.run()
    assert [(each["event"], each["loop"]) for each in logs] == [
        ("step failed and is repeated", "a job"),
        ("step works again", "a job"),
    ]
