"""Processor time of orders, by the threads of the exchange that used it.

It is counted in signer recoveries of one core, like every figure of orders.
"""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from foretell.bench.rigs.machine import family

_OWN: Final = 11
_KERNEL: Final = 12
"""Places of a thread's own time, and of that of the kernel for it, in its `stat` after the name."""


class ProcessorTime(NamedTuple):
    """Seconds of processor time up to a moment, or between two moments.

    `serving_s` is of the main threads of the measured processes, which run their event loops;
    `beside_s` of their other threads, `children_s` of the processes that they started, `client_s` of
    the benchmark.
    """

    serving_s: float
    beside_s: float
    children_s: float
    client_s: float

    @property
    def all_s(self) -> float:
        """The time of all processes together."""
        return self.serving_s + self.beside_s + self.children_s + self.client_s

    def until(self, later: "ProcessorTime") -> "ProcessorTime":
        """Return the time used until a later moment."""
        return ProcessorTime(*(after - before for before, after in zip(self, later, strict=True)))

    def in_recoveries(self, orders: int, recoveries_per_s: float) -> "ProcessorTime":
        """Return the time that one of this many orders used, counted in recoveries."""
        return ProcessorTime(*(seconds * recoveries_per_s / orders for seconds in self))


def processor_time_of(pids: Sequence[int]) -> ProcessorTime:
    """Return the time of processes and of those that they started, as the kernel counts it."""
    serving = sum(_seconds(Path(f"/proc/{pid}/task/{pid}/stat")) for pid in pids)
    whole = sum(_seconds(Path(f"/proc/{pid}/stat")) for pid in pids)
    started = {each for pid in pids for each in family(pid)} - set(pids)
    children = sum(_seconds(Path(f"/proc/{pid}/stat")) for pid in started)
    own = os.times()
    return ProcessorTime(serving, whole - serving, children, own.user + own.system)


def kernel_time_of(pids: Sequence[int]) -> float:
    """Return the seconds that the kernel worked for the main threads of processes."""
    return sum(_seconds(Path(f"/proc/{pid}/task/{pid}/stat"), [_KERNEL]) for pid in pids)


def median_time(spent: Sequence[ProcessorTime]) -> ProcessorTime:
    """Return the median of each part over the rounds."""
    return ProcessorTime(*(statistics.median(figures) for figures in zip(*spent, strict=True)))


def processor_time_words(spent: ProcessorTime) -> str:
    """Return the time of an order in words."""
    return (
        f"order-cpu: {spent.serving_s:.2f} recoveries of processor time an order in the thread that"
        f" serves, {spent.all_s:.2f} in all processes: {spent.beside_s:.2f} in other threads,"
        f" {spent.children_s:.2f} in processes that it started, {spent.client_s:.2f} in the client"
    )


def _seconds(stat: Path, places: Sequence[int] = (_OWN, _KERNEL)) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return sum(int(fields[place]) for place in places) / os.sysconf("SC_CLK_TCK")
