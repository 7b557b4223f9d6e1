"""`foretell bench data`: reads of the data and discovery APIs and of price histories, beside the bare SQL of the same run.

A history is generated in a temporary database, at two sizes with the same wallets and markets. Each read is a
whole request to the application, without a socket; the bare SQL is a hand-written statement on a connection of the store.
Both sizes take turns, call by call: whatever slows the machine for a while slows both.
"""

import contextlib
import itertools
import statistics
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import uvloop
from rich.console import Console

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
from foretell.bench.rigs.reads.filled import filled
from foretell.bench.rigs.reads.history import HistoryPlan
from foretell.bench.rigs.reads.read_case import ReadCase
from foretell.bench.rigs.reads.routes import cases, dear_cases
from foretell.bench.rigs.reads.served import (
    answered,
    read_apps,
    request,
    with_read_process,
)
from foretell.bench.rigs.reads.stranger import (
    Processes,
    Read,
    ServingMemory,
    StrangerTimes,
    measure_stranger,
)
from foretell.bench.rigs.reads.stranger_figures import StrangerFigure, growth_words
from foretell.bench.rigs.reads.turns import Call, alternate_undisturbed, p99_of
from foretell.bench.rigs.startup import resident_bytes
from foretell.store.database import Database
from foretell.store.scratch import fetch_bare

CALLS_LEAST: Final = 100
CHEAP: Final = frozenset(
    {"traded", "value, 1,000 held", "trades of a market", "sells of a market", "activity"}
)
KEPT_REPORT: Final = "solvency"
"""An installation makes this report for itself and keeps it; so it is there before a stranger asks."""
STRANGER: Final = "127.0.0.2"
OTHERS: Final = tuple(f"127.0.1.{number}" for number in range(100))
"""Those who read beside the stranger: many clients, of whom none reads much."""


class DataPlan(NamedTuple):
    """The numbers of fills, in growing order; calls of each read; PostgreSQL's server, or None for SQLite.

    With `is_stranger` cheap reads are measured beside dear reads of another client, each so often in each phase, and
    nothing else is.
    """

    fills: tuple[int, ...] = (100_000, 1_000_000)
    wallets: int = 50_000
    markets: int = 5_000
    calls: int = CALLS_LEAST
    postgres: str | None = None
    is_stranger: bool = False
    page: Path | None = None

    def histories(self) -> list[HistoryPlan]:
        """Return the plans of the histories, in growing order."""
        return [HistoryPlan(fills, self.wallets, self.markets) for fills in self.fills]


class _Size(NamedTuple):
    """A database with a history, the applications on it, and the reads that are asked of them."""

    database: Database
    apps: Mapping[str, Any]
    reads: Sequence[ReadCase]

    def calls(self, place: int) -> tuple[Call, Call]:
        """Return a read, and its bare SQL."""
        case = self.reads[place]
        return (
            partial(answered, self.apps[case.api], case),
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
    before = usage_with(*pids)
    figures: list[StrangerFigure] = []
    for history in plan.histories():
        times = uvloop.run(_measure_beside(plan, history, pids, console))
        figures.append(StrangerFigure(history.fills, times))
        console.print(figures[-1].table())
        console.print(figures[-1].words(), soft_wrap=True)
    lines = [line for figure in figures for line in figure.lines()]
    if len(figures) > 1:
        lines += [growth_words(figures[0], figures[-1]), ""]
        console.print(lines[-2], soft_wrap=True)
    if plan.page is not None:
        others_cores = before.others_cores(usage_with(*pids))
        write_block(plan.page, name, _head(plan, database, others_cores), lines)
    return sum(figure.is_missed for figure in figures)


async def _measure(
    plan: DataPlan, pids: Sequence[int], console: Console
) -> Sequence[Sequence[ReadTimes]]:
    """Return the times of every read, for each size."""
    sizes: list[_Size] = []
    async with contextlib.AsyncExitStack() as stack:
        for history in plan.histories():
            database, names = await stack.enter_async_context(
                filled(history, plan.postgres, console)
            )
            reads = cases(names, is_sqlite=database.is_sqlite)
            sizes.append(_Size(database, read_apps(database), reads))
        times = [
            await _times(sizes, place, plan.calls, pids) for place in range(len(sizes[0].reads))
        ]
    return list(zip(*times, strict=True))


async def _measure_beside(
    plan: DataPlan, history: HistoryPlan, pids: Sequence[int], console: Console
) -> StrangerTimes:
    async with (
        filled(history, plan.postgres, console) as (database, names),
        with_read_process(database) as (apps, process),
    ):
        asked, clients = cases(names, is_sqlite=database.is_sqlite), itertools.cycle(OTHERS)
        for case in asked:
            if case.name == KEPT_REPORT:
                await answered(apps[case.api], case)
        cheap = {
            case.name: partial(_request_of_next, apps[case.api], case, clients)
            for case in asked
            if case.name in CHEAP
        }
        dear: list[Read] = [
            partial(request, apps[case.api], case, STRANGER) for case in dear_cases(names)
        ]

        def dear_pids() -> list[int]:
            return [process.process.pid] if process.process else []

        processes = Processes(
            lambda: [*pids, *dear_pids()],
            lambda: ServingMemory(resident_bytes(), sum(map(resident_bytes, dear_pids()))),
        )
        return await measure_stranger(cheap, dear, plan.calls, processes)


async def _request_of_next(app: Any, case: ReadCase, clients: Iterator[str]) -> int:
    return await request(app, case, next(clients))


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
