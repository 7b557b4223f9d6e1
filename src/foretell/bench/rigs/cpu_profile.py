"""Where the processor time of orders goes: which threads of the exchange used how much of it.

Processor time is told in signer recoveries of one core, like everything else about orders.
"""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from foretell.bench.rigs.machine import family


class Spent(NamedTuple):
    """Seconds of processor time up to a moment, or between two of them.

    `serving_s` is of the threads that the measured processes began with, which run their event loops;
    `beside_s` of their other threads, `children_s` of the processes that they started, `client_s` of
    the benchmark.
    """

    serving_s: float
    beside_s: float
    children_s: float
    client_s: float

    def until(self, later: "Spent") -> "Spent":
        """Return what was used until later."""
        return Spent(*(after - before for before, after in zip(self, later, strict=True)))

    def in_recoveries(self, orders: int, recoveries_per_s: float) -> "Spent":
        """Return what one of so many orders used, a second being so many recoveries."""
        return Spent(*(seconds * recoveries_per_s / orders for seconds in self))


def spent_by(pids: Sequence[int]) -> Spent:
    """Return what processes and those that they started have used; the kernel counts it."""
    serving = sum(_seconds(Path(f"/proc/{pid}/task/{pid}/stat")) for pid in pids)
    whole = sum(_seconds(Path(f"/proc/{pid}/stat")) for pid in pids)
    started = {each for pid in pids for each in family(pid)} - set(pids)
    children = sum(_seconds(Path(f"/proc/{pid}/stat")) for pid in started)
    own = os.times()
    return Spent(serving, whole - serving, children, own.user + own.system)


def spent_words(spent: Sequence[Spent]) -> str:
    """Return the medians of what orders used, in words."""
    serving, beside, children, client = (
        f"{statistics.median(figures):.1f}" for figures in zip(*spent, strict=True)
    )
    return (
        f"order-cpu: {serving} recoveries of processor time an order in the thread that serves,"
        f" {beside} in threads beside it, {children} in the process that recovers, {client} in the"
        " client"
    )


def _seconds(stat: Path) -> float:
    fields = stat.read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
