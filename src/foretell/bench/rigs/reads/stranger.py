"""Cheap reads of one client, alone and beside the dearest reads of another."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from foretell.bench.rigs.reads.turns import p99_of
from foretell.domain.errors.command import BenchFailed

DEAR_AT_ONCE: Final = 8
"""So many reads the stranger has under way at any time; the rest of them waits for its places."""
REFUSALS: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
READING_S_MAX: Final = 10.0
"""After so long no further round of cheap reads begins."""

Read = Callable[[], Awaitable[int]]
"""Sends a request, and returns the status of its answer."""


class StrangerTimes(NamedTuple):
    """The p99 of the cheap reads in milliseconds, and what became of the dear ones meanwhile."""

    alone_ms: float
    beside_ms: float
    dear: int
    refused: int
    process_bytes: int
    """The resident memory, at the end, of the process that answers the dear ones."""

    @property
    def ratio(self) -> float:
        """How much longer the cheap reads take beside the stranger's."""
        return self.beside_ms / self.alone_ms


async def measure_stranger(
    cheap: Sequence[Read], dear: Sequence[Read], rounds: int, memory: Callable[[], int]
) -> StrangerTimes:
    """Read each cheap one up to so many times, first alone; any refusal of them ends the benchmark.

    `memory` returns the bytes of the process that answers the dear ones.
    """
    await _passed_ms(cheap, 1)
    alone = await _passed_ms(cheap, rounds)
    answered: list[int] = []
    began = asyncio.Event()
    strangers = [
        asyncio.create_task(_read_on(dear, place, answered, began)) for place in range(DEAR_AT_ONCE)
    ]
    try:
        beginning = asyncio.create_task(began.wait())
        await asyncio.wait({beginning, *strangers}, return_when=asyncio.FIRST_COMPLETED)
        beginning.cancel()
        beside = await _passed_ms(cheap, rounds)
        process_bytes = memory()
    finally:
        for stranger in strangers:
            stranger.cancel()
        ended = await asyncio.gather(*strangers, return_exceptions=True)
    for failure in ended:
        if isinstance(failure, Exception):
            raise failure
    refused = sum(status in REFUSALS for status in answered)
    dear_answers = len(answered) - refused
    return StrangerTimes(p99_of(alone), p99_of(beside), dear_answers, refused, process_bytes)


async def _passed_ms(reads: Sequence[Read], rounds: int) -> list[float]:
    passed: list[float] = []
    until_s = time.monotonic() + READING_S_MAX
    for _ in range(rounds):
        if passed and time.monotonic() > until_s:
            break
        for read in reads:
            began_s = time.perf_counter()
            if (status := await read()) != HTTPStatus.OK:
                raise BenchFailed(f"a cheap read was answered with {status}")
            passed.append(1000 * (time.perf_counter() - began_s))
    return passed


async def _read_on(
    dear: Sequence[Read], place: int, answered: list[int], began: asyncio.Event
) -> None:
    while True:
        status = await dear[place % len(dear)]()
        if status == HTTPStatus.OK:
            began.set()
        elif status not in REFUSALS:
            raise BenchFailed(f"a dear read was answered with {status}")
        answered.append(status)
        place += 1
