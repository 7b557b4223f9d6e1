"""`foretell bench data`: reads of the data and discovery APIs and of price histories, beside the bare SQL of the same run.

A history is generated in a temporary database, at two sizes with the same wallets and markets. Each read is a
whole request to the application, without a socket; the bare SQL is a hand-written statement on a connection of the store.
Both sizes take turns, call by call: whatever slows the machine for a while slows both.
"""

import asyncio
import contextlib
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import new_word
from foretell.app.read_process.application import DearReadsApplication
from foretell.app.read_process.client import DearReads
from foretell.app.read_process.messages import BeginReads
from foretell.bench.rigs.fleet_tables import server_pids
from foretell.bench.rigs.machine import usage_with
from foretell.bench.rigs.page import check_page, occasion, write_block
from foretell.bench.rigs.reads.figures import (
    BARS,
    ReadTimes,
    chart_of_reads,
    figures_of,
    markdown_of_reads,
    missed_words,
    table_of_reads,
)
from foretell.bench.rigs.reads.history import (
    EXCHANGE,
    KEPT_UNITS,
    NOW_S,
    History,
    HistoryPlan,
    Names,
)
from foretell.bench.rigs.reads.price_histories import build_history_app
from foretell.bench.rigs.reads.read_case import DATA, DISCOVERY, TRADING, ReadCase
from foretell.bench.rigs.reads.routes import cases, dear_cases
from foretell.bench.rigs.reads.stranger import Read, StrangerTimes, measure_stranger
from foretell.bench.rigs.reads.turns import CALLS_GROWTH, Call, alternate_undisturbed, p99_of
from foretell.bench.rigs.startup import resident_bytes
from foretell.data.context import DataContext
from foretell.data.dear_reads import DEAR_READS as DATA_DEAR_READS
from foretell.data.owed_reader import OwedReader
from foretell.data.refusals import data_body
from foretell.data.routes import build_app as build_data_app
from foretell.data.solvency_books import SolvencyBooks
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.dear_reads import DEAR_READS as DISCOVERY_DEAR_READS
from foretell.discovery.refusals import discovery_body
from foretell.discovery.routes import build_app as build_discovery_app
from foretell.domain.errors.command import BenchFailed
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.solvency import BackingUnits
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.edge.telemetry import AsgiApp
from foretell.runtime.garbage_collection import settle_memory
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.read_places import PublicReadLimits
from foretell.store.scratch import analyze, fetch_bare, scratch_store

CALLS_LEAST: Final = 100
MB: Final = 1e6
BLOBS: Final = "https://blobs.example"
STRANGER_RATIO_MAX: Final = 2.0
CHEAP: Final = frozenset(
    {"traded", "value, 1,000 held", "trades of a market", "sells of a market", "activity"}
)
KEPT_REPORT: Final = "solvency"
"""An installation makes this report for itself and keeps it; so it is there before a stranger asks."""
CLIENT: Final = "127.0.0.1"
STRANGER: Final = "127.0.0.2"


class DataPlan(NamedTuple):
    """The numbers of fills, in growing order; calls of each read; PostgreSQL's server, or None for SQLite.

    With `is_stranger` cheap reads are measured beside dear reads of another client, and nothing else is.
    """

    fills: tuple[int, ...] = (100_000, 1_000_000)
    wallets: int = 50_000
    markets: int = 5_000
    calls: int = CALLS_LEAST
    postgres: str | None = None
    is_stranger: bool = False
    page: Path | None = None


class _Size(NamedTuple):
    """A database with a history, the applications on it, and the reads that are asked of them."""

    database: Database
    apps: Mapping[str, Any]
    reads: Sequence[ReadCase]

    def calls(self, place: int) -> tuple[Call, Call]:
        """Return a read, and its bare SQL."""
        case = self.reads[place]
        return (
            partial(_answered, self.apps[case.api], case),
            partial(fetch_bare, self.database, case.sql, case.values),
        )


def run_bench_data(plan: DataPlan, console: Console) -> int:
    """Print the times of every read at each size, write them to a page if one is named; return the missed bars."""
    database = "SQLite" if plan.postgres is None else "PostgreSQL"
    if plan.is_stranger:
        return _print_strangers(plan, database, console)
    name = f"foretell bench data, {database}"
    if plan.page is not None:
        check_page(plan.page, name)
    pids = _server_pids(plan)
    before = usage_with(*pids)
    runs = uvloop.run(_measure(plan, pids, console))
    figures = figures_of(runs, is_sqlite=plan.postgres is None)
    missed = sum(len(figure.missed) for figure in figures)
    head = _head(plan, database, before.others_cores(usage_with(*pids)))
    console.print(table_of_reads(figures))
    console.print(head)
    console.print(f"{missed} bars missed{missed_words(figures)}; they are {BARS}")
    if plan.page is not None:
        chart = plan.page.with_name(f"data-reads-{database.lower()}.svg")
        title = f"Reads at {plan.fills[-1]:,} fills on {database}: p50 in p99; the line is the bar"
        chart.write_text(chart_of_reads(title, figures))
        picture = f"![p50 and p99 of each read on {database}]({chart.name})"
        write_block(plan.page, name, head, [markdown_of_reads(figures), "", picture, ""])
    return missed


def _server_pids(plan: DataPlan) -> tuple[int, ...]:
    """Return the database server's main process if it runs here: it works for the benchmark."""
    return () if plan.postgres is None else server_pids(plan.postgres)


def _head(plan: DataPlan, database: str, others_cores: float) -> str:
    sizes = " and ".join(f"{fills:,}" for fills in plan.fills)
    return (
        f"{occasion()} {database}, {sizes} fills of {plan.wallets:,} wallets in {plan.markets:,} markets;"
        f" other programs used {others_cores:.2f} cores."
    )


def _print_strangers(plan: DataPlan, database: str, console: Console) -> int:
    """Print the cheap reads alone and beside a stranger's at each size, and write them to a page; return the missed bars."""
    name = f"foretell bench data --stranger, {database}"
    if plan.page is not None:
        check_page(plan.page, name)
    pids = _server_pids(plan)
    before, missed = usage_with(*pids), 0
    lines: list[str] = []
    memory: list[int] = []
    for fills in plan.fills:
        times = uvloop.run(_measure_beside(plan, fills, console))
        is_missed = times.ratio > STRANGER_RATIO_MAX
        missed += is_missed
        lines.append(
            f"{fills:,} fills: the p99 of cheap reads is {times.alone_ms:.1f} ms alone and {times.beside_ms:.1f} ms"
            f" beside a stranger's {times.dear} dear reads ({times.refused} more refused): ratio {times.ratio:.2f},"
            f" bar {STRANGER_RATIO_MAX:g}, {'**missed**' if is_missed else 'met'}."
            f" The process of dear reads then has {times.process_bytes / MB:.0f} MB."
        )
        memory.append(times.process_bytes)
        console.print(lines[-1], soft_wrap=True)
    if len(memory) > 1:
        lines.append(
            f"The memory of that process at {plan.fills[-1]:,} fills is {memory[-1] / memory[0]:.2f} times that at"
            f" {plan.fills[0]:,}."
        )
        console.print(lines[-1], soft_wrap=True)
    if plan.page is not None:
        others_cores = before.others_cores(usage_with(*pids))
        write_block(plan.page, name, _head(plan, database, others_cores), lines)
    return missed


async def _measure(
    plan: DataPlan, pids: Sequence[int], console: Console
) -> Sequence[Sequence[ReadTimes]]:
    """Return the times of every read, for each size."""
    sizes: list[_Size] = []
    async with contextlib.AsyncExitStack() as stack:
        for fills in plan.fills:
            database, names = await stack.enter_async_context(_filled(plan, fills, console))
            reads = cases(names, is_sqlite=database.is_sqlite)
            sizes.append(_Size(database, read_apps(database), reads))
        times = [
            await _times(sizes, place, plan.calls, pids) for place in range(len(sizes[0].reads))
        ]
    return list(zip(*times, strict=True))


async def _measure_beside(plan: DataPlan, fills: int, console: Console) -> StrangerTimes:
    async with (
        _filled(plan, fills, console) as (database, names),
        _with_read_process(database) as (apps, process),
    ):

        def reads(chosen: Sequence[ReadCase], client: str) -> list[Read]:
            return [partial(_request, apps[case.api], case, client) for case in chosen]

        asked = cases(names, is_sqlite=database.is_sqlite)
        cheap = [case for case in asked if case.name in CHEAP]
        for report in reads([case for case in asked if case.name == KEPT_REPORT], CLIENT):
            await report()

        def memory() -> int:
            return resident_bytes(process.process.pid) if process.process else 0

        return await measure_stranger(
            reads(cheap, CLIENT),
            reads(dear_cases(names), STRANGER),
            CALLS_GROWTH * plan.calls,
            memory,
        )


@contextlib.asynccontextmanager
async def _filled(
    plan: DataPlan, fills: int, console: Console
) -> AsyncIterator[tuple[Database, Names]]:
    """Give a database with a history, and what the reads ask for.

    Nothing of the history stays in memory: searches for garbage there would delay the reads.
    """
    async with scratch_store(plan.postgres, f"foretell_bench_{new_word()[2:12]}") as database:
        await upgrade(database)
        names = await _write(
            History(HistoryPlan(fills, plan.wallets, plan.markets)), database, console
        )
        settle_memory()
        yield database, names


async def _write(history: History, database: Database, console: Console) -> Names:
    """Write a history and its sums, and return what the reads ask for."""
    began_s = time.monotonic()
    await history.write(database)
    written_s = time.monotonic()
    await history.write_sums(database)
    await analyze(database)
    console.print(
        f"{history.fills:,} fills on {'SQLite' if database.is_sqlite else 'PostgreSQL'}: written in"
        f" {written_s - began_s:.0f} s, sums built in {time.monotonic() - written_s:.0f} s"
    )
    return history.names._replace(typical=history.typical_wallet, median=history.median_wallet)


def _now_ms() -> int:
    """Return the time at which the history ends."""
    return NOW_S * 1000


async def _times(
    sizes: Sequence[_Size], place: int, least: int, pids: Sequence[int]
) -> list[ReadTimes]:
    """Return the times of a read at each size; all sizes and the bare SQL take turns.

    Times while other programs use the machine say little, so the read is measured again.
    """
    name = sizes[-1].reads[place].name
    calls = [call for size in sizes for call in size.calls(place)]
    measured = await alternate_undisturbed(calls, least, pids)
    return [
        ReadTimes(
            name,
            statistics.median(served.passed_ms),
            p99_of(served.passed_ms),
            statistics.median(served.cpu_ms),
            statistics.median(bare.passed_ms),
            measured.others_cores,
            measured.rounds,
        )
        for served, bare in zip(measured.times[::2], measured.times[1::2], strict=True)
    ]


@contextlib.asynccontextmanager
async def _with_read_process(
    database: Database,
) -> AsyncIterator[tuple[Mapping[str, AsgiApp], DearReads]]:
    """Give the applications as an installation serves them, and the process of their dear reads."""
    reads = DearReads(BeginReads(database.url, BLOBS, 0, PublicReadLimits().read_s))
    apps = read_apps(database)
    running = asyncio.create_task(reads.run())
    try:
        served = {
            DATA: DearReadsApplication(apps[DATA], DATA, DATA_DEAR_READS, reads, data_body),
            DISCOVERY: DearReadsApplication(
                apps[DISCOVERY], DISCOVERY, DISCOVERY_DEAR_READS, reads, discovery_body
            ),
        }
        yield served, reads
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def read_apps(database: Database) -> dict[str, Any]:
    """Return the applications by API, without a chain."""
    return {
        DATA: build_data_app(_data_context(database)),
        DISCOVERY: build_discovery_app(DiscoveryContext(database, BLOBS)),
        TRADING: build_history_app(database, _now_ms),
    }


def _data_context(database: Database) -> DataContext:
    """Return a context without a chain: contracts that hold nothing, and an exchange that answers at once."""

    async def hold_nothing(_: Bytes32) -> BackingUnits:
        return BackingUnits(0)

    async def keep_some(_: Address, keys: Sequence[tuple[Address, AssetId]]) -> list[int]:
        return [KEPT_UNITS] * len(keys)

    solvency = SolvencyBooks(database, None, hold_nothing, _now_ms)
    return DataContext(
        database, BLOBS, _now_ms, solvency, OwedReader((Address(EXCHANGE),), keep_some)
    )


async def _answered(app: Any, case: ReadCase) -> None:
    """Send a request to the application; anything but an answer ends the benchmark."""
    status = await _request(app, case, CLIENT)
    if status != HTTPStatus.OK:
        raise BenchFailed(f"{case.path} answered {status}")


async def _request(app: Any, case: ReadCase, client: str) -> int:
    """Send a request of a client to the application, and return the status of the answer."""
    sent: list[Any] = []
    is_sent, is_answered = asyncio.Event(), asyncio.Event()
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": case.method,
        "scheme": "http",
        "path": case.path,
        "raw_path": case.path.encode(),
        "query_string": case.query.encode(),
        "root_path": "",
        "headers": [],
        "client": (client, 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        if is_sent.is_set():
            await is_answered.wait()
            return {"type": "http.disconnect"}
        is_sent.set()
        return {"type": "http.request", "body": case.body, "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            is_answered.set()

    await app(scope, receive, send)
    return int(sent[0]["status"])
