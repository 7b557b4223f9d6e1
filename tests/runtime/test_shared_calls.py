"""Calls whose result all get who ask meanwhile."""

import asyncio
from contextvars import ContextVar

import pytest

from foretell.runtime.shared_calls import SharedCalls

pytestmark = pytest.mark.anyio

WHO: ContextVar[str] = ContextVar("WHO", default="nobody")


class Slow:
    """A call that is counted, and ends when it may."""

    def __init__(self) -> None:
        self.times = 0
        self.may_end = asyncio.Event()
        self.failure: Exception | None = None

    async def __call__(self) -> str:
        self.times += 1
        number = self.times
        await self.may_end.wait()
        if self.failure is not None:
            raise self.failure
        return f"{number} for {WHO.get()}"


@pytest.fixture
async def slow() -> Slow:
    return Slow()


async def test_all_who_ask_at_a_time_get_one_result(slow: Slow) -> None:
    shared = SharedCalls()
    WHO.set("the first")
    asked = [asyncio.create_task(shared.result("one", slow)) for _ in range(5)]
    other = asyncio.create_task(shared.result("other", slow))
    await asyncio.sleep(0)
    slow.may_end.set()
    assert await asyncio.gather(*asked) == ["1 for nobody"] * 5
    assert await other == "2 for nobody"
    assert await shared.result("one", slow) == "3 for nobody"


async def test_one_who_leaves_ends_nothing(slow: Slow) -> None:
    shared = SharedCalls()
    leaves, stays = (asyncio.create_task(shared.result("one", slow)) for _ in range(2))
    await asyncio.sleep(0)
    leaves.cancel()
    await asyncio.wait([leaves])
    slow.may_end.set()
    assert await stays == "1 for nobody"


async def test_a_failure_is_everybodys_and_is_not_kept(slow: Slow) -> None:
    shared = SharedCalls()
    slow.failure = ValueError("no")
    slow.may_end.set()
    asked = [shared.result("one", slow) for _ in range(3)]
    failures = await asyncio.gather(*asked, return_exceptions=True)
    assert [str(each) for each in failures] == ["no"] * 3
    slow.failure = None
    assert await shared.result("one", slow) == "2 for nobody"
