"""The pace at which requests of one address are read, whatever they ask for.

A request costs the event loop a fraction of a millisecond, also where no rate limit counts it, and one address may
have many connections. They share an allowance, and few of their requests begin in one turn of the loop, so that it
comes to other clients soon. A request beyond that waits unread. TCP slows the client down, and nothing is refused.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from foretell.runtime.allowance import GrowingAllowance

OF_TURN_MAX: Final = 4
"""Requests of an address that begin in a turn of the event loop; those of one piece of data are not parted."""

_WAIT_S_MIN: Final = 0.001
"""For the allowance: a debt may be too small for a clock to pass it."""


class RequestPace:
    """The requests of an address: how many may begin now, and the connections that wait for their turn."""

    def __init__(
        self, burst: float, per_s: float, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self._now_s = now_s
        self._allowance = GrowingAllowance(burst, per_s, now_s())
        self._waiting: deque[Callable[[], None]] = deque()
        self._begun = 0
        """Requests in this turn of the loop."""
        self._is_releasing = False
        self._next_turn: asyncio.Handle | None = None

    def may_begin(self, begin: Callable[[], None]) -> bool:
        """Return whether a request may begin now; if not, call `begin` when it is its turn."""
        if self._has_turn() and (self._is_releasing or not self._waiting):
            return True
        self._waiting.append(begin)
        self._await_turn()
        return False

    def count(self) -> None:
        """Count a request that begins."""
        self._allowance.take(1, self._now_s())
        self._begun += 1
        self._await_turn()

    def _has_turn(self) -> bool:
        return self._begun < OF_TURN_MAX and not self._debt_s()

    def _debt_s(self) -> float:
        return self._allowance.take(0, self._now_s())

    def _await_turn(self) -> None:
        """Have the next turn of the loop noticed."""
        if self._next_turn is None:
            self._next_turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _take_turn(self) -> None:
        """Let those begin that have waited longest; the rest waits for the next turn, or for the allowance."""
        self._begun = 0
        self._is_releasing = True
        try:
            while self._waiting and self._has_turn():
                self._waiting.popleft()()
        finally:
            self._is_releasing = False
            self._next_turn = None
        debt_s = self._debt_s() if self._waiting else 0.0
        if debt_s:
            loop = asyncio.get_running_loop()
            self._next_turn = loop.call_later(max(debt_s, _WAIT_S_MIN), self._take_turn)
        elif self._waiting or self._begun:
            self._await_turn()


class RequestTurn:
    """Whether the request that arrives on a connection, or the next one, may be read.

    It keeps nothing of the connection, whose memory is free when it ends.
    """

    __slots__ = ("_is_awaited", "_is_had")

    def __init__(self) -> None:
        self._is_had = self._is_awaited = False

    def has_come(
        self, may_begin: Callable[[Callable[[], None]], bool], read_on: Callable[[], None]
    ) -> bool:
        """Return whether a request may be read now; if not, `read_on` is called when it is its turn.

        Each request has a turn of its own, also one whose first bytes came with the end of the one before.
        """
        if not (self._is_had or self._is_awaited):
            self._is_had = may_begin(partial(self._come, read_on))
            self._is_awaited = not self._is_had
        return self._is_had

    def end(self) -> None:
        """The request has been read whole."""
        self._is_had = False

    def _come(self, read_on: Callable[[], None]) -> None:
        self._is_awaited, self._is_had = False, True
        read_on()
