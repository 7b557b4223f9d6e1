"""Work in threads that the system does not start."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.runtime.lack_of_threads import lack_of_threads

from foretell.runtime.threads import run_in_thread, starting_thread

pytestmark = pytest.mark.anyio


async def test_work_is_done_in_another_thread() -> None:
    assert await run_in_thread(threading.get_ident) != threading.get_ident()


@pytest.mark.case("A-11")
async def test_work_for_a_thread_that_is_not_started_is_refused_and_not_done_later() -> None:
    """The pool keeps it in its queue, and did it beside the next work."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    done: list[str] = []
    with lack_of_threads(), pytest.raises(BlockingIOError, match="starts no more threads"):
        await run_in_thread(done.append, "refused")
    await run_in_thread(done.append, "later")
    assert done == ["later"]


async def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="another"), starting_thread():
        raise RuntimeError("another")
