"""Batches of records, shared by the benchmarks of both journals.

A batch is appended at once and ends when its last record is durable. Next to each batch the same bytes are
made durable in the barest way, so that other load of the disk or the server affects both alike.
"""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from rich.table import Table

from foretell.bench.rigs.journal_writer import JournalWriter
from foretell.bench.rigs.machine import Usage, others_words, undisturbed
from foretell.journal.port import Journal

RECORD_BYTES: Final = 260

Bare = Callable[[Sequence[bytes]], Awaitable[None]]
"""Writes payloads durably in the barest way."""
MeasureUsage = Callable[[], Usage | None]
"""Returns the use of the machine up to now, None where it cannot be measured."""


class BatchPlan(NamedTuple):
    """Sizes of batches, and pairs of a batch and the bare way for each size in each round."""

    sizes: tuple[int, ...] = (1, 16, 128, 1024)
    turns: int = 50


BATCH_PLAN: Final = BatchPlan()


class Measured(NamedTuple):
    """The figures of one size in a round; times are medians, in milliseconds."""

    batch: int
    journal_ms: float
    bare_ms: float
    others_cores: float = 0.0

    @property
    def records_per_s(self) -> float:
        """Durable records a second, one batch after the other."""
        return self.batch * 1e3 / self.journal_ms

    @property
    def ratio(self) -> float:
        """The time of a batch for each of the bare way."""
        return self.journal_ms / self.bare_ms


class AlternatingBatches:
    """AlternatingBatches of a journal and of the bare way."""

    def __init__(self, journal: Journal, bare: Bare, plan: BatchPlan) -> None:
        self._bare = bare
        self._plan = plan
        self._writer = JournalWriter(journal)

    async def take_rounds(self, rounds: int, measure_usage: MeasureUsage) -> list[Measured]:
        """Return the figures of each size in each round."""
        measured = []
        for _ in range(rounds):
            before = measure_usage()
            shown = [await self._take(batch) for batch in self._plan.sizes]
            after = measure_usage()
            others = 0.0 if before is None or after is None else before.others_cores(after)
            measured += [each._replace(others_cores=others) for each in shown]
        return measured

    async def _take(self, batch: int) -> Measured:
        """Return the figures of batches of a size, without the first turn."""
        payloads = [b"\x55" * RECORD_BYTES] * batch
        journal_s, bare_s = [], []
        for _ in range(self._plan.turns + 1):
            started = time.perf_counter()
            await self._bare(payloads)
            bare_s.append(time.perf_counter() - started)
            started = time.perf_counter()
            await self._writer.write(payloads)
            journal_s.append(time.perf_counter() - started)
        journal_ms, bare_ms = (statistics.median(each[1:]) * 1e3 for each in (journal_s, bare_s))
        return Measured(batch, journal_ms, bare_ms)


def batch_table(measured: Sequence[Measured], bare: str, *, is_watched: bool) -> Table:
    """Return the measures as a table; `bare` names the bare way."""
    table = Table("batch", "journal p50 ms", f"{bare} p50 ms", "ratio", "durable records/s")
    if is_watched:
        table.add_column("cores of others")
    for shown in sorted(measured, key=lambda each: each.batch):
        row = (
            str(shown.batch),
            f"{shown.journal_ms:.2f}",
            f"{shown.bare_ms:.2f}",
            f"{shown.ratio:.2f}",
            f"{shown.records_per_s:,.0f}",
        )
        table.add_row(*row, *((others_words(shown.others_cores),) if is_watched else ()))
    return table


def ratio_words(measured: Sequence[Measured]) -> str:
    """Return the median ratio of each size, in words."""
    return ", ".join(
        f"{_median_ratio(measured, batch):.2f} ({batch} records)"
        for batch in sorted({shown.batch for shown in measured})
    )


def _median_ratio(measured: Sequence[Measured], batch: int) -> float:
    of_batch = [shown for shown in measured if shown.batch == batch]
    return statistics.median(shown.ratio for shown in undisturbed(of_batch))
