"""`foretell bench journal`: how long a batch takes until it is durable (journal).

The floor is one fdatasync of the same bytes, written at an aligned place into a file of zeros in the
same folder: no framing, no checksum, no chain, no other thread.
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
    BATCHES,
    RECORD_BYTES,
    Bare,
    Measured,
    Turns,
    batch_table,
    ratio_words,
)
from foretell.bench.rigs.machine import disturbance, usage_with
from foretell.journal.files.journal import FileJournal

ALIGNMENT_BYTES: Final = 4096
BARE_FILE_BYTES: Final = 16 * 1024 * 1024


def run_bench_journal(rounds: int, console: Console) -> None:
    """Measure the journal of one machine, and print the ratios to the bare way."""
    with tempfile.TemporaryDirectory(prefix="foretell-bench-") as name:
        measured = uvloop.run(_measure(Path(name), rounds))
    console.print(batch_table(measured, "bare fdatasync", is_watched=True))
    console.print(
        f"journal: a batch takes {ratio_words(measured)} times as long as one fdatasync of the same"
        f" bytes (medians of {rounds} rounds)"
    )
    if words := disturbance(measured[:: len(BATCHES)]):
        console.print(words)


async def _measure(folder: Path, rounds: int) -> Sequence[Measured]:
    with _bare_file(folder) as bare:
        journal = FileJournal(folder / "journal")
        try:
            return await Turns(journal, bare).take_rounds(rounds, usage_with)
        finally:
            await journal.close()


@contextlib.contextmanager
def _bare_file(folder: Path) -> Iterator[Bare]:
    """Give what writes payloads to a file and syncs that, going round in it."""
    path = folder / "bare"
    path.write_bytes(bytes(BARE_FILE_BYTES))
    handle = os.open(path, os.O_RDWR)
    os.fsync(handle)
    step = -(-max(BATCHES) * RECORD_BYTES // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
    offset = 0

    async def write(payloads: Sequence[bytes]) -> None:
        nonlocal offset
        os.pwrite(handle, b"".join(payloads), offset)
        os.fdatasync(handle)
        offset = (offset + step) % (BARE_FILE_BYTES // step * step)

    try:
        yield write
    finally:
        os.close(handle)
