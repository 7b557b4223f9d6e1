"""Pauses of the event loop between pieces of work, shorter ones than its timers know included."""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final

TICK_S: Final = 0.001
"""Of the timers of uvloop."""
OWED_S_MAX: Final = 2.0
"""The longest that all pauses together last: of work that was cut short, or of a process that stood still."""


class Pauses:
    """Pauses that follow each other, and the kinds of work that take turns between them.

    Kinds of work that share them have together the part of the loop's time that one would have alone, and a turn of the
    loop has one piece of one kind. Each with pauses of its own would add a piece to the same turns.

    The timers of uvloop count whole milliseconds, so that half of one is none or twice as long. What a pause lacked
    is added to the next one, and up to a millisecond that it was too long is taken off.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        """Measures work, too; the clock of uvloop's loop counts whole milliseconds."""
        self._ends_s = float("-inf")
        self._waiting: deque[Callable[[], None]] = deque()
        self._next: asyncio.Handle | None = None

    @property
    def left_s(self) -> float:
        """The seconds until all pauses are over."""
        return max(0.0, self._ends_s - self.now_s())

    def call_after(self, act: Callable[[], None]) -> None:
        """Have something called in a later turn of the running loop, when all pauses are over.

        Those who ask are called in the order of their asking, one in a turn; one that is called may ask again.
        """
        self._waiting.append(act)
        self._await_next()

    def _await_next(self) -> None:
        if self._next is None and self._waiting:
            loop, left_s = asyncio.get_running_loop(), self.left_s
            call = self._call_next
            self._next = loop.call_later(left_s, call) if left_s > 0 else loop.call_soon(call)

    def _call_next(self) -> None:
        """Call the first one, unless a pause was added meanwhile."""
        self._next = None
        try:
            if not self.left_s:
                self._waiting.popleft()()
        finally:
            self._await_next()

    def add(self, seconds: float, worked_s: float = 0.0) -> float:
        """Owe a pause, and return the seconds to wait for it and for those before; work before it was no pause."""
        now_s, ended_s = self.now_s(), self._ends_s + worked_s
        ends_s = (ended_s if now_s - ended_s < TICK_S else now_s) + seconds
        self._ends_s = min(ends_s, now_s + OWED_S_MAX)
        return max(0.0, self._ends_s - now_s)
