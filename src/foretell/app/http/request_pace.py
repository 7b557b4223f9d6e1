"""The pace at which requests of one address are read, whatever they ask for.

A request costs the event loop a fraction of a millisecond, also where no rate limit counts it, and one address may
have many connections. They share allowances of requests and of the loop's time, and one of their requests begins in
a turn of the loop, so that it comes to other clients soon. A request beyond that waits unread. TCP slows the client
down, and nothing is refused.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.loop_share import FairTurns

LOOP_SHARE: Final = 0.5
"""The part of the loop's time that requests of an address take."""
LOOP_BURST_S: Final = 0.05
COST_S_MAX: Final = 0.002
"""Of the loop's time, for one request: an address is read, however little others leave."""
_WAIT_S_MIN: Final = 0.001
"""For an allowance: a debt may be too small for a clock to pass it."""


class LoopClock(NamedTuple):
    """The time, and the processor time of the thread of the event loop."""

    now_s: Callable[[], float] = time.monotonic
    busy_s: Callable[[], float] = time.thread_time


class LoopTime:
    """The time of the event loop that requests of an address take, and the part of it that they may take."""

    def __init__(self, part: float, clock: LoopClock) -> None:
        self._clock = clock
        self._allowance = GrowingAllowance(LOOP_BURST_S, part, clock.now_s())
        self._counted_s = clock.busy_s()
        self._uncounted_s_max = 0.0
        """What the requests that have begun may have taken besides what is counted."""

    def debt_s(self) -> float:
        """Return the seconds until the next request may begin."""
        return self._allowance.take(0.0, self._clock.now_s())

    def take(self, seconds: float) -> None:
        """Count time that a request has taken."""
        self._allowance.take(seconds, self._clock.now_s())

    def count(self) -> None:
        """Count what the loop did since the last request began, for the earlier ones, and begin another."""
        busy_s = self._clock.busy_s()
        taken_s = min(busy_s - self._counted_s, self._uncounted_s_max)
        self._allowance.take(taken_s, self._clock.now_s())
        self._counted_s = busy_s
        self._uncounted_s_max = min(self._uncounted_s_max - taken_s + COST_S_MAX, LOOP_BURST_S)


class RequestPace:
    """The requests of an address: whether the next one may begin, and the connections that wait for their turn."""

    def __init__(
        self,
        burst: float,
        per_s: float,
        loop_part: float,
        clock: LoopClock,
        turns: FairTurns | None,
    ) -> None:
        """Requests begin in `turns`, which all addresses share, or else, without pauses, in turns of their own."""
        self._now_s = clock.now_s
        self._turns = turns
        self._allowance = GrowingAllowance(burst, per_s, clock.now_s())
        self._loop_time = LoopTime(loop_part, clock)
        self._waiting: deque[Callable[[], None]] = deque()
        self._has_begun = False
        """Whether a request has begun in this turn of the loop."""
        self._is_queued = self._is_releasing = False
        """Whether it waits for a turn among all addresses, and whether it has it."""
        self._next_turn: asyncio.Handle | None = None

    def may_begin(self, begin: Callable[[], None]) -> bool:
        """Return whether a request may begin now; if not, call `begin` when it is its turn."""
        if self._has_turn() and (self._is_releasing or self._may_begin_at_once()):
            return True
        self._waiting.append(begin)
        self._await_turn()
        return False

    def try_begin(self) -> bool:
        """Return whether a request begins now, without waiting, and count it."""
        begins = self._has_turn() and self._may_begin_at_once()
        if begins:
            self.count()
        return begins

    async def turn(self) -> None:
        """Wait until a request begins that has been read, and count it."""
        if self.try_begin():
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(partial(self._give, turn))
        self._await_turn()
        await turn

    def _give(self, turn: "asyncio.Future[None]") -> None:
        if not turn.done():
            self.count()
            turn.set_result(None)

    def count_time(self, seconds: float) -> None:
        """Count what a request took of the loop's time, as far as that is more than counts for each."""
        if seconds > COST_S_MAX:
            self._loop_time.take(seconds - COST_S_MAX)

    def count(self) -> None:
        """Count a request that begins."""
        self._allowance.take(1, self._now_s())
        self._loop_time.count()
        self._has_begun = True
        self._await_turn()

    def _has_turn(self) -> bool:
        return not self._has_begun and not self._debt_s()

    def _may_begin_at_once(self) -> bool:
        """Return whether a request need not wait: none of the address does, and none of another has begun just now."""
        return not self._waiting and (self._turns is None or self._turns.may_begin())

    def _debt_s(self) -> float:
        return max(self._allowance.take(0, self._now_s()), self._loop_time.debt_s())

    def _await_turn(self) -> None:
        """Have the next turn of the loop noticed."""
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Let those that wait have a turn among all addresses, or wait for the allowances."""
        self._next_turn = None
        self._has_begun = False
        if not self._waiting or self._is_queued:
            return
        debt_s = self._debt_s()
        if debt_s:
            loop = asyncio.get_running_loop()
            self._next_turn = loop.call_later(max(debt_s, _WAIT_S_MIN), self._take_turn)
        elif self._turns is None:
            self._release()
        else:
            self._is_queued = True
            self._turns.await_turn(self, self._release)

    def _release(self) -> None:
        """Let the one begin that has waited longest; those that have left meanwhile begin nothing."""
        self._is_queued, self._is_releasing = False, True
        try:
            while self._waiting and self._has_turn():
                self._waiting.popleft()()
        finally:
            self._is_releasing = False
            if self._waiting:
                self._await_turn()


class RequestTurn:
    """Whether the request that arrives on a connection, or the next one, may be read.

    It keeps nothing of the connection, whose memory is free when it ends.
    """

    __slots__ = ("_is_awaited", "_is_had", "_is_used")

    def __init__(self) -> None:
        self._is_had = self._is_awaited = self._is_used = False

    def has_come(
        self, may_begin: Callable[[Callable[[], None]], bool], read_on: Callable[[], None]
    ) -> bool:
        """Return whether a request may be read now; if not, `read_on` is called when it is its turn.

        Each request has a turn of its own, also one whose first bytes came with the end of the one before, and so has
        each further part of a head.
        """
        if not (self._is_had or self._is_awaited):
            self._is_had = may_begin(partial(self._come, read_on))
            self._is_awaited = not self._is_had
        return self._is_had

    def begins(self) -> bool:
        """Return whether the turn is used now for the first time, which counts as a request."""
        is_used, self._is_used = self._is_used, True
        return not is_used

    def end(self) -> None:
        """The request has been read whole, or as much of it as a turn may have."""
        self._is_had = self._is_used = False

    def _come(self, read_on: Callable[[], None]) -> None:
        self._is_awaited, self._is_had = False, True
        read_on()
