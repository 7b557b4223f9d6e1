"""The pace at which the streams of one address are read.

A piece of what a client sends costs the event loop a fraction of a millisecond, and one address may have many streams.
They share an allowance of frames and one of bytes, and few of their pieces are parsed in a turn of the loop, so that it
comes to other clients soon. What is beyond that waits; TCP slows the client down.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from foretell.runtime.allowance import GrowingAllowance

PIECES_PER_TURN: Final = 8
"""Of the streams of an address."""
PROXIES_PIECES_PER_TURN: Final = 256
"""Of the streams through trusted proxies, which are those of many clients."""
_WAIT_S_MIN: Final = 0.001
"""For an allowance: a debt may be too small for a clock to pass it."""


class StreamPace:
    """The allowances of an address, and its streams that wait for their turn."""

    def __init__(
        self,
        frames: GrowingAllowance,
        size: GrowingAllowance,
        now_s: Callable[[], float],
        pieces_per_turn: int = PIECES_PER_TURN,
    ) -> None:
        self._frames = frames
        self._bytes = size
        self._now_s = now_s
        self._pieces_per_turn = pieces_per_turn
        self._waiting: OrderedDict[Hashable, Callable[[], None]] = OrderedDict()
        self._unfinished: OrderedDict[Hashable, Callable[[], None]] = OrderedDict()
        """Those that wait in the middle of a message."""
        self._is_for_unfinished = True
        self._next_turn: asyncio.Handle | None = None

    def await_turn(
        self, stream: Hashable, take_turn: Callable[[], None], *, has_begun: bool = False
    ) -> None:
        """Call `take_turn`, which parses one piece, when it is the stream's turn.

        Streams that have begun a message have every other turn, and the last that waits is the first of them: so few
        messages are held in part, and large ones do not keep out the others.
        """
        if has_begun:
            self._unfinished[stream] = take_turn
            self._unfinished.move_to_end(stream, last=False)
        else:
            self._waiting[stream] = take_turn
        self._await_next_turn()

    def leave(self, stream: Hashable) -> None:
        """Have a stream wait no longer; this may be repeated."""
        self._waiting.pop(stream, None)
        self._unfinished.pop(stream, None)

    def take(self, *, frames: int = 0, size: int = 0) -> None:
        """Count frames and bytes that were read."""
        now_s = self._now_s()
        self._frames.take(frames, now_s)
        self._bytes.take(size, now_s)

    def debt_s(self) -> float:
        """Return the seconds until the address may send more."""
        now_s = self._now_s()
        return max(self._frames.take(0, now_s), self._bytes.take(0, now_s))

    def _await_next_turn(self) -> None:
        if self._next_turn is not None or not self._count:
            return
        loop, debt_s = asyncio.get_running_loop(), self.debt_s()
        if debt_s:
            self._next_turn = loop.call_later(max(debt_s, _WAIT_S_MIN), self._take_turns)
        else:
            self._next_turn = loop.call_soon(self._take_turns)

    @property
    def _count(self) -> int:
        return len(self._waiting) + len(self._unfinished)

    def _next(self) -> Callable[[], None]:
        """Return the first of those whose turn it is, or of the others if there is none."""
        queues = self._waiting, self._unfinished
        if self._is_for_unfinished:
            queues = self._unfinished, self._waiting
        self._is_for_unfinished = not self._is_for_unfinished
        _, take_turn = (queues[0] or queues[1]).popitem(last=False)
        return take_turn

    def _take_turns(self) -> None:
        """Let those parse a piece who are first; the rest waits for the next turn, or for the allowances."""
        try:
            for _ in range(min(self._count, self._pieces_per_turn)):
                if not self._count or self.debt_s():
                    break
                self._next()()
        finally:
            self._next_turn = None
            self._await_next_turn()
