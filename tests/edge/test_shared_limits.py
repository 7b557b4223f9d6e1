"""Limits that several processes share, over a real PostgreSQL, by a clock that the test moves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import text
from tests.rigs.clock import Clock
from tests.rigs.postgres import PostgresServer

from foretell.domain.errors.families import Unavailable
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.values.rate_leases import PART, part_of
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import DEFAULTS, RateLimits
from foretell.edge.shared_limits import SharedLimits
from foretell.edge.throttle import Turn
from foretell.store.database import Database

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("rate leases")]

STEP_MS = 50
WINDOW_MS = 10_000
ORDERS = 2_400


class Process:
    """One process that serves the trading API, and the times of the requests that it admitted."""

    def __init__(self, name: str, database: Database, clock: Clock) -> None:
        self.clock = clock
        self.shared = SharedLimits(database, name, clock.now_ms)
        self.limiter = RateLimiter("trading", RateLimits(DEFAULTS), clock.now_ms, self.shared)
        self.admitted_ms: list[int] = []
        self.refused = 0
        self.tasks: set[asyncio.Task[None]] = set()

    def send(self, method: str = "POST", path: str = "/order", client: str = "alice") -> Turn:
        turn = Turn(self.limiter, self.limiter.route(method, path), "203.0.113.1", 0)
        try:
            if turn.take(client):
                self.admitted_ms.append(self.clock.now_ms())
            else:
                self.tasks.add(asyncio.create_task(self._wait(turn)))
        except TooManyRequests:
            self.refused += 1
        return turn

    async def _wait(self, turn: Turn) -> None:
        with contextlib.suppress(TooManyRequests):
            await turn.admitted()
            self.admitted_ms.append(self.clock.now_ms())

    async def exchange(self) -> None:
        await self.shared.step()
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    def stop(self) -> None:
        for task in self.tasks:
            task.cancel()


class Processes:
    def __init__(self, database: Database, clock: Clock, count: int) -> None:
        self.clock = clock
        self.began_ms = clock.now_ms()
        self.each = [Process(f"process {number}", database, clock) for number in range(count)]

    async def play(self, seconds: float, loads: list[float]) -> None:
        """Let each process get so many times the limit, evenly, and exchange leases."""
        due = [0.0] * len(loads)
        for _ in range(round(seconds * 1000 / STEP_MS)):
            for number, load in enumerate(loads):
                due[number] += load * ORDERS * STEP_MS / WINDOW_MS
                while due[number] >= 1:
                    due[number] -= 1
                    self.each[number].send()
            for process in self.each:
                await process.exchange()
            self.clock.move(STEP_MS)

    def times(self) -> list[int]:
        return sorted(time for process in self.each for time in process.admitted_ms)

    def admitted(self, from_s: float, to_s: float) -> int:
        begin, end = self.began_ms + from_s * 1000, self.began_ms + to_s * 1000
        return sum(begin <= time < end for time in self.times())

    def most_in_a_window(self) -> int:
        times, first, most = self.times(), 0, 0
        for at, time in enumerate(times):
            while times[first] <= time - WINDOW_MS:
                first += 1
            most = max(most, at - first + 1)
        return most


@pytest.fixture
async def database(postgres: PostgresServer) -> AsyncIterator[Database]:
    async with Database(postgres.database_url) as database:
        async with database.writing() as tx:
            await tx.execute(text("DELETE FROM rate_leases"))
        yield database


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    "loads",
    [[0.5, 0.5], [1.0, 1.0], [5.0, 5.0], [0.1, 1.9], [10.0, 0.0], [1.0, 1.0, 8.0]],
    ids=["1x", "2x", "10x", "2x, uneven", "10x at one", "10x at three"],
)
async def test_processes_share_a_limit_within_the_stated_bound(
    database: Database, clock: Clock, loads: list[float]
) -> None:
    """N processes admit at most N/64 too much, and (N - 1)/64 and 2 % too little."""
    processes = Processes(database, clock, len(loads))
    await processes.play(20, loads)
    for process in processes.each:
        process.stop()
    count = len(loads)
    most = ORDERS + count * part_of(ORDERS)
    assert processes.most_in_a_window() <= most
    least = (1 - (count - 1) / PART - 0.02) * ORDERS * 2
    assert processes.admitted(0, 20) >= least


async def test_a_client_that_moves_to_another_process_does_not_start_again(
    database: Database, clock: Clock
) -> None:
    processes = Processes(database, clock, 2)
    await processes.play(5, [2.0, 0.0])
    assert processes.admitted(0, 5) >= ORDERS * 0.98
    await processes.play(4, [0.0, 2.0])
    assert processes.admitted(5, 9) <= 2 * part_of(ORDERS)
    await processes.play(6, [0.0, 2.0])
    assert processes.admitted(9, 15) >= ORDERS * 0.95
    assert processes.most_in_a_window() <= ORDERS + 2 * part_of(ORDERS)
    for process in processes.each:
        process.stop()


async def test_a_client_with_few_requests_needs_no_round_trip(
    database: Database, clock: Clock
) -> None:
    process = Process("one", database, clock)
    for _ in range(part_of(ORDERS) // 2):
        process.send()
    assert len(process.admitted_ms) == part_of(ORDERS) // 2
    await process.exchange()
    async with database.reading() as tx:
        assert await tx.scalar(text("SELECT count(*) FROM rate_leases")) == 0


async def test_the_headers_say_what_other_processes_left(database: Database, clock: Clock) -> None:
    processes = Processes(database, clock, 2)
    await processes.play(1, [2.0, 0.5])
    headers = dict(processes.each[1].send().header_lines())
    assert headers["ratelimit-limit"] == "2400"
    used = len(processes.times())
    assert 0 <= 2_400 - used - int(headers["ratelimit-remaining"]) <= 2 * part_of(ORDERS)


async def test_without_the_database_each_process_admits_the_whole_limit(clock: Clock) -> None:
    database = Database("postgresql+asyncpg://nobody@127.0.0.1:1/none")
    process = Process("one", database, clock)
    for _ in range(ORDERS):
        process.send()
    with pytest.raises(Unavailable):
        await process.exchange()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(process.admitted_ms) == ORDERS
    await database.close()


async def test_a_process_that_ended_leaves_its_leases_until_they_expire(
    database: Database, clock: Clock
) -> None:
    processes = Processes(database, clock, 1)
    await processes.play(1, [10.0])
    processes.each[0].stop()
    heir = Process("heir", database, clock)
    for _ in range(ORDERS):
        heir.send()
    for _ in range(3):
        await heir.exchange()
    assert len(heir.admitted_ms) <= part_of(ORDERS)
    async with database.writing() as tx:
        await tx.execute(text("UPDATE rate_leases SET expires_at_ms = 0 WHERE process <> 'heir'"))
    await heir.exchange()
    await heir.exchange()
    assert len(heir.admitted_ms) >= ORDERS * 0.98
    heir.stop()
