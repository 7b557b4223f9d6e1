"""Work in threads beside a busy loop, and in threads that the system does not start."""

import asyncio
import os
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop
from tests.runtime.lack_of_threads import lack_of_threads

from foretell.runtime.threads import let_threads_work, run_in_thread, starting_thread

pytestmark = pytest.mark.anyio

TURN_S = 0.0002
TURNS_MAX = 100
"""Of the loop until another thread has done a piece of work; it waited for thousands."""


@pytest.fixture
def usual_interval() -> Iterator[None]:
    interval_s = sys.getswitchinterval()
    yield
    sys.setswitchinterval(interval_s)


class BusyLoop:
    """A loop without a pause, which counts its turns."""

    def __init__(self) -> None:
        self.turns = 0

    def turn(self) -> None:
        """Keep the interpreter for a moment, and do it again in the next turn."""
        self.turns += 1
        until_s = time.perf_counter() + TURN_S
        while time.perf_counter() < until_s:
            pass
        asyncio.get_running_loop().call_soon(self.turn)

    async def turns_of_work(self) -> int:
        """Return the number of turns in which another thread makes a call of the system."""
        before = self.turns
        await asyncio.to_thread(os.getppid)
        return self.turns - before


@pytest.mark.usefixtures("usual_interval")
def test_attack_h1_a_thread_waits_for_few_turns_of_a_busy_loop() -> None:
    """Orders waited for the thread of the journal while strangers' requests kept the loop busy."""
    let_threads_work()

    async def work() -> list[int]:
        busy = BusyLoop()
        busy.turn()
        return [await busy.turns_of_work() for _ in range(25)]

    assert statistics.median(uvloop.run(work())) <= TURNS_MAX


async def test_work_is_done_in_another_thread() -> None:
    assert await run_in_thread(threading.get_ident) != threading.get_ident()


@pytest.mark.case("A-11")
def test_work_for_a_thread_that_is_not_started_is_refused_and_not_done_later() -> None:
    """The pool keeps it in its queue, and did it beside the next work."""
    done: list[str] = []

    async def work() -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        with lack_of_threads(), pytest.raises(BlockingIOError, match="starts no more threads"):
            await run_in_thread(done.append, "refused")
        await run_in_thread(done.append, "later")

    asyncio.run(work())
    assert done == ["later"]


async def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="another"), starting_thread():
        raise RuntimeError("another")
