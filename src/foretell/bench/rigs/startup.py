"""The steps of a start, each run in a new process by `bench replay`.

This module imports no more than the engine needs.
"""

import os
import time
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import uvloop

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.machine import usage_with
from foretell.domain.exchange.apply import apply
from foretell.domain.exchange.commands import decode_command
from foretell.domain.exchange.snapshot import decode_state, state_digest
from foretell.domain.exchange.state import State
from foretell.engine.writer.engine import Engine
from foretell.journal.files.journal import FileJournal
from foretell.journal.files.reader import read_entries
from foretell.journal.files.snapshots import newest_snapshot
from foretell.journal.port import Snapshot
from foretell.runtime.garbage_collection import settle_memory

DECODED_AT_ONCE: Final = 10_000


class FoldFigures(NamedTuple):
    """The commands after the snapshot, their time, and the digest of the final state."""

    records: int
    seconds: float
    digest: str
    others_cores: float

    @property
    def per_s(self) -> float:
        """Commands in a second."""
        return self.records / self.seconds


class Restored(NamedTuple):
    """The time and memory of restoring the snapshot, and the commands applied to it."""

    seconds: float
    bytes_per_order: float
    folded: FoldFigures


def journal_of(folder: Path) -> Path:
    """Return the folder of the journal of `trading_alone`."""
    return folder / "journal"


def start_engine(folder: Path) -> FoldFigures:
    """Start an engine without subscribers."""

    async def start() -> tuple[Engine, float]:
        began_s = time.perf_counter()
        engine = Engine(FileJournal(journal_of(folder)), now_ms)
        await engine.start()
        took_s = time.perf_counter() - began_s
        await engine.close()
        return engine, took_s

    after = _snapshot(folder).sequence
    before = usage_with()
    engine, took_s = uvloop.run(start())
    others_cores = before.others_cores(usage_with())
    return FoldFigures(engine.sequence - after, took_s, state_digest(engine.state), others_cores)


def apply_in_memory(folder: Path) -> Restored:
    """Restore the snapshot, and apply the commands after it; only these two are counted.

    Memory is the growth of the process while the snapshot is restored.
    """
    before_bytes, began_s = resident_bytes(), time.perf_counter()
    state = decode_state(_snapshot(folder).payload)
    took_s = time.perf_counter() - began_s
    settle_memory()
    bytes_per_order = (resident_bytes() - before_bytes) / len(state.live_orders)
    return Restored(took_s, bytes_per_order, _fold(folder, state))


def _fold(folder: Path, state: State) -> FoldFigures:
    entries = read_entries(journal_of(folder), _snapshot(folder).sequence)
    before, records, took_s = usage_with(), 0, 0.0
    while commands := [decode_command(entry.payload) for entry in islice(entries, DECODED_AT_ONCE)]:
        began_s = time.perf_counter()
        for command in commands:
            apply(state, command)
        took_s += time.perf_counter() - began_s
        records += len(commands)
    others_cores = before.others_cores(usage_with())
    return FoldFigures(records, took_s, state_digest(state), others_cores)


def _snapshot(folder: Path) -> Snapshot:
    snapshot = newest_snapshot(journal_of(folder))
    assert snapshot is not None
    return snapshot


def resident_bytes(pid: int | None = None) -> int:
    """Return the physical memory of a process, of this one by default."""
    pages = int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
