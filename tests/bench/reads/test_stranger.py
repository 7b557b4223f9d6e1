"""Cheap reads are measured one by one, alone and beside the dear reads of a stranger, in turn."""

import asyncio
from functools import partial
from http import HTTPStatus

import pytest

from foretell.bench.rigs.reads.stranger import (
    DEAR_AT_ONCE,
    PHASES,
    CheapTimes,
    Processes,
    ServingMemory,
    StrangerTimes,
    measure_stranger,
)
from foretell.bench.rigs.reads.stranger_figures import StrangerFigure, growth_words
from foretell.domain.errors.command import BenchFailed

pytestmark = pytest.mark.anyio

MEMORY = ServingMemory(serving=100_000_000, dear=50_000_000)
PROCESSES = Processes(lambda: (), lambda: MEMORY)


class Clock:
    """A clock that the reads set."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def perf_counter(self) -> float:
        return self.now_s

    def monotonic(self) -> float:
        return self.now_s


class Stranger:
    """Dear reads that are counted while they are under way."""

    def __init__(self, status: int = HTTPStatus.OK) -> None:
        self.under_way = 0
        self._status = status

    async def read(self) -> int:
        self.under_way += 1
        try:
            await asyncio.sleep(0.001)
            return self._status
        finally:
            self.under_way -= 1


async def test_a_fast_read_that_suffers_is_not_hidden_by_a_slow_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding: the times of all cheap reads made one p99, which was that of the slowest."""
    stranger, clock = Stranger(), Clock()
    monkeypatch.setattr("foretell.bench.rigs.reads.stranger.time", clock)

    async def read(alone_s: float, beside_s: float) -> int:
        clock.now_s += beside_s if stranger.under_way else alone_s
        return HTTPStatus.OK

    cheap = {"fast": partial(read, 0.001, 0.006), "slow": partial(read, 0.02, 0.021)}
    times = await measure_stranger(cheap, [stranger.read], 3, PROCESSES)
    assert [each.name for each in times.cheap] == ["fast", "slow"]
    assert times.worst.name == "fast"
    assert times.worst.ratio == pytest.approx(6)
    assert (times.together.alone_ms, times.together.beside_ms) == pytest.approx((20, 21))
    assert {each.reads for each in times.cheap} == {3 * PHASES}


async def test_phases_alone_and_beside_take_turns_and_none_alone_has_a_dear_read_under_way() -> (
    None
):
    stranger, seen = Stranger(), list[int]()

    async def read() -> int:
        seen.append(stranger.under_way)
        await asyncio.sleep(0)
        return HTTPStatus.OK

    times = await measure_stranger({"read": read}, [stranger.read], 1, PROCESSES)
    assert seen[1::2] == [0] * PHASES
    assert seen[0] == 0
    assert all(0 < each <= DEAR_AT_ONCE for each in seen[2::2])
    assert stranger.under_way == 0
    assert times.dear >= PHASES * DEAR_AT_ONCE


@pytest.mark.parametrize("status", [HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.NOT_FOUND])
async def test_a_cheap_read_that_is_refused_ends_the_measurement_with_its_name(
    status: HTTPStatus,
) -> None:
    async def read() -> int:
        return status

    with pytest.raises(BenchFailed, match="the cheap read 'traded' was answered with"):
        await measure_stranger({"traded": read}, [Stranger().read], 1, PROCESSES)


async def test_a_dear_read_that_does_not_exist_ends_the_measurement() -> None:
    async def read() -> int:
        return HTTPStatus.OK

    with pytest.raises(BenchFailed, match="a dear read was answered with 404"):
        await measure_stranger({"read": read}, [Stranger(HTTPStatus.NOT_FOUND).read], 1, PROCESSES)


def figure(fills: int, memory: ServingMemory = MEMORY) -> StrangerFigure:
    cheap = [CheapTimes("traded", 2.0, 6.0, 500), CheapTimes("value", 10.0, 12.0, 500)]
    together = CheapTimes("all of them", 9.0, 22.5, 1_000)
    return StrangerFigure(fills, StrangerTimes(together, cheap, 44, 3, memory, 0.2))


def test_the_read_that_suffers_most_is_named_with_the_verdict_and_the_cores_of_others() -> None:
    assert figure(1_000).is_missed
    assert figure(1_000).words() == (
        "1,000 fills: the p99 of 2 cheap reads is 9.0 ms alone and 22.5 ms beside a stranger's 44 dear reads (3 more"
        " refused): ratio 2.50; bar 2, **missed**. Of 'traded' alone it is 3.00, the largest of a single one. Other"
        " programs used 0.20 ! cores. The serving process then has 100 MB, that of dear reads 50 MB."
    )
    assert figure(1_000).rows()[1] == ("value", "500", "10.00 ms", "12.00 ms", "1.20")


def test_the_growth_of_memory_is_that_of_each_process() -> None:
    grown = figure(2_000, ServingMemory(serving=110_000_000, dear=60_000_000))
    assert growth_words(figure(1_000), grown) == (
        "At 2,000 fills the serving process has 1.10 times the memory that it has at 1,000, that of dear reads 1.20 times."
    )
