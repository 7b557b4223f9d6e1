import asyncio

import pytest
from structlog.testing import capture_logs

from foretell.runtime import loops
from foretell.runtime.loops import restart_on_failure, run_together

pytestmark = pytest.mark.anyio


async def test_a_loop_that_fails_is_logged_and_started_again() -> None:
    starts: list[int] = []
    is_again = asyncio.Event()

    async def fail_once() -> None:
        starts.append(len(starts))
        if len(starts) == 1:
            raise OSError("away")
        is_again.set()
        await asyncio.Event().wait()

    with capture_logs() as logs:
        running = asyncio.create_task(restart_on_failure("a loop", fail_once))
        await asyncio.wait_for(is_again.wait(), 10 * loops.RETRY_S)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert [(each["event"], each["loop"]) for each in logs] == [
        ("loop failed and is restarted", "a loop")
    ]


async def test_loops_run_together_until_one_of_them_raises() -> None:
    canceled = asyncio.Event()

    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            canceled.set()

    async def fail() -> None:
        await asyncio.sleep(0)
        raise ValueError("broken")

    with pytest.raises(ExceptionGroup) as group:
        await run_together([wait, fail])
    assert group.group_contains(ValueError, match="broken")
    assert canceled.is_set()
