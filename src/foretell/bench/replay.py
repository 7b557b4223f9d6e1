"""`foretell bench replay`: how fast a start is, with many open orders and many commands to fold (replay).

The ceiling is the engine alone, given the same commands in memory. Everything is measured in
processes that are new each time, as a start is one.
"""

import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.exchange import seconds_until_ready
from foretell.bench.rigs.journal_fixture import write_past
from foretell.bench.rigs.machine import disturbance, others_words, undisturbed
from foretell.bench.rigs.startup import (
    FoldFigures,
    Restored,
    apply_in_memory,
    journal_of,
    start_engine,
)
from foretell.bench.rigs.world import make_world
from foretell.domain.errors.command import BenchFailed
from foretell.domain.values.sharding import ALONE
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.trading.trades import record_sequence

READY_S: Final = 10.0
"""A start should take no longer."""

T = TypeVar("T")


class StartRound(NamedTuple):
    """A start of the engine, the same commands in memory, and a start of the API."""

    replay: FoldFigures
    restored: Restored
    ready_s: float

    @property
    def ratio(self) -> float:
        """How fast the start was, of what the engine alone can do."""
        return self.replay.per_s / self.restored.folded.per_s

    @property
    def others_cores(self) -> float:
        """How many cores others kept busy, at the worse of the two."""
        return max(self.replay.others_cores, self.restored.folded.others_cores)


def run_bench_replay(rounds: int, orders: int, events: int, console: Console) -> None:
    """Write a journal, start from it round after round, and print the ratio."""
    master_key = new_key()
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        console.print(f"writing {events:,} commands that come after {orders:,} open orders")
        uvloop.run(_prepare(folder, master_key, orders, events))
        console.print("starting from them, again and again")
        measured = [_measure(folder, master_key) for _ in range(rounds)]
    console.print(_table_of(measured))
    counted = undisturbed(measured)
    ratio, ready_s, restored_s, bytes_per_order = (
        statistics.median(figures) for figures in zip(*map(_figures, counted), strict=True)
    )
    console.print(
        f"replay: {ratio:.2f} records of the journal for each command that the engine takes in"
        f" memory, with equal digests (median of {len(counted)} rounds)"
    )
    console.print(
        f"restart: ready after {ready_s:.1f} s, of which the snapshot takes {restored_s:.1f} s;"
        f" it should be {READY_S:.0f} s for 200,000 open orders and 1,000,000 commands"
    )
    console.print(f"memory: {bytes_per_order:,.0f} bytes for each resting order")
    if words := disturbance(measured):
        console.print(words)


def _figures(shown: StartRound) -> tuple[float, ...]:
    restored = shown.restored
    return shown.ratio, shown.ready_s, restored.seconds, restored.bytes_per_order


def _table_of(measured: list[StartRound]) -> Table:
    columns = ("round", "records/s", "engine commands/s", "ratio", "ready s", "cores of others")
    table = Table(*columns)
    for number, shown in enumerate(measured, 1):
        table.add_row(
            str(number),
            f"{shown.replay.per_s:,.0f}",
            f"{shown.restored.folded.per_s:,.0f}",
            f"{shown.ratio:.2f}",
            f"{shown.ready_s:.1f}",
            others_words(shown.others_cores),
        )
    return table


def _measure(folder: Path, master_key: bytes) -> StartRound:
    shown = StartRound(
        replay=_in_new_process(start_engine, folder),
        restored=_in_new_process(apply_in_memory, folder),
        ready_s=_in_new_process(seconds_until_ready, folder, master_key),
    )
    if shown.replay.digest != shown.restored.folded.digest:
        raise BenchFailed("the replay ended in another state than the commands in memory")
    return shown


def _in_new_process(work: Callable[..., T], *arguments: object) -> T:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work, *arguments).result()


async def _prepare(folder: Path, master_key: bytes, orders: int, events: int) -> None:
    """Write the journal, and tables that say that they know all of it."""
    sequence = await write_past(journal_of(folder), make_world(master_key), orders, events)
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as database:
        await upgrade(database)
        async with database.writing() as tx:
            await record_sequence(tx, ALONE.name, sequence)
