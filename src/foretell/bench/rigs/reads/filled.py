"""A temporary database with a generated history."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import uvloop
from rich.console import Console

from foretell.app.clock_and_ids import new_word
from foretell.bench.rigs.reads.history import History, HistoryPlan, Names
from foretell.runtime.garbage_collection import settle_memory
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.scratch import analyze, scratch_store


class _Written(NamedTuple):
    """What the reads ask for, and the seconds that the history and its sums took."""

    names: Names
    history_s: float
    sums_s: float


@contextlib.asynccontextmanager
async def filled(
    plan: HistoryPlan, postgres: str | None, console: Console
) -> AsyncIterator[tuple[Database, Names]]:
    """Give a database with a history, and what the reads ask for.

    Another process generates it, which then ends: none of it is in the memory that is measured, and searches for
    garbage do not find it.
    """
    async with scratch_store(postgres, f"foretell_bench_{new_word()[2:12]}") as database:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
            loop = asyncio.get_running_loop()
            written = await loop.run_in_executor(processes, write_history, database.url, plan)
        console.print(
            f"{plan.fills:,} fills on {'SQLite' if database.is_sqlite else 'PostgreSQL'}: written in"
            f" {written.history_s:.0f} s, sums built in {written.sums_s:.0f} s"
        )
        settle_memory()
        yield database, written.names


def write_history(url: str, plan: HistoryPlan) -> _Written:
    """Write a history and its sums into a database that is empty."""
    return uvloop.run(_write(url, History(plan)))


async def _write(url: str, history: History) -> _Written:
    async with Database(url) as database:
        await upgrade(database)
        began_s = time.monotonic()
        await history.write(database)
        written_s = time.monotonic()
        await history.write_sums(database)
        await analyze(database)
    names = history.names._replace(typical=history.typical_wallet, median=history.median_wallet)
    return _Written(names, written_s - began_s, time.monotonic() - written_s)
