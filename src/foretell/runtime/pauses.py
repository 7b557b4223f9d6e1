"""Pauses of the event loop, shorter ones than its timers know included."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

TICK_S: Final = 0.001
"""Of the timers of uvloop."""
OWED_S_MAX: Final = 2.0
"""The longest that all pauses together last: of work that was cut short, or of a process that stood still."""


class Pauses:
    """Pauses that follow each other.

    The timers of uvloop count whole milliseconds, so that half of one is none or twice as long. What a pause lacked
    is added to the next one, and up to a millisecond that it was too long is taken off.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._ends_s = float("-inf")

    @property
    def left_s(self) -> float:
        """The seconds until all pauses are over."""
        return max(0.0, self._ends_s - self._now_s())

    def call_after(self, act: Callable[[], None]) -> asyncio.Handle:
        """Have something called in a later turn of the running loop, when all pauses are over."""
        loop, left_s = asyncio.get_running_loop(), self.left_s
        return loop.call_later(left_s, act) if left_s > 0 else loop.call_soon(act)

    def add(self, seconds: float, worked_s: float = 0.0) -> float:
        """Owe a pause, and return the seconds to wait for it and for those before; work before it was no pause."""
        now_s, ended_s = self._now_s(), self._ends_s + worked_s
        ends_s = (ended_s if now_s - ended_s < TICK_S else now_s) + seconds
        self._ends_s = min(ends_s, now_s + OWED_S_MAX)
        return max(0.0, self._ends_s - now_s)
