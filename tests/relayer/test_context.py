import asyncio
import gc

import pytest
from tests.rigs.values import an_address

from foretell.relayer.context import Pulse, WalletLocks, wait_for

pytestmark = pytest.mark.anyio


async def test_a_wallet_has_one_lock_while_it_is_held() -> None:
    locks = WalletLocks()
    wallet, other = an_address("wallet"), an_address("other")
    async with locks.of(wallet):
        assert locks.of(wallet).locked()
        assert not locks.of(other).locked()
    gc.collect()
    assert not locks.of(wallet).locked()


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
