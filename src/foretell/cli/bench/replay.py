"""`foretell bench replay`: how fast a start is, with many open orders and many commands to fold (replay).

The ceiling is the engine alone, given the same commands in memory. Everything is measured in
processes that are new each time, as a start is one.
"""

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.app.alone import trading_alone
from foretell.app.chance import new_key, now_ms
from foretell.app.memory import settle_memory
from foretell.cli.bench.machine import disturbance, others_words, undisturbed, usage_with
from foretell.cli.bench.past import write_past
from foretell.cli.bench.world import make_world
from foretell.domain.command_errors import BenchFailed
from foretell.domain.commands import decode_command
from foretell.domain.fold import apply
from foretell.domain.shards import ALONE
from foretell.domain.snapshot import decode_state, state_digest
from foretell.domain.state import State
from foretell.journal.file import FileJournal
from foretell.journal.port import Snapshot
from foretell.journal.reading import read_entries
from foretell.journal.snapshots import newest_snapshot
from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.trades import record_sequence
from foretell.trading.engine import Engine

READY_S: Final = 10.0
"""A start should take no longer."""
DECODED_AT_ONCE: Final = 10_000

T = TypeVar("T")


class Folded(NamedTuple):
    """The commands after the snapshot, how long they took, and the state that they ended in."""

    records: int
    seconds: float
    digest: str
    others_cores: float

    @property
    def per_s(self) -> float:
        """Commands in a second."""
        return self.records / self.seconds


class Restored(NamedTuple):
    """What it takes to have the state of the snapshot in memory, and the commands folded into it."""

    seconds: float
    bytes_per_order: float
    folded: Folded


class Round(NamedTuple):
    """A start of the engine, the same commands in memory, and a start of the API."""

    replay: Folded
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


def _figures(shown: Round) -> tuple[float, ...]:
    restored = shown.restored
    return shown.ratio, shown.ready_s, restored.seconds, restored.bytes_per_order


def _table_of(measured: list[Round]) -> Table:
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


def _measure(folder: Path, master_key: bytes) -> Round:
    shown = Round(
        replay=_in_new_process(_start_engine, folder),
        restored=_in_new_process(_apply_in_memory, folder),
        ready_s=_in_new_process(_start_api, folder, master_key),
    )
    if shown.replay.digest != shown.restored.folded.digest:
        raise BenchFailed("the replay ended in another state than the commands in memory")
    return shown


def _in_new_process(work: Callable[..., T], *arguments: object) -> T:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        return processes.submit(work, *arguments).result()


async def _prepare(folder: Path, master_key: bytes, orders: int, events: int) -> None:
    """Write the journal, and tables that say that they know all of it."""
    sequence = await write_past(_journal_of(folder), make_world(master_key), orders, events)
    async with Database(f"sqlite+aiosqlite:///{folder / 'foretell.db'}") as database:
        await upgrade(database)
        async with database.writing() as tx:
            await record_sequence(tx, ALONE.name, sequence)


def _start_engine(folder: Path) -> Folded:
    """Start an engine that nobody hears."""

    async def start() -> tuple[Engine, float]:
        began_s = time.perf_counter()
        engine = Engine(FileJournal(_journal_of(folder)), now_ms)
        await engine.start()
        took_s = time.perf_counter() - began_s
        await engine.close()
        return engine, took_s

    after = _snapshot(folder).sequence
    before = usage_with()
    engine, took_s = uvloop.run(start())
    others_cores = before.others_cores(usage_with())
    return Folded(engine.sequence - after, took_s, state_digest(engine.state), others_cores)


def _apply_in_memory(folder: Path) -> Restored:
    """Restore the snapshot, and apply the commands after it; only these two are counted.

    Memory is what the process holds more of once the snapshot is restored.
    """
    before_bytes, began_s = _resident_bytes(), time.perf_counter()
    state = decode_state(_snapshot(folder).payload)
    took_s = time.perf_counter() - began_s
    settle_memory()
    bytes_per_order = (_resident_bytes() - before_bytes) / len(state.live_orders)
    return Restored(took_s, bytes_per_order, _fold(folder, state))


def _fold(folder: Path, state: State) -> Folded:
    entries = read_entries(_journal_of(folder), _snapshot(folder).sequence)
    before, records, took_s = usage_with(), 0, 0.0
    while commands := [decode_command(entry.payload) for entry in islice(entries, DECODED_AT_ONCE)]:
        began_s = time.perf_counter()
        for command in commands:
            apply(state, command)
        took_s += time.perf_counter() - began_s
        records += len(commands)
    others_cores = before.others_cores(usage_with())
    return Folded(records, took_s, state_digest(state), others_cores)


def _start_api(folder: Path, master_key: bytes) -> float:
    """Start everything that serves trading, and return the seconds until it answers."""
    world = make_world(master_key)

    async def start() -> float:
        began_s = time.perf_counter()
        async with trading_alone(world.deployment, world.master_key, folder):
            return time.perf_counter() - began_s

    return uvloop.run(start())


def _journal_of(folder: Path) -> Path:
    """Return where `trading_alone` has its journal."""
    return folder / "journal"


def _snapshot(folder: Path) -> Snapshot:
    snapshot = newest_snapshot(_journal_of(folder))
    assert snapshot is not None
    return snapshot


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
