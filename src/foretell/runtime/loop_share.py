"""Bounded shares of the event loop for work that many clients may ask for at the same moment.

An answer that takes long is computed in parts of about a millisecond. Parts of all answers take turns here, one at a
time, and a pause follows each, in which the loop serves everything else. Without it a few such answers at once would
delay each order by a part of every one of them. A short answer has no pauses: it takes no more than other requests do.

What a client sends takes turns by clients instead, so that one that sends much delays itself.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from typing import Final, TypeVar

from foretell.runtime.pauses import Pauses

PAUSE_FACTOR: Final = 3.0
"""The pause after a part, in lengths of the time that it took: parts have a quarter of the loop's time."""
SHORT_S: Final = 0.005
"""What the parts of an answer take together before there are pauses between them."""

Value = TypeVar("Value")


class LoopShare:
    """The turns of parts; those who wait for one get it in the order of their asking."""

    def __init__(
        self,
        pause_factor: float = PAUSE_FACTOR,
        short_s: float = SHORT_S,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.pause_factor = pause_factor
        self.short_s = short_s
        self.now_s = now_s
        """Measures parts; the clock of uvloop's loop counts whole milliseconds."""
        self.turn = asyncio.Lock()
        self.pauses = Pauses(now_s)

    def begin(self) -> "SharedAnswer":
        """Return the share of one answer."""
        return SharedAnswer(self)


class SharedAnswer:
    """An answer that is computed in parts, and the time that these took."""

    def __init__(self, share: LoopShare) -> None:
        self._share = share
        self._used_s = 0.0

    async def run(self, compute: Callable[[], Value]) -> Value:
        """Return what a part computes, after the pause that it owes; the loop has turned at least once."""
        share = self._share
        async with share.turn:
            began_s = share.now_s()
            value = compute()
            took_s = share.now_s() - began_s
            self._used_s += took_s
            is_short = self._used_s <= share.short_s
            owed_s = 0.0 if is_short else share.pause_factor * took_s
            await asyncio.sleep(share.pauses.add(owed_s, took_s) if owed_s else 0.0)
        return value


class FairTurns:
    """The turns of clients: one piece of work is done at a time, of each client in turn, and a pause follows it.

    Work that comes alone waits for nothing. What work took is counted when it has been done, or, where it goes on in
    tasks, as the processor time of the thread until somebody asks for the next turn, up to a bound: others' work is in it.
    """

    def __init__(
        self,
        pause_factor: float,
        pauses: Pauses,
        busy_s: Callable[[], float] | None = None,
        work_s_max: float = 0.0,
    ) -> None:
        """The pause after work is as many lengths of its time as `pause_factor`; `busy_s` measures work in tasks.

        Other kinds of work may share the pauses.
        """
        self._pause_factor = pause_factor
        self._busy_s = busy_s
        self._work_s_max = work_s_max
        self._begun_s: tuple[float, float] | None = None
        """When the last work began in tasks, by both clocks, until it is counted."""
        self._has_begun = False
        """Whether that was in this turn of the loop."""
        self._owed_s = 0.0
        self.now_s = pauses.now_s
        self._pauses = pauses
        self._waiting: OrderedDict[Hashable, deque[Callable[[], None]]] = OrderedDict()
        self._is_due = False

    @property
    def are_free(self) -> bool:
        """Whether work may be done now."""
        return not (self._waiting or self._pauses.are_awaited or self._pauses.left_s)

    def may_begin(self) -> bool:
        """Return whether work in tasks may begin without waiting, and have it begin: the first of a turn of the loop."""
        may_begin = False
        if not (self._has_begun or self._waiting):
            self._count_tasks()
            may_begin = not self._pauses.are_awaited and self._pauses.may_go_on
            if may_begin:
                self._begin_tasks()
        return may_begin

    def await_turn(self, client: Hashable, begin: Callable[[], None]) -> None:
        """Call `begin` when it is the client's turn, behind what it asked for before."""
        self._waiting.setdefault(client, deque()).append(begin)
        self._await_next()

    def count(self, seconds: float) -> None:
        """Count the time of work that was done just now."""
        self._pauses.add(self._pause_factor * seconds, seconds, self)

    def owe(self, seconds: float) -> None:
        """Have the pause after the last work in tasks be longer, by as much as the most that work counts altogether.

        What comes without a turn, however often, thus postpones no turn for ever.
        """
        self._owed_s = min(self._owed_s + seconds, self._work_s_max)

    def _begin_tasks(self) -> None:
        if self._busy_s is not None:
            self._begun_s = self.now_s(), self._busy_s()
            self._has_begun = True
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._has_begun = False

    def _count_tasks(self) -> None:
        """Owe the pause that follows the last work; others' work since then was a pause, too."""
        if self._busy_s is not None and self._begun_s is not None:
            began_s, busy_s = self._begun_s
            self._begun_s = None
            took_s = min(self._busy_s() - busy_s, self._work_s_max)
            pause_s = self._pause_factor * took_s + self._owed_s
            self._owed_s = 0.0
            self._pauses.add(pause_s, took_s, self, began_s)

    def _await_next(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._pauses.call_after(self._give, self)

    def _give(self) -> None:
        """Give the first client its turn: what it does in this turn of the loop counts before the next one."""
        self._is_due = False
        self._count_tasks()
        if self._pauses.may_go_on:
            self._begin_tasks()
            client, begins = self._waiting.popitem(last=False)
            begin = begins.popleft()
            if begins:
                self._waiting[client] = begins
            try:
                begin()
            finally:
                self._await_next()
        else:
            self._await_next()
