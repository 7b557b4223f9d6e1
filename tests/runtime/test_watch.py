import asyncio

import pytest

from foretell.runtime.watch import Watch

pytestmark = pytest.mark.anyio

SOON_S = 60.0


async def test_a_watch_waits_until_its_timeout() -> None:
    assert not await Watch().wait(0.01)


async def test_a_waiting_watch_is_woken() -> None:
    watch = Watch()
    asyncio.get_running_loop().call_soon(watch.wake)
    assert await watch.wait(SOON_S)


async def test_a_wake_before_the_wait_is_not_missed_and_counts_once() -> None:
    watch = Watch()
    watch.wake()
    watch.wake()
    assert await watch.wait(0)
    assert not await watch.wait(0)
