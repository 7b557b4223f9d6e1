"""Dear reads in a process of their own: the same answers, and bounds on all that waits; on both databases."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, a_data_context

from foretell.app.clock_and_ids import now_ms
from foretell.app.read_process import client
from foretell.app.read_process.application import DearReadsApplication
from foretell.app.read_process.client import DearReadLimits, DearReads
from foretell.app.read_process.messages import PART_BYTES_MAX, BeginReads, message, parts_of
from foretell.bench.rigs.reads.history import History, HistoryPlan
from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.refusals import data_body
from foretell.data.routes import build_app as build_data_app
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.dear_reads import DEAR_READS as DISCOVERY_DEAR_READS
from foretell.discovery.refusals import discovery_body
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import ReadsBusy
from foretell.runtime.child_processes import RestartBackoff
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits, WaitBounds
from foretell.store.public_reads.rests import ReadRests

pytestmark = pytest.mark.anyio

PLAN = HistoryPlan(fills=2_000, wallets=50, markets=40)
SOON_S = 180.0
"""Every deadline but those of a test: a busy machine may take longer than the usual ones."""
BESIDE_S = 3_600.0
"""For so long a process works beside others which leave no time: longer than any test."""
LOWEST_PRIORITY = 19
LIMITS = DearReadLimits(
    restarts=RestartBackoff(first_s=0.01, most_s=0.05),
    bounds=WaitBounds(wait_s=SOON_S, per_client=50, total=200),
    begins_s=600.0,
    start_s=SOON_S,
    answer_s=SOON_S,
    starved_after_s=SOON_S,
    hangs_after_s=10 * SOON_S,
)
ALL_TRADES = "/trades?limit=10000&takerOnly=false"
LOOK_S = 0.01


class Rig(NamedTuple):
    """The reads, and clients of both APIs: by themselves, and with a process for dear reads."""

    reads: DearReads
    application: DearReadsApplication
    plain: dict[str, httpx.AsyncClient]
    served: dict[str, httpx.AsyncClient]
    stranger: httpx.AsyncClient
    rests: ReadRests

    async def process_id(self) -> int:
        """Return the id of the process once there is one."""
        async with asyncio.timeout(SOON_S):
            while self.reads.process is None:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        return self.reads.process.pid

    async def yielding_process_id(self) -> int:
        """Return the id of the process once it works where others leave time."""
        async with asyncio.timeout(SOON_S):
            while os.sched_getscheduler(found := await self.process_id()) != os.SCHED_IDLE:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        return found

    async def reads_again(self) -> int:
        """Ask until a read is not refused, and return the status of its answer."""
        async with asyncio.timeout(SOON_S):
            while (status := (await self.served["data"].get(ALL_TRADES)).status_code) == 503:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        return status


@asynccontextmanager
async def a_rig(
    url: str, limits: DearReadLimits = LIMITS, *, yields: bool = False
) -> AsyncIterator[Rig]:
    """Run the reads of a database; the process yields to others only where a test is about that.

    Beside programs that are always busy it would have no time to answer within any deadline.
    """
    async with Database(url, PublicReadLimits(read_s=SOON_S)) as database:
        await History(PLAN).write(database)
        reads = DearReads(BeginReads(url, BLOBS, 3, SOON_S), database.read_rests, limits)
        if not yields:
            reads._beside_until_s = asyncio.get_running_loop().time() + BESIDE_S
        data = an_app(build_data_app, a_data_context(database, BLOBS, now_ms))
        context = DiscoveryContext(database, BLOBS, sports_delay_s=3)
        discovery = an_app(build_discovery_app, context)
        served = {
            "data": DearReadsApplication(data, "data", DATA_DEAR_READS, reads, data_body),
            "discovery": DearReadsApplication(
                discovery, "discovery", DISCOVERY_DEAR_READS, reads, discovery_body
            ),
        }
        running = asyncio.create_task(reads.run())
        try:
            plain = {"data": client_of(data), "discovery": client_of(discovery)}
            clients = {name: client_of(app) for name, app in served.items()}
            stranger = client_of(served["data"], "10.0.0.2")
            yield Rig(reads, served["data"], plain, clients, stranger, database.read_rests)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        assert reads.process is None


@asynccontextmanager
async def a_busy_processor() -> AsyncIterator[int]:
    """Keep one of the processors busy, and give its number."""
    processor = max(os.sched_getaffinity(0))
    busy = await asyncio.create_subprocess_exec(sys.executable, "-c", "while True: pass")
    try:
        os.sched_setaffinity(busy.pid, [processor])
        yield processor
    finally:
        busy.kill()
        await busy.wait()


def pin(process_id: int, processor: int) -> None:
    """Let all threads of a process run on one processor only."""
    for task in Path(f"/proc/{process_id}/task").iterdir():
        os.sched_setaffinity(int(task.name), [processor])


def client_of(app: object, address: str = "10.0.0.1") -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))  # type: ignore[arg-type]  # Litestar's own ASGI types
    return httpx.AsyncClient(transport=transport, base_url="http://api.test", timeout=SOON_S)


@pytest.fixture
async def rig(each_database_url: str) -> AsyncIterator[Rig]:
    async with a_rig(each_database_url) as rig:
        yield rig


@pytest.fixture
def sqlite_url(fresh_database: Database) -> str:
    return fresh_database.url


async def test_all_reads_of_a_client_that_reads_much_go_to_the_process_while_others_read_little(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: list[str] = []
    read = rig.reads.read

    async def counted(api: str, path: str, *rest: Any) -> Any:
        moved.append(path)
        return await read(api, path, *rest)

    monkeypatch.setattr(rig.reads, "read", counted)
    await rig.served["data"].get(ALL_TRADES)
    moved.clear()
    cheap = f"/positions?user={History(PLAN).names.whale}&limit=5"
    alone = (await rig.plain["data"].get(cheap)).json()
    now_s = rig.rests.now_s()
    with pytest.MonkeyPatch.context() as stopping:
        stopping.setattr(rig.rests, "now_s", lambda: now_s)
        async with asyncio.timeout(SOON_S):
            while not rig.rests.yields("10.0.0.1"):
                assert moved == []
                await rig.served["data"].get(cheap)
                rig.rests.begin("10.0.0.2")
        assert (await rig.served["data"].get(cheap)).json() == alone
        assert (await rig.stranger.get(cheap)).json() == alone
        assert moved == ["/positions"]
    monkeypatch.setattr(client, "MOVED_WAITING_MAX", 0)
    assert (await rig.served["data"].get(cheap)).json() == alone
    assert moved == ["/positions"], "those that must not wait there are answered here"


async def test_dear_reads_have_the_same_answers_in_their_process(rig: Rig) -> None:
    asked = [
        ("data", ALL_TRADES),
        ("data", f"/positions?user={History(PLAN).names.whale}&limit=500&title=number"),
        ("data", "/trades?filterType=CASH&filterAmount=1"),
        ("data", "/trades?filterAmount=1"),
        ("data", "/trades?limit=10001"),
        ("data", "/trades?limit=500&strict=true&other=1"),
        ("discovery", "/markets?order=liquidity&limit=100"),
        ("discovery", "/events?order=volume1yr"),
        ("discovery", "/events/keyset?limit=25"),
        ("discovery", "/markets?order=nothing"),
    ]
    statuses: set[int] = set()
    for api, path in asked:
        served = await rig.served[api].get(path)
        plain = await rig.plain[api].get(path)
        assert (served.status_code, served.content) == (plain.status_code, plain.content), path
        assert dict(served.headers) == dict(plain.headers), path
        statuses.add(served.status_code)
    assert statuses == {200, 400, 422}
    assert rig.reads.process is not None


@pytest.mark.parametrize(
    "path",
    [
        "/trades/?limit=500",
        "//trades?limit=500",
        "/trades//?limit=500",
        "/trades?limit[]=500",
        "/trades?limit%5B%5D=500",
        "/trades?limit=&limit[]=500",
        "/trades?filterType=CASH&filterAmount[]=1",
    ],
)
async def test_no_other_spelling_of_a_dear_read_is_answered_in_the_serving_process(
    sqlite_url: str, path: str
) -> None:
    async with a_rig(sqlite_url) as rig:
        served = await rig.served["data"].get(f"http://api.test{path}")
        plain = await rig.plain["data"].get(f"http://api.test{path}")
        assert (served.status_code, served.content) == (200, plain.content)
        assert rig.reads.process is not None


async def test_a_dear_answer_that_the_client_has_is_not_sent_again(rig: Rig) -> None:
    first = await rig.served["data"].get(ALL_TRADES)
    assert len(first.content) > 2 * PART_BYTES_MAX
    again = await rig.served["data"].get(
        ALL_TRADES, headers={"if-none-match": first.headers["etag"]}
    )
    assert (again.status_code, again.content) == (304, b"")


async def test_another_method_is_refused_without_a_process(rig: Rig) -> None:
    answer = await rig.served["data"].post(ALL_TRADES)
    assert answer.status_code == 405
    assert rig.reads.process is None


async def test_cheap_reads_start_no_process(sqlite_url: str) -> None:
    async with a_rig(sqlite_url) as rig:
        for path in ("/trades", "/trades?limit=100&offset=1000", "/oi", "/trades?limit=many"):
            assert (await rig.served["data"].get(path)).status_code in {200, 400}
        for path in ("/markets?limit=20", "/markets?order=title&closed=false"):
            assert (await rig.served["discovery"].get(path)).status_code == 200
        assert rig.reads.process is None


async def test_the_process_begins_before_the_first_dear_read(sqlite_url: str) -> None:
    """A finding: on a busy machine a client gave up before the process had started for its read."""
    async with a_rig(sqlite_url, LIMITS._replace(begins_s=0.0)) as rig:
        await rig.process_id()
        assert rig.reads.in_flight == 0


async def test_the_read_of_a_process_that_is_killed_is_refused_and_the_next_one_answered(
    sqlite_url: str,
) -> None:
    async with a_rig(sqlite_url) as rig:
        await rig.served["data"].get(ALL_TRADES)
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        reading = asyncio.create_task(rig.served["data"].get(ALL_TRADES))
        async with asyncio.timeout(SOON_S):
            while not rig.reads.in_flight:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        os.kill(process_id, signal.SIGKILL)
        answer = await reading
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert (await rig.served["data"].get(ALL_TRADES)).status_code == 200
        assert await rig.process_id() != process_id


class Clock:
    """A clock that stands still, and the use of clients by it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.rests = ReadRests(now_s=lambda: self.now_s)


async def test_a_client_that_waits_behind_others_is_not_counted_as_one_that_reads(
    sqlite_url: str,
) -> None:
    """It was, and its cheap reads were sent to the process, behind the same others."""
    async with a_rig(sqlite_url) as rig:
        await rig.served["data"].get(ALL_TRADES)
        clock = Clock()
        rig.reads.rests = clock.rests
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        reads = [
            asyncio.create_task(rig.reads.read("data", "/trades", b"limit=101", client, b""))
            for client in ("one", "two", "waits")
        ]
        await asyncio.sleep(0)
        clock.now_s += 1.0
        os.kill(process_id, signal.SIGCONT)
        async with asyncio.timeout(SOON_S):
            await asyncio.gather(*reads)
        clock.rests.begin("other")
        assert [clock.rests.yields(each) for each in ("one", "two", "waits")] == [True, True, False]


async def test_a_dear_read_that_is_refused_in_the_end_is_use_of_its_client(sqlite_url: str) -> None:
    async with a_rig(sqlite_url) as rig:
        await rig.served["data"].get(ALL_TRADES)
        clock = Clock()
        rig.reads.rests = clock.rests
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        reading = asyncio.create_task(rig.served["data"].get(ALL_TRADES))
        async with asyncio.timeout(SOON_S):
            while not rig.reads.in_flight:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        clock.now_s += 1.0
        os.kill(process_id, signal.SIGKILL)
        assert (await reading).status_code == 503
        clock.rests.begin("other")
        assert clock.rests.yields("10.0.0.1")


async def test_a_process_that_hangs_is_killed_some_time_after_the_deadline_of_a_read(
    sqlite_url: str,
) -> None:
    limits = LIMITS._replace(check_every_s=LOOK_S)
    async with a_rig(sqlite_url, limits) as rig:
        assert (await rig.served["data"].get(ALL_TRADES)).status_code == 200
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        rig.reads._beside_until_s = 0.0  # the next one yields, unless this one hangs
        rig.reads.limits = limits._replace(answer_s=0.2, hangs_after_s=0.5)
        answer = await rig.served["data"].get(ALL_TRADES)
        assert answer.status_code == 503
        assert f"the read took longer than {SOON_S:g} s" in answer.text
        rig.reads.limits = limits._replace(hangs_after_s=0.5)
        assert await rig.reads_again() == 200
        replacing = await rig.process_id()
        assert replacing != process_id
        assert os.sched_getscheduler(replacing) == os.SCHED_OTHER, "others may be why it hung"


async def test_a_process_that_answers_late_is_no_hanging_one(sqlite_url: str) -> None:
    """A finding: on a busy machine the process was killed while it started, again and again."""
    limits = LIMITS._replace(check_every_s=LOOK_S)
    async with a_rig(sqlite_url, limits) as rig:
        assert (await rig.served["data"].get(ALL_TRADES)).status_code == 200
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        rig.reads.limits = limits._replace(answer_s=0.2)
        assert (await rig.served["data"].get(ALL_TRADES)).status_code == 503
        rig.reads.limits = limits
        os.kill(process_id, signal.SIGCONT)
        assert (await rig.served["data"].get(ALL_TRADES)).status_code == 200
        assert await rig.process_id() == process_id


async def test_a_client_that_leaves_keeps_its_place_until_its_read_is_answered(
    sqlite_url: str,
) -> None:
    """Reads that clients leave could wait in the process without a bound."""
    async with a_rig(sqlite_url, LIMITS._replace(bounds=WaitBounds(wait_s=0.2))) as rig:
        await rig.served["data"].get(ALL_TRADES)
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)
        for client_name in ("one", "two"):
            reading = asyncio.create_task(
                rig.reads.read("data", "/trades", b"limit=101", client_name, b"")
            )
            while not rig.reads.in_flight:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
        with pytest.raises(ReadsBusy):
            await rig.reads.read("data", "/trades", b"limit=101", "three", b"")
        os.kill(process_id, signal.SIGCONT)
        assert await rig.reads_again() == 200
        assert await rig.process_id() == process_id


async def test_a_process_that_others_leave_no_time_is_replaced_by_one_that_works_beside_them(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: on a busy machine dear reads were refused for as long as other programs had work."""
    limits = LIMITS._replace(check_every_s=LOOK_S, starved_after_s=0.5, yields_again_after_s=20.0)
    async with a_rig(sqlite_url, limits, yields=True) as rig, a_busy_processor() as processor:
        assert await rig.reads_again() == 200
        process_id = await rig.yielding_process_id()
        pin(process_id, processor)
        assert await rig.reads_again() == 200
        replacing = await rig.process_id()
        assert replacing != process_id
        assert os.sched_getscheduler(replacing) == os.SCHED_OTHER
        assert await rig.yielding_process_id() == replacing
        rig.reads.limits = limits._replace(starved_after_s=SOON_S)
        begun = begins(monkeypatch)
        os.kill(replacing, signal.SIGKILL)
        async with asyncio.timeout(SOON_S):
            while not begun:  # noqa: ASYNC110 - publishes no event
                await asyncio.sleep(LOOK_S)
        assert {each.yields_after_s for each in begun} == {0.0}, "from its start on"
        assert await rig.yielding_process_id() != replacing
        rig.reads.limits = limits
        assert await rig.reads_again() == 200


def begins(monkeypatch: pytest.MonkeyPatch) -> list[BeginReads]:
    """Return a list of what processes are given at their begin from now on."""
    noted: list[BeginReads] = []

    def note(sent: Any) -> bytes:
        noted.extend([sent] if isinstance(sent, BeginReads) else [])
        return message(sent)

    monkeypatch.setattr(client, "message", note)
    return noted


async def test_the_queue_of_dear_reads_has_an_end_for_each_client_and_for_all(
    sqlite_url: str,
) -> None:
    bounds = WaitBounds(wait_s=SOON_S, per_client=2, total=3)
    async with a_rig(sqlite_url, LIMITS._replace(bounds=bounds)) as rig:
        await rig.served["data"].get(ALL_TRADES)
        os.kill(process_id := await rig.process_id(), signal.SIGSTOP)

        async def read(client: str) -> int:
            answer = await rig.reads.read("data", "/trades", b"limit=101", client, b"")
            return answer.head.status

        reading = [asyncio.create_task(read(client)) for client in ("one", "two") * 2]
        await asyncio.sleep(0)
        last = asyncio.create_task(read("one"))
        await asyncio.sleep(0)
        with pytest.raises(TooManyRequests):
            await read("one")
        stranger = asyncio.create_task(rig.stranger.get(ALL_TRADES))
        with pytest.raises(ReadsBusy):
            await last
        os.kill(process_id, signal.SIGCONT)
        async with asyncio.timeout(SOON_S):
            assert await asyncio.gather(*reading) == [200] * 4
            assert (await stranger).status_code == 200


async def test_the_process_works_where_others_leave_time(sqlite_url: str) -> None:
    async with a_rig(sqlite_url, LIMITS._replace(begins_s=0.0), yields=True) as rig:
        process_id, own = await rig.yielding_process_id(), os.getpriority(os.PRIO_PROCESS, 0)
        assert os.getpriority(os.PRIO_PROCESS, process_id) >= min(own + 1, LOWEST_PRIORITY)


async def test_the_process_ends_with_the_one_that_it_serves(sqlite_url: str) -> None:
    async with a_rig(sqlite_url) as rig:
        await rig.served["data"].get(ALL_TRADES)
        process = rig.reads.process
        assert process is not None
        await rig.reads.stop()
        async with asyncio.timeout(SOON_S):
            assert await process.wait() == 0


@pytest.mark.parametrize("size", [0, 1, PART_BYTES_MAX, PART_BYTES_MAX + 1, 3 * PART_BYTES_MAX])
def test_the_parts_of_a_body_are_bounded_and_make_it_whole(size: int) -> None:
    body = os.urandom(size)
    parts = parts_of(7, body)
    assert b"".join(part.content for part in parts) == body
    assert [part.is_last for part in parts] == [False] * (len(parts) - 1) + [True]
    assert max(len(part.content) for part in parts) <= PART_BYTES_MAX
