"""`foretell bench replay`: a start with many open orders and many commands to replay (replay).

The ceiling is the engine alone with the same commands in memory. Everything is measured in new
processes, because a start is a new process.
"""

import statistics
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import new_key
from foretell.bench.rigs.exchange import seconds_until_ready
from foretell.bench.rigs.figures import READY, REPLAY, Measurement
from foretell.bench.rigs.journal_fixture import write_journal_fixture
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
from foretell.store.trading.trades import advance_sequence

READY_S: Final = 10.0
"""The time that a start should not exceed."""

T = TypeVar("T")
Run = Callable[..., Any]


class StartRound(NamedTuple):
    """A start of the engine, the same commands in memory, and a start of the API."""

    replay: FoldFigures
    restored: Restored
    ready_s: float

    @property
    def ratio(self) -> float:
        """The speed of the start for each command of the engine alone."""
        return self.replay.per_s / self.restored.folded.per_s

    @property
    def others_cores(self) -> float:
        """Cores that other programs kept busy, at the worse of the two."""
        return max(self.replay.others_cores, self.restored.folded.others_cores)


def run_bench_replay(rounds: int, orders: int, events: int, console: Console) -> list[Measurement]:
    """Write a journal, start from it round after round, and print the ratio."""
    master_key = new_key()
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        folder = Path(name)
        console.print(f"writing {events:,} commands that come after {orders:,} open orders")
        uvloop.run(_prepare(folder, master_key, orders, events))
        console.print("measuring starts from them")
        measured = [measure_start(folder, master_key) for _ in range(rounds)]
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
        f" the target is {READY_S:.0f} s for 200,000 open orders and 1,000,000 commands"
    )
    console.print(f"memory: {bytes_per_order:,.0f} bytes for each resting order")
    if words := disturbance(measured):
        console.print(words)
    alone_per_s = statistics.median(one.restored.folded.per_s for one in counted)
    alone = f"the engine alone: {alone_per_s:,.0f} commands/s"
    return [
        Measurement(READY, ready_s, f"{alone}; {restored_s:.1f} s of the snapshot"),
        Measurement(REPLAY, ratio, alone),
    ]


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


def in_new_process(work: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function that runs in a new process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work, *arguments).result()


def measure_start(folder: Path, master_key: bytes, run: Run = in_new_process) -> StartRound:
    """Return a round; refuse a replay that ends in another state than the commands in memory."""
    shown = StartRound(
        replay=run(start_engine, folder),
        restored=run(apply_in_memory, folder),
        ready_s=run(seconds_until_ready, folder, master_key),
    )
    if shown.replay.digest != shown.restored.folded.digest:
        raise BenchFailed("the replay ended in another state than the commands in memory")
    return shown


async def _prepare(folder: Path, master_key: bytes, orders: int, events: int) -> None:
    """Write the journal, and tables that are as far as the journal."""
    sequence = await write_journal_fixture(
        journal_of(folder), make_world(master_key), orders, events
    )
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as database:
        await upgrade(database)
        async with database.writing() as tx:
            await advance_sequence(tx, ALONE.name, 0, sequence)
