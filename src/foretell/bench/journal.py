"""`foretell bench journal`: the time until a batch in a journal of files is durable (journal).

The floor is one fdatasync of the same bytes, written at an aligned place into a file of zeros in the
same folder: no framing, no checksum, no hash chain, no other thread.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import uvloop
from rich.console import Console

from foretell.bench.rigs.batches import (
    BATCH_PLAN,
    RECORD_BYTES,
    AlternatingBatches,
    Bare,
    BatchPlan,
    Measured,
    batch_table,
    ratio_words,
)
from foretell.bench.rigs.machine import disturbance, usage_with
from foretell.journal.files.journal import FileJournal

ALIGNMENT_BYTES: Final = 4096
BARE_FILE_BYTES: Final = 16 * 1024 * 1024


def run_bench_journal(
    rounds: int, console: Console, plan: BatchPlan = BATCH_PLAN
) -> Sequence[Measured]:
    """Measure a journal in files, print the ratios to the bare sync, and return the measures."""
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        measured = uvloop.run(_measure(Path(name), rounds, plan))
    console.print(batch_table(measured, "bare fdatasync", is_watched=True))
    console.print(
        f"journal: a batch takes {ratio_words(measured)} times as long as one fdatasync of the same"
        f" bytes (medians of {rounds} rounds)"
    )
    if words := disturbance(measured[:: len(plan.sizes)]):
        console.print(words)
    return measured


async def _measure(folder: Path, rounds: int, plan: BatchPlan) -> Sequence[Measured]:
    with bare_file(folder, max(plan.sizes)) as bare:
        journal = FileJournal(folder / "journal")
        try:
            return await AlternatingBatches(journal, bare, plan).take_rounds(rounds, usage_with)
        finally:
            await journal.close()


@contextlib.contextmanager
def bare_file(folder: Path, batch_max: int, file_bytes: int = BARE_FILE_BYTES) -> Iterator[Bare]:
    """Give a function that writes payloads to a file and syncs it, and starts over at its end."""
    path = folder / "bare"
    path.write_bytes(bytes(file_bytes))
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    step = -(-batch_max * RECORD_BYTES // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    offset = 0

    async def write(payloads: Sequence[bytes]) -> None:
        nonlocal offset
        os.pwrite(handle, b"".join(payloads), offset)
        os.fdatasync(handle)
        offset = (offset + step) % (file_bytes // step * step)

    try:
        yield write
    finally:
        os.close(handle)
