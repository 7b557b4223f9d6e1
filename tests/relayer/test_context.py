import asyncio

import pytest

from foretell.relayer.context import Pulse, wait_for

pytestmark = pytest.mark.anyio


async def test_a_beat_wakes_tasks_that_took_the_event_before_it() -> None:
    pulse = Pulse()
    before = pulse.next
    pulse.beat()
    assert before.is_set()
    assert not pulse.next.is_set()


async def test_a_wait_ends_with_the_event_or_at_its_timeout() -> None:
    pulse = Pulse()
    waiting = asyncio.create_task(wait_for(pulse.next, 60))
    await asyncio.sleep(0)
    pulse.beat()
    await asyncio.wait_for(waiting, 60)
    await wait_for(pulse.next, 0.01)
