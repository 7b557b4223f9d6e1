import asyncio
import contextlib
import ctypes
import gc
import itertools
import time
import tracemalloc
from collections.abc import AsyncIterator, Callable, Iterator
from types import SimpleNamespace

import pytest
from tests.rigs.clock import VirtualLoop, run_virtually

from foretell.runtime import garbage_collection
from foretell.runtime.garbage_collection import (
    STARTING_OBJECTS_MAX,
    YOUNG_OBJECTS_MAX,
    YOUNG_SEARCHES_MAX,
    CollectionLimits,
    collect_when_idle,
    find_trim,
    garbage_collection_paused,
    search_rarely,
    settle_memory,
)

LIMITS = CollectionLimits(
    check_s=0.01, idle_share_max=0.9, young_every_s_max=60.0, full_every_s=60.0, pause_s_max=60.0
)
"""Checks a hundred times a second; everything else is as rare as in a test's life."""
GARBAGE_BYTES = 20_000_000
DEADLINE_S = 30.0


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restore the settings of garbage collection afterwards; what is excluded stays excluded."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)


def test_a_start_searches_rarely_and_ends_with_the_settings_of_a_server() -> None:
    search_rarely()
    assert gc.get_threshold()[0] == STARTING_OBJECTS_MAX
    settle_memory()
    assert gc.get_threshold()[0] == YOUNG_OBJECTS_MAX


def test_attack_h2_what_survives_is_searched_while_it_is_little() -> None:
    """All that ten thousand connections had brought was searched at once, which took 230 ms."""
    settle_memory()
    gc.collect(1)
    kept = []
    for _ in range(8):
        assert gc.get_count()[1] <= YOUNG_SEARCHES_MAX + 1
        kept.append([[number] for number in range(YOUNG_OBJECTS_MAX + 1)])
    assert len(kept) == 8


def test_existing_objects_are_excluded_from_collection() -> None:
    kept = [[number] for number in range(1_000)]
    assert not is_excluded(kept)
    settle_memory()
    assert is_excluded(kept)
    assert gc.get_threshold()[0] == YOUNG_OBJECTS_MAX
    assert gc.isenabled()


def test_later_objects_are_still_freed() -> None:
    settle_memory()
    circle: list[object] = []
    circle.append(circle)
    del circle
    assert gc.collect() >= 1


class Circle:
    """Garbage that reference counting does not free."""

    def __init__(self) -> None:
        self.itself = self
        self.content = bytearray(GARBAGE_BYTES)


@pytest.fixture
def traced() -> Iterator[None]:
    """Count the memory that Python allocates."""
    tracemalloc.start()
    yield
    tracemalloc.stop()


@contextlib.asynccontextmanager
async def collecting(limits: CollectionLimits) -> AsyncIterator[None]:
    settle_memory()
    collector = asyncio.create_task(collect_when_idle(limits))
    try:
        yield
    finally:
        collector.cancel()
        await asyncio.wait({collector})


def is_excluded(kept: object) -> bool:
    """Return whether searches pass an object by.

    The number of all such objects says little: those of other tests are freed meanwhile.
    """
    return all(found is not kept for found in gc.get_objects())


def traced_bytes() -> int:
    return tracemalloc.get_traced_memory()[0]


async def seconds_until_freed(*, is_busy: bool = False) -> float:
    """Make garbage, and return the time until its memory is free, at most the deadline."""
    before = traced_bytes()
    Circle()
    assert traced_bytes() - before >= GARBAGE_BYTES
    began_s = time.monotonic()
    while traced_bytes() - before >= GARBAGE_BYTES and time.monotonic() - began_s < DEADLINE_S:
        if is_busy:
            sum(range(200_000))
        await asyncio.sleep(0 if is_busy else 0.01)
    return time.monotonic() - began_s


def full_searches() -> int:
    return int(gc.get_stats()[2]["collections"])


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not is_so():  # noqa: ASYNC110 - the memory of a process sends no events
            await asyncio.sleep(0.01)


@pytest.mark.anyio
@pytest.mark.usefixtures("traced")
async def test_memory_of_cyclic_garbage_is_freed_when_the_loop_is_idle() -> None:
    async with collecting(LIMITS):
        searched = full_searches()
        assert await seconds_until_freed() < DEADLINE_S
        assert full_searches() == searched


@pytest.mark.anyio
@pytest.mark.usefixtures("traced")
async def test_a_busy_loop_searches_young_objects_only_now_and_then() -> None:
    limits = LIMITS._replace(idle_share_max=0.0, young_every_s_max=0.5)
    async with collecting(limits):
        assert 0.3 < await seconds_until_freed(is_busy=True) < DEADLINE_S


@pytest.mark.anyio
@pytest.mark.usefixtures("traced")
async def test_old_cyclic_garbage_is_freed_by_a_full_search() -> None:
    async with collecting(LIMITS._replace(full_every_s=0.3)):
        circle = Circle()
        gc.collect(1)
        before, searched = traced_bytes(), full_searches()
        del circle
        await until(lambda: traced_bytes() < before - GARBAGE_BYTES // 2)
        assert full_searches() > searched


@pytest.mark.anyio
async def test_a_busy_loop_does_a_full_search_in_the_end() -> None:
    limits = LIMITS._replace(idle_share_max=0.0, full_every_s=0.0, full_every_s_max=0.2)
    async with collecting(limits):
        searched, began_s = full_searches(), time.monotonic()
        async with asyncio.timeout(DEADLINE_S):
            while full_searches() == searched:
                sum(range(200_000))
                await asyncio.sleep(0)
    assert 0.1 < time.monotonic() - began_s < DEADLINE_S


@pytest.mark.anyio
async def test_a_busy_loop_does_a_full_search_soon_when_its_process_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Garbage of an exchange that was never idle waited for an hour."""
    resident = [1_000_000]
    monkeypatch.setattr(garbage_collection, "resident_bytes", lambda: resident[0])
    limits = LIMITS._replace(idle_share_max=-1.0, full_grown_every_s=0.05, full_share_max=1.0)
    async with collecting(limits):
        searched = full_searches()
        await asyncio.sleep(0.3)
        assert full_searches() == searched
        resident[0] = 1_100_000
        await until(lambda: full_searches() > searched)
        searched = full_searches()
        await asyncio.sleep(0.3)
        assert full_searches() == searched


@pytest.mark.anyio
async def test_nothing_is_searched_while_collection_is_paused() -> None:
    async with collecting(LIMITS._replace(full_every_s=0.0)):
        with garbage_collection_paused():
            searched = full_searches()
            await asyncio.sleep(0.1)
            assert full_searches() == searched


@pytest.mark.anyio
async def test_a_long_full_search_excludes_what_it_kept_from_the_next() -> None:
    async with collecting(LIMITS._replace(full_every_s=0.05, pause_s_max=0.0)):
        kept: list[list[object]] = [[] for _ in range(10_000)]
        await until(lambda: is_excluded(kept))


@pytest.mark.anyio
async def test_full_searches_take_a_bounded_part_of_the_time() -> None:
    """A search takes some milliseconds, and a hundredth of the bound would be hundreds of them."""
    async with collecting(LIMITS._replace(full_every_s=0.0, full_share_max=1e-6)):
        before = full_searches()
        await until(lambda: full_searches() > before)
        searched = full_searches()
        await asyncio.sleep(0.3)
        assert full_searches() == searched


def fail() -> None:
    with garbage_collection_paused():
        assert not gc.isenabled()
        raise ValueError("a fault")


def test_collection_resumes_after_an_error_too() -> None:
    with pytest.raises(ValueError, match="a fault"):
        fail()
    assert gc.isenabled()


def test_nested_pauses_end_with_the_outer_one() -> None:
    with garbage_collection_paused():
        with garbage_collection_paused():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_free_memory_is_given_back_once_in_a_pause_by_an_idle_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert 1 <= trims_in_half_a_second(monkeypatch, LIMITS._replace(trim_every_s=0.2)) <= 2


def test_a_process_that_has_grown_gives_memory_back_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of bodies stayed with the process for up to a minute after an attack."""
    seen: list[int] = []
    resident = [1_000_000]
    monkeypatch.setattr(garbage_collection, "find_trim", lambda: lambda: seen.append(resident[0]))
    monkeypatch.setattr(garbage_collection, "resident_bytes", lambda: resident[0])
    limits = LIMITS._replace(trim_grown_every_s=0.05, trim_share_max=1.0)

    async def grow() -> None:
        collector = asyncio.create_task(collect_when_idle(limits))
        await asyncio.sleep(0.3)
        assert seen == []
        resident[0] = 1_100_000
        await until(lambda: bool(seen))
        await asyncio.sleep(0.3)
        assert seen == [1_100_000]
        collector.cancel()
        await asyncio.wait({collector})

    asyncio.run(grow())


def test_a_busy_loop_gives_memory_back_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A finding: what threads had freed stayed with a server that was never idle, more of it every minute."""
    assert 1 <= trims_of_busy_loop(monkeypatch, LIMITS._replace(trim_every_s=0.2)) <= 2


def test_a_busy_loop_that_grows_gives_memory_back_no_more_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert trims_of_busy_loop(monkeypatch, LIMITS._replace(trim_grown_every_s=0.01)) == 0


def test_a_busy_loop_is_not_delayed_again_by_what_took_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = LIMITS._replace(trim_every_s=0.1, trim_pause_s_max=0.005)
    assert trims_of_busy_loop(monkeypatch, limits, took_s=0.01) == 1


def trims_of_busy_loop(
    monkeypatch: pytest.MonkeyPatch, limits: CollectionLimits, took_s: float = 0.0
) -> int:
    """Return how often a busy loop gives memory back in half a second, while its process grows."""
    resident = itertools.count(1_000_000, 1_000_000)
    monkeypatch.setattr(garbage_collection, "resident_bytes", lambda: next(resident))
    return trims_in_half_a_second(monkeypatch, limits._replace(idle_share_max=-1.0), took_s)


def trims_in_half_a_second(
    monkeypatch: pytest.MonkeyPatch, limits: CollectionLimits, took_s: float = 0.0
) -> int:
    """Return how often memory is given back, by a clock that passes only while everything waits."""
    loop, trims = VirtualLoop(), list[int]()
    clock = SimpleNamespace(monotonic=loop.time, thread_time=lambda: 0.0)

    def trim() -> None:
        trims.append(1)
        loop.selector.now_s += took_s

    async def collect() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await collect_when_idle(limits._replace(trim_share_max=1.0))

    monkeypatch.setattr(garbage_collection, "time", clock)
    monkeypatch.setattr(garbage_collection, "find_trim", lambda: trim)
    run_virtually(collect(), loop)
    return len(trims)


def test_a_library_without_the_function_gives_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    trim = find_trim()
    assert trim is not None
    trim()
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert find_trim() is None
