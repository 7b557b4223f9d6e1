import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
import uvloop
from tests.journal.files.rig import Client

from foretell.journal.files.pending_events import pending_events

Run = Callable[[Coroutine[Any, Any, None]], None]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    function: Run = request.param
    return function


async def until_idle() -> None:
    """Let the loop handle what has come until now."""
    await asyncio.sleep(0.01)


def test_bytes_of_a_client_wait_until_the_loop_reads_them(run: Run) -> None:
    async def check() -> None:
        client, has_pending = Client(), pending_events(asyncio.get_running_loop())
        await until_idle()
        assert not has_pending()
        client.send()
        assert has_pending()
        await until_idle()
        assert client.received == [b"x"]
        assert not has_pending()
        client.close()

    run(check())


def test_results_of_other_threads_wait_too(run: Run) -> None:
    async def check() -> None:
        loop, came = asyncio.get_running_loop(), asyncio.Event()
        has_pending = pending_events(loop)
        await until_idle()
        loop.call_soon_threadsafe(came.set)
        assert has_pending()
        await came.wait()
        await until_idle()
        assert not has_pending()

    run(check())
