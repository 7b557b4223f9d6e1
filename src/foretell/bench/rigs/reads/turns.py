"""Calls that take turns, so that whatever slows the machine for a while slows all of them."""

import gc
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from foretell.bench.rigs.machine import DISTURBED_CORES, usage_with
from foretell.runtime.garbage_collection import MIDDLE_GENERATION

SECONDS_PER_CALL: Final = 0.2
"""Seconds for each call that takes turns in a read."""
CALLS_GROWTH: Final = 2
"""So many times the least number of calls are made, where there is time."""
ROUNDS_MAX: Final = 5
"""How often calls are measured while other programs use the machine."""

Call = Callable[[], Awaitable[object]]


class Timed(NamedTuple):
    """Milliseconds of some calls: passed, and used of the processor by all threads of the process."""

    passed_ms: list[float]
    cpu_ms: list[float]


class Alternation(NamedTuple):
    """The times of calls that took turns, the cores that other programs used meanwhile, and the rounds that were made."""

    times: Sequence[Timed]
    others_cores: float
    rounds: int = 1


async def alternate_undisturbed(
    calls: Sequence[Call], least: int, own_pids: Sequence[int]
) -> Alternation:
    """Make each call in turn, at least so many times; again while other programs use the machine.

    The times are those of the first round that nothing disturbed, or else of the one that was disturbed least. They
    are never chosen by how short they are.
    """
    measured: list[Alternation] = []
    while True:
        before = usage_with(*own_pids)
        times = await alternate(calls, least)
        others_cores = before.others_cores(usage_with(*own_pids))
        measured.append(Alternation(times, others_cores))
        if others_cores <= DISTURBED_CORES or len(measured) == ROUNDS_MAX:
            chosen = min(measured, key=lambda one: one.others_cores)
            return chosen._replace(rounds=len(measured))


async def alternate(calls: Sequence[Call], least: int) -> list[Timed]:
    """Make each call in turn, at least so many times.

    Garbage of the reads before is searched first, as a server does when it is idle: a hundred calls would count
    a search that thousands of requests share.
    """
    times = [Timed([], []) for _ in calls]
    for call in calls:
        await call()
    gc.collect(MIDDLE_GENERATION)
    until_s = time.monotonic() + SECONDS_PER_CALL * len(calls)
    while len(times[0].cpu_ms) < least or (
        len(times[0].cpu_ms) < CALLS_GROWTH * least and time.monotonic() < until_s
    ):
        for call, kept in zip(calls, times, strict=True):
            began_s, cpu_s = time.perf_counter(), time.process_time()
            await call()
            kept.passed_ms.append(1000 * (time.perf_counter() - began_s))
            kept.cpu_ms.append(1000 * (time.process_time() - cpu_s))
    return times


def p99_of(passed_ms: Sequence[float]) -> float:
    """Return the shortest of the times that at most one call in a hundred exceeds: the nearest rank."""
    return sorted(passed_ms)[-(-99 * len(passed_ms) // 100) - 1]
