"""Garbage collection settings of processes that keep many objects and free few.

The objects of an exchange (orders, accounts, code) form no reference cycles to free, so searching
all of them again and again is wasted work that grows with their number. Reference counting frees
them. Cycles come from the parts around it, such as the tracebacks of refusals and the tasks of
connections. So the interpreter searches young objects only, and the older ones are searched when
the event loop has nothing to do.

Then memory that is free is given back to the system, too: the allocator keeps what a burst of large
requests used, because smaller objects lie behind it. A loop that is never idle does this, too: it takes some
milliseconds in a minute.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

YOUNG_OBJECTS_MAX: Final = 50_000
"""How many more objects are allocated than freed before the youngest generation is searched.

A search costs 15 to 45 ms with orders in the queue, and nothing is cheaper by more of them at once.
"""
STARTING_OBJECTS_MAX: Final = 400_000
"""The same while a process starts: nearly all that it makes until then are modules, which stay."""
YOUNG_SEARCHES_MAX: Final = 2
"""After one more search of the youngest generation, what has survived is searched: more of it would be a longer pause."""
NEVER: Final = 1_000_000
"""Searches of the middle generation before the interpreter searches the oldest: the loop does that."""
MIDDLE_GENERATION: Final = 1
_MEMORY: Final = Path("/proc/self/statm")


class CollectionLimits(NamedTuple):
    """Bounds of the searches that an event loop does, in seconds and in parts of a second."""

    check_s: float = 0.5
    idle_share_max: float = 0.2
    """A loop that used no more of its thread since the last check is idle."""
    young_every_s_max: float = 60.0
    """How long a loop may be busy before objects that are younger than a full search are searched."""
    full_every_s: float = 60.0
    """From one full search to the next, when the loop is idle."""
    full_every_s_max: float = 3_600.0
    """From one full search to the next, however busy the loop is."""
    full_grown_every_s: float = 300.0
    """The same when the process has grown since, as it does while garbage waits."""
    full_share_max: float = 0.01
    """The part of time that full searches may take in an idle loop, or in one whose process grows."""
    pause_s_max: float = 0.25
    """A full search that took longer excludes what it kept, so that the next one is short again."""
    trim_every_s: float = 60.0
    """From one time that free memory is given back to the next, whether the loop is idle or busy."""
    trim_grown_every_s: float = 2.0
    """The same when the loop is idle and the process has grown since, as it does in a burst of large requests.

    A loop that is busy in the burst waits for the longer time, counted from the last time before it.
    """
    growth: float = 0.05
    """The growth of resident memory that counts as such, as a part of what it was."""
    trim_pause_s_max: float = 0.02
    """If it took longer, it waits for an idle loop: in a busy one it delays all requests."""
    trim_share_max: float = 0.001
    """The part of time that this may take."""


COLLECTION_LIMITS: Final = CollectionLimits()


def find_trim() -> Callable[[], object] | None:
    """Return what gives free memory back to the system: a function of glibc, None with another library."""
    try:
        malloc_trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    malloc_trim.argtypes, malloc_trim.restype = [ctypes.c_size_t], ctypes.c_int

    def trim() -> object:
        return malloc_trim(0)

    return trim


def resident_bytes() -> int:
    """Return the physical memory of this process; zero where no file has it."""
    try:
        return int(_MEMORY.read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


def search_rarely() -> None:
    """Start with few searches of objects that imports make; `settle_memory` ends it in a server."""
    gc.set_threshold(STARTING_OBJECTS_MAX)


def settle_memory() -> None:
    """Exclude what exists now from collection, and search only young objects from now on."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_MAX, YOUNG_SEARCHES_MAX, NEVER)


async def collect_when_idle(limits: CollectionLimits = COLLECTION_LIMITS) -> None:
    """Search for garbage whenever the event loop of this thread is idle, until cancelled."""
    collector = _Collector(limits)
    while True:
        await asyncio.sleep(limits.check_s)
        collector.check()


class _Collector:
    """The times of the last searches, and the processor time of the thread at the last check."""

    def __init__(self, limits: CollectionLimits) -> None:
        self._limits = limits
        self._checked_at_s = self._young_at_s = self._full_at_s = time.monotonic()
        self._used_s = time.thread_time()
        self._full_took_s = 0.0
        self._trim = find_trim()
        self._trimmed_at_s = self._checked_at_s
        self._trim_took_s = 0.0
        self._searched_bytes = self._trimmed_bytes = resident_bytes()

    def check(self) -> None:
        """Search what is due, unless collection is paused."""
        limits, now_s = self._limits, time.monotonic()
        is_idle = self._is_idle(now_s)
        self._give_back(now_s, is_idle=is_idle)
        if not gc.isenabled():
            return
        if now_s - self._full_at_s >= self._full_pause_s(now_s, is_idle=is_idle):
            self._search_all()
        elif is_idle or now_s - self._young_at_s >= limits.young_every_s_max:
            gc.collect(MIDDLE_GENERATION)
            self._young_at_s = time.monotonic()

    def _full_pause_s(self, now_s: float, *, is_idle: bool) -> float:
        """Return the time from one full search to the next."""
        limits = self._limits
        if is_idle:
            return max(limits.full_every_s, self._full_took_s / limits.full_share_max)
        soon_s = max(limits.full_grown_every_s, self._full_took_s / limits.full_share_max)
        if now_s - self._full_at_s >= soon_s and self._has_grown(self._searched_bytes):
            return soon_s
        return limits.full_every_s_max

    def _is_idle(self, now_s: float) -> bool:
        """Return whether the thread used little of its time since the last check."""
        used_s, elapsed_s = time.thread_time() - self._used_s, now_s - self._checked_at_s
        self._used_s += used_s
        self._checked_at_s = now_s
        return used_s <= elapsed_s * self._limits.idle_share_max

    def _give_back(self, now_s: float, *, is_idle: bool) -> None:
        """Give free memory back, unless that was done a short time ago."""
        limits, since_s = self._limits, now_s - self._trimmed_at_s
        soon_s = min(limits.trim_grown_every_s, limits.trim_every_s)
        pause_s = soon_s if is_idle else limits.trim_every_s
        pause_s = max(pause_s, self._trim_took_s / limits.trim_share_max)
        is_long = self._trim_took_s > limits.trim_pause_s_max
        if self._trim is None or since_s < pause_s or (is_long and not is_idle):
            return
        if since_s >= limits.trim_every_s or self._has_grown(self._trimmed_bytes):
            self._trim()
            self._trimmed_at_s = time.monotonic()
            self._trim_took_s = self._trimmed_at_s - now_s
            self._trimmed_bytes = resident_bytes()

    def _has_grown(self, before_bytes: int) -> bool:
        return resident_bytes() > (1 + self._limits.growth) * before_bytes

    def _search_all(self) -> None:
        began_s = time.monotonic()
        gc.collect()
        self._full_at_s = self._young_at_s = time.monotonic()
        self._full_took_s = self._full_at_s - began_s
        self._searched_bytes = resident_bytes()
        if self._full_took_s > self._limits.pause_s_max:
            gc.freeze()


@contextlib.contextmanager
def garbage_collection_paused() -> Iterator[None]:
    """Pause garbage collection during a replay: nearly all objects made then are kept."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
