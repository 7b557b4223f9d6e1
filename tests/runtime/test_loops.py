import asyncio

import pytest

from foretell.runtime.loops import run_together

pytestmark = pytest.mark.anyio


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
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0, "asyncio.timeout of Python 3.11.2 would cancel from now on"
