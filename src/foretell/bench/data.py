"""`foretell bench data`: reads of the data and discovery APIs, beside the bare SQL of the same run.

A history is generated in a temporary database, at two sizes with the same wallets and markets. Each read is a
whole request to the application, without a socket; the bare SQL is a hand-written statement on a connection of the store.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_word
from foretell.bench.rigs.reads.history import NOW_S, History, HistoryPlan
from foretell.bench.rigs.reads.routes import DATA, DISCOVERY, ReadCase, cases
from foretell.data.context import DataContext
from foretell.data.routes import build_app as build_data_app
from foretell.data.solvency_books import SolvencyBooks
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.command import BenchFailed
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Bytes32
from foretell.indexer.rankings import RankingContext, rebuild_sums
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.scratch import analyze, fetch_bare, scratch_store

ROWS_PER_STEP: Final = 100_000
SECONDS_PER_READ: Final = 0.4
CALLS_LEAST: Final = 20
CALLS_GROWTH: Final = 10
"""So many times the least number of calls are made, where there is time."""
BLOBS: Final = "https://blobs.example"
TIMES_BARE_MAX: Final = 3.0
GROWTH_MAX: Final = 1.3
MOST_MS: Final = 50.0
JUDGED_FROM_MS: Final = 0.5
"""Reads that take less are not compared with bare SQL: a request alone takes most of that."""

Call = Callable[[], Awaitable[object]]


class DataPlan(NamedTuple):
    """The numbers of fills, in growing order; calls of each read; PostgreSQL's server, or None for SQLite."""

    fills: tuple[int, ...] = (100_000, 1_000_000)
    wallets: int = 50_000
    markets: int = 5_000
    calls: int = CALLS_LEAST
    postgres: str | None = None


class ReadTimes(NamedTuple):
    """Milliseconds of a read, of the processor in it, and of the bare SQL."""

    name: str
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    bare_ms: float


class Timed(NamedTuple):
    """Milliseconds of some calls: passed, and used of the processor by all threads of the process."""

    passed_ms: list[float]
    cpu_ms: list[float]


def run_bench_data(plan: DataPlan, console: Console) -> int:
    """Print the times of every read at each size; return how many bars were missed."""
    runs = [uvloop.run(_measure(plan, fills, console)) for fills in plan.fills]
    table = Table("read", "bare SQL", "p50", "p99", "p50 / bare", "growth")
    missed = 0
    for index, last in enumerate(runs[-1]):
        growth = last.cpu_ms / runs[0][index].cpu_ms
        table.add_row(
            last.name,
            *(f"{each:,.2f} ms" for each in (last.bare_ms, last.p50_ms, last.p99_ms)),
            f"{last.p50_ms / last.bare_ms:.1f}",
            f"{growth:.2f}" if len(runs) > 1 else "",
        )
        missed += _misses(last, growth)
    console.print(table)
    console.print(
        f"{missed} bars missed: p99 ≤ 50 ms, p50 ≤ 3 times bare SQL, growth of processor time ≤ 1.3"
    )
    return missed


def _misses(read: ReadTimes, growth: float) -> int:
    is_slow = read.p99_ms > MOST_MS
    is_costly = read.p50_ms > JUDGED_FROM_MS and read.p50_ms > TIMES_BARE_MAX * read.bare_ms
    return is_slow + is_costly + (growth > GROWTH_MAX)


async def _measure(plan: DataPlan, fills: int, console: Console) -> Sequence[ReadTimes]:
    async with scratch_store(plan.postgres, f"foretell_bench_{new_word()[2:12]}") as database:
        began_s = time.monotonic()
        await upgrade(database)
        history = History(HistoryPlan(fills, plan.wallets, plan.markets))
        await history.write(database)
        await analyze(database)
        written_s = time.monotonic()
        await rebuild_sums(RankingContext(database, _now_ms, ROWS_PER_STEP))
        console.print(
            f"{fills:,} fills on {'SQLite' if database.is_sqlite else 'PostgreSQL'}: written in"
            f" {written_s - began_s:.0f} s, sums built in {time.monotonic() - written_s:.0f} s"
        )
        return await _times(database, cases(history.names), plan.calls)


def _now_ms() -> int:
    """Return the time at which the history ends."""
    return NOW_S * 1000


async def _times(database: Database, reads: Sequence[ReadCase], calls: int) -> list[ReadTimes]:
    """Return the times of each read; it and the bare SQL take turns."""
    apps = {
        DATA: build_data_app(DataContext(database, BLOBS, _now_ms, _no_solvency(database))),
        DISCOVERY: build_discovery_app(DiscoveryContext(database, BLOBS, _now_ms)),
    }
    found: list[ReadTimes] = []
    for case in reads:
        app = apps[case.api]
        served, bare = await _alternate(
            lambda: _request(app, case),  # noqa: B023 - called before the next case
            lambda: fetch_bare(database, case.sql, case.values),  # noqa: B023 - called before the next case
            calls,
        )
        passed = sorted(served.passed_ms)
        found.append(
            ReadTimes(
                case.name,
                statistics.median(passed),
                passed[min(len(passed) - 1, round(len(passed) * 0.99))],
                statistics.median(served.cpu_ms),
                statistics.median(bare.passed_ms),
            )
        )
    return found


def _no_solvency(database: Database) -> SolvencyBooks:
    """Return books that no read here asks for: there is no chain to compare with."""

    async def refuse(_block_hash: Bytes32) -> BackingUnits:
        raise ChainUnavailable("eth_call", "no chain")

    return SolvencyBooks(database, None, refuse, _now_ms)


async def _alternate(one: Call, other: Call, calls: int) -> tuple[Timed, Timed]:
    times = Timed([], []), Timed([], [])
    for call in (one, other):
        await call()
    until_s = time.monotonic() + SECONDS_PER_READ
    while len(times[0].cpu_ms) < calls or (
        len(times[0].cpu_ms) < CALLS_GROWTH * calls and time.monotonic() < until_s
    ):
        for call, kept in zip((one, other), times, strict=True):
            began_s, cpu_s = time.perf_counter(), time.process_time()
            await call()
            kept.passed_ms.append(1000 * (time.perf_counter() - began_s))
            kept.cpu_ms.append(1000 * (time.process_time() - cpu_s))
    return times


async def _request(app: Any, case: ReadCase) -> None:
    """Send a request to the application; anything but an answer ends the benchmark."""
    sent: list[Any] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": case.path,
        "raw_path": case.path.encode(),
        "query_string": case.query.encode(),
        "root_path": "",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(scope, receive, send)
    if sent[0]["status"] != HTTPStatus.OK:
        raise BenchFailed(f"{case.path} answered {sent[0]['status']}: {sent[-1]}")
