"""Pauses of the event loop between pieces of work, shorter ones than its timers know included."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

TICK_S: Final = 0.001
"""Of the timers of uvloop."""
OWED_S_MAX: Final = 2.0
"""The longest that all pauses together last: of work that was cut short, or of a process that stood still."""


class Pauses:
    """Pauses that follow each other, and the kinds of work that take turns between them.

    Kinds of work that share them have together the part of the loop's time that one would have alone, and a turn of the
    loop has one piece of one kind: of the one that has used least. Each with pauses of its own would add a piece to the
    same turns.

    The timers of uvloop count whole milliseconds, so that half of one is none or twice as long. What a pause lacked
    is added to the next one, and up to a millisecond that it was too long is taken off.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        """Measures work, too; the clock of uvloop's loop counts whole milliseconds."""
        self._ends_s = float("-inf")
        self._waiting: dict[Hashable, deque[Callable[[], None]]] = {}
        """By their kind."""
        self._used_s: dict[Hashable, float] = {}
        """Pauses and work of each kind; one that begins to wait has used as much as the last one that was called, at least."""
        self._called_at_s = 0.0
        self._next: asyncio.Handle | None = None

    @property
    def left_s(self) -> float:
        """The seconds until all pauses are over."""
        return max(0.0, self._ends_s - self.now_s())

    @property
    def may_go_on(self) -> bool:
        """Whether no pause is left that a timer can keep: what a shorter one lacks is added to the next."""
        return self.left_s < TICK_S / 2

    @property
    def are_awaited(self) -> bool:
        """Whether something waits for the end of all pauses."""
        return bool(self._waiting)

    def call_after(self, act: Callable[[], None], kind: Hashable = None) -> None:
        """Have something called in a later turn of the running loop, when all pauses are over.

        One is called in a turn, of the kind that has used least, and of a kind in the order of asking.
        """
        if kind not in self._waiting:
            self._waiting[kind] = deque()
            self._used_s[kind] = max(self._used_s.get(kind, 0.0), self._called_at_s)
        self._waiting[kind].append(act)
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
            if self.may_go_on:
                kind = min(self._waiting, key=self._used_s.__getitem__)
                self._called_at_s = self._used_s[kind]
                acts = self._waiting[kind]
                act = acts.popleft()
                if not acts:
                    del self._waiting[kind]
                act()
        finally:
            self._await_next()

    def add(
        self,
        seconds: float,
        worked_s: float = 0.0,
        kind: Hashable = None,
        began_s: float | None = None,
    ) -> float:
        """Owe a pause after work, and return the seconds to wait for it and for those before; the work was no pause.

        The work began at `began_s`, or else has ended just now.
        """
        if kind in self._used_s:
            self._used_s[kind] += seconds + worked_s
            if not self._waiting:  # what nobody waited for is not held against the kind later
                self._called_at_s = max(self._called_at_s, self._used_s[kind])
        now_s = self.now_s()
        if began_s is None:
            began_s = now_s - worked_s
        paused_until_s = self._ends_s if began_s - self._ends_s < TICK_S else began_s
        self._ends_s = min(paused_until_s + worked_s + seconds, now_s + OWED_S_MAX)
        return self.left_s
