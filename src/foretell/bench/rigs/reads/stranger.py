"""Cheap reads of one client, alone and beside the dearest reads of another.

Both are measured in turn, phase by phase, and the times of all phases of a kind are one sample: what slows the
machine for a while slows both.
"""

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from foretell.bench.rigs.machine import usage_with
from foretell.bench.rigs.reads.turns import p99_of
from foretell.domain.errors.command import BenchFailed

DEAR_AT_ONCE: Final = 8
"""So many reads the stranger has under way at any time; the rest of them waits for its places."""
REFUSALS: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
PHASES: Final = 5
"""So often the cheap reads are measured alone, and as often beside the dear ones."""
READING_S_MAX: Final = 30.0
"""The time of all phases alone, or of all beside: after its part of it a phase begins no further pass."""

Read = Callable[[], Awaitable[int]]
"""Sends a request, and returns the status of its answer."""
Passed = Mapping[str, list[float]]
"""Milliseconds of each cheap read, by its name."""


class CheapTimes(NamedTuple):
    """The p99 of a cheap read in milliseconds, and the fewest reads that one of the two is of."""

    name: str
    alone_ms: float
    beside_ms: float
    reads: int

    @property
    def ratio(self) -> float:
        """How much longer it takes beside the stranger's."""
        return self.beside_ms / self.alone_ms


class ServingMemory(NamedTuple):
    """The resident memory of the processes that answer reads, in bytes."""

    serving: int
    dear: int


class StrangerTimes(NamedTuple):
    """The times of each cheap read, and what became of the dear ones meanwhile."""

    together: CheapTimes
    """Of all cheap reads: the time that one in a hundred exceeds, whichever it is."""
    cheap: Sequence[CheapTimes]
    dear: int
    refused: int
    memory: ServingMemory
    """The most of each process at the end of a phase."""
    others_cores: float

    @property
    def worst(self) -> CheapTimes:
        """The cheap read that suffers most."""
        return max(self.cheap, key=lambda each: each.ratio)


class Processes(NamedTuple):
    """The ids of the processes that work for the benchmark, and the memory of those that answer."""

    pids: Callable[[], Sequence[int]]
    memory: Callable[[], ServingMemory]


async def measure_stranger(
    cheap: Mapping[str, Read], dear: Sequence[Read], passes: int, processes: Processes
) -> StrangerTimes:
    """Read each cheap one up to so many times in each phase; any refusal of them ends the benchmark.

    Each read is made once before, so that no phase has the start of a process in it.
    """
    stranger = _Stranger(dear)
    alone: Passed = {name: [] for name in cheap}
    beside: Passed = {name: [] for name in cheap}
    await _read_cheap(cheap, 1, {name: [] for name in cheap})
    for read in dear:
        _check_dear(await read())
    before = usage_with(*processes.pids())
    memory: list[ServingMemory] = []
    for _ in range(PHASES):
        await _read_cheap(cheap, passes, alone)
        async with stranger.reading():
            await _read_cheap(cheap, passes, beside)
            memory.append(processes.memory())
    others_cores = before.others_cores(usage_with(*processes.pids()))
    refused = sum(status in REFUSALS for status in stranger.answered)
    return StrangerTimes(
        _times("all of them", *(list(itertools.chain(*each.values())) for each in (alone, beside))),
        [_times(name, alone[name], beside[name]) for name in cheap],
        len(stranger.answered) - refused,
        refused,
        ServingMemory(*map(max, zip(*memory, strict=True))),
        others_cores,
    )


def _times(name: str, alone_ms: Sequence[float], beside_ms: Sequence[float]) -> CheapTimes:
    reads = min(len(alone_ms), len(beside_ms))
    return CheapTimes(name, p99_of(alone_ms), p99_of(beside_ms), reads)


async def _read_cheap(cheap: Mapping[str, Read], passes: int, passed: Passed) -> None:
    """Read each cheap one in turn, and add its times to those that are known."""
    until_s = time.monotonic() + READING_S_MAX / PHASES
    for number in range(passes):
        if number and time.monotonic() > until_s:
            break
        for name, read in cheap.items():
            began_s = time.perf_counter()
            if (status := await read()) != HTTPStatus.OK:
                raise BenchFailed(f"the cheap read {name!r} was answered with {status}")
            passed[name].append(1000 * (time.perf_counter() - began_s))


class _Stranger:
    """A client that sends dear reads, one after the other and several at once."""

    def __init__(self, dear: Sequence[Read]) -> None:
        self._next = itertools.cycle(dear)
        self._is_reading = False
        self.answered: list[int] = []
        """The statuses of the answers."""

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[None]:
        """Keep dear reads under way from the first answer on, and wait at the end until none is."""
        began = asyncio.Event()
        self._is_reading = True
        tasks = [asyncio.create_task(self._read_on(began)) for _ in range(DEAR_AT_ONCE)]
        beginning = asyncio.create_task(began.wait())
        try:
            await asyncio.wait({beginning, *tasks}, return_when=asyncio.FIRST_COMPLETED)
            yield
        finally:
            beginning.cancel()
            self._is_reading = False
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        for failure in ended:
            if isinstance(failure, BaseException):
                raise failure

    async def _read_on(self, began: asyncio.Event) -> None:
        while self._is_reading:
            status = await next(self._next)()
            _check_dear(status)
            self.answered.append(status)
            if status == HTTPStatus.OK:
                began.set()


def _check_dear(status: int) -> None:
    if status != HTTPStatus.OK and status not in REFUSALS:
        raise BenchFailed(f"a dear read was answered with {status}")
