"""Starts over a journal, and processes that lack files or memory."""

import asyncio
import contextlib
import os
import random
import resource
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from tests.faults.people import BUYERS, MARKETS
from tests.faults.processes import Member, Processes
from tests.faults.rig import FaultRig, a_fault_rig
from tests.rigs.values import an_asset

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

CYCLES: Final = max(1, int(os.environ.get("FORETELL_TEST_CYCLES", "3")) // 20)
ANSWERS: Final = 15
LOOKS: Final = 10
ORDERS: Final = 10
WITHIN_S: Final = 180.0
LOOK_S: Final = 0.01
STARTING: Final = 425
TOKEN_ID: Final = an_asset(is_yes=True, market=MARKETS[0])


@pytest.fixture
async def exchange(
    made: Processes, tmp_path: Path, empty_database: Path
) -> AsyncIterator[FaultRig]:
    async with a_fault_rig(tmp_path, empty_database, made, random.Random(1)) as exchange:
        yield exchange


async def look(exchange: FaultRig) -> httpx.Response | None:
    """Return the answer to a request for a book; None while nothing listens."""
    url = f"http://127.0.0.1:{exchange.port}/book"
    async with httpx.AsyncClient(trust_env=False, timeout=60) as http:
        try:
            return await http.get(url, params={"token_id": TOKEN_ID})
        except httpx.TransportError:
            return None


async def first_served(exchange: FaultRig, starting: Member) -> httpx.Response:
    """Return the first answer that is no refusal, and let the replay begin after a few refusals."""
    refused = 0
    async with asyncio.timeout(WITHIN_S):
        while True:
            answer = await look(exchange)
            if answer is None:
                await asyncio.sleep(LOOK_S)
            elif answer.status_code == STARTING:
                assert answer.headers["retry-after"] == "1"
                assert refused >= LOOKS or not starting.served.is_set()
                refused += 1
                if refused == LOOKS:
                    exchange.armed.unlink()
            else:
                assert refused >= LOOKS
                return answer


@pytest.mark.case("A-07")
async def test_nothing_is_served_before_the_journal_is_replayed_and_then_everything(
    exchange: FaultRig,
) -> None:
    """The replay is held until requests were refused; the first that is served has the whole book."""
    serving = await exchange.start()
    buyer = exchange.people[BUYERS[0]]
    for number in range(ORDERS):
        await buyer.place(buyer.order(price=20 + number))
    before = await look(exchange)
    assert before is not None
    book = before.json()["bids"]
    assert len(book) == ORDERS
    await serving.kill()
    exchange.armed.touch()
    starting = await exchange.processes.start(
        exchange.folder, ["trading"], exchange.environment, "held_start"
    )
    answer = await first_served(exchange, starting)
    assert (answer.status_code, answer.json()["bids"]) == (200, book)
    await starting.serves()
    await exchange.check()


def used_bytes(pid: int) -> int:
    """Return the address space of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[0])
    return pages * resource.getpagesize()


def lack_files(pid: int) -> tuple[int, int]:
    """Let a process open no file or connection more."""
    opened = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    return resource.prlimit(pid, resource.RLIMIT_NOFILE, (opened, HARD_FILES))


def lack_memory(pid: int) -> tuple[int, int]:
    """Give a process no more memory than it has."""
    return resource.prlimit(pid, resource.RLIMIT_AS, (used_bytes(pid), resource.RLIM_INFINITY))


HARD_FILES: Final = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
LIMITS: Final = {
    "files": (lack_files, resource.RLIMIT_NOFILE),
    "memory": (lack_memory, resource.RLIMIT_AS),
}


@pytest.mark.case("A-11")
@pytest.mark.parametrize("lack", LIMITS)
async def test_a_process_that_lacks_files_or_memory_loses_and_doubles_nothing(
    exchange: FaultRig, lack: str
) -> None:
    """It goes on, or ends; whichever it is, what was acknowledged stays, and nothing else appears."""
    act, limit = LIMITS[lack]
    for _ in range(CYCLES):
        serving = await exchange.start()
        exchange.is_over = False
        trading = asyncio.create_task(exchange.trade_on())
        await exchange.more_answers(ANSWERS)
        pid = await serving.pid
        before = act(pid)
        await connect_often(exchange)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, limit, before)
        serving = await go_on(exchange, serving)
        exchange.is_over = True
        await trading
        await exchange.check()
        await serving.kill()
    await exchange.start()
    await exchange.check()


async def go_on(exchange: FaultRig, serving: Member) -> Member:
    """Wait for more answers of a process, or of its successor if it ends first; return which it was."""
    answering = asyncio.create_task(exchange.more_answers(ANSWERS))
    either: set[asyncio.Future[Any]] = {answering, serving.code}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if serving.code.done():
        serving = await exchange.start()
    await answering
    return serving


async def connect_often(exchange: FaultRig) -> None:
    """Make requests over connections of their own, which may all fail."""
    for _ in range(LOOKS):
        async with httpx.AsyncClient(trust_env=False, timeout=1.0) as http:
            with contextlib.suppress(httpx.TransportError):
                await http.get(f"http://127.0.0.1:{exchange.port}/ok")
