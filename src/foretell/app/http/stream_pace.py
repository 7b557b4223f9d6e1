"""The pace at which the streams of one address are read, and the turns of all addresses.

A piece of what a client sends costs the event loop a fraction of a millisecond, and one address may have many streams.
They share an allowance of frames and one of bytes, and few of their pieces are parsed in a turn of the loop, so that it
comes to other clients soon. Many addresses share a bounded time of such a turn, and a pause follows it. What is beyond
that waits; TCP slows the client down.
"""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.pauses import Pauses

PIECES_PER_TURN: Final = 8
"""Of the streams of an address."""
PROXIES_PIECES_PER_TURN: Final = 256
"""Of the streams through trusted proxies, which are those of many clients."""
TURN_S: Final = 0.001
"""Which the streams of all addresses may take of a turn of the loop; a piece that has begun is parsed whole, and some of a proxy."""
PAUSE_FACTOR: Final = 3.0
"""The pause after the pieces of a turn, in lengths of the time that they took: streams are read in a quarter of the loop's."""
_WAIT_S_MIN: Final = 0.001
"""For an allowance: a debt may be too small for a clock to pass it."""


class StreamTurns:
    """The addresses whose streams wait, which are read by turns: a little of each."""

    def __init__(self, pauses: Pauses) -> None:
        """Other kinds of work may share the pauses."""
        self._now_s = pauses.now_s
        self._pauses = pauses
        self._waiting: OrderedDict[StreamPace, None] = OrderedDict()
        self._is_due = False

    def join(self, pace: "StreamPace") -> None:
        """Have an address read once when it is its turn, behind the others; this may be repeated before it is."""
        self._waiting.setdefault(pace)
        self._await_turn()

    def _await_turn(self) -> None:
        if self._waiting and not self._is_due:
            self._is_due = True
            self._pauses.call_after(self._take_turn, self)

    def _take_turn(self) -> None:
        began_s = self._now_s()
        try:
            self._read_until(began_s + TURN_S)
        finally:
            took_s = self._now_s() - began_s
            self._pauses.add(PAUSE_FACTOR * took_s, took_s, self)
            self._is_due = False
            self._await_turn()

    def _read_until(self, ends_s: float) -> None:
        """Read of each address in turn, until the time is over or each has had what it may in a turn of the loop."""
        waiting, visits = self._waiting, Counter[StreamPace]()
        while waiting and self._now_s() <= ends_s:
            pace = next(iter(waiting))
            if visits[pace] == PIECES_PER_TURN:
                break  # the next turn begins with it
            visits[pace] += 1
            del waiting[pace]
            pace.read()


class StreamPace:
    """The allowances of an address, and its streams that wait for their turn."""

    def __init__(
        self,
        frames: GrowingAllowance,
        size: GrowingAllowance,
        now_s: Callable[[], float],
        turns: StreamTurns,
        pieces_per_turn: int = PIECES_PER_TURN,
    ) -> None:
        self._frames = frames
        self._bytes = size
        self._now_s = now_s
        self._turns = turns
        self._pieces_each = pieces_per_turn // PIECES_PER_TURN
        """Which are parsed before another address is read."""
        self._waiting: OrderedDict[Hashable, Callable[[], None]] = OrderedDict()
        self._unfinished: OrderedDict[Hashable, Callable[[], None]] = OrderedDict()
        """Those that wait in the middle of a message."""
        self._is_for_unfinished = True
        self._paid: asyncio.Handle | None = None

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
        self._await_turn()

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

    def read(self) -> None:
        """Let those parse a piece who are first, if the allowances admit it; the rest waits again."""
        try:
            for _ in range(min(self._count, self._pieces_each)):
                if not self._count or self.debt_s():
                    break
                self._next()()
        finally:
            self._await_turn()

    def _await_turn(self) -> None:
        """Join the turns when the allowances admit it."""
        if self._paid is not None or not self._count:
            return
        debt_s = self.debt_s()
        if debt_s:
            loop = asyncio.get_running_loop()
            self._paid = loop.call_later(max(debt_s, _WAIT_S_MIN), self._pay)
        else:
            self._turns.join(self)

    def _pay(self) -> None:
        self._paid = None
        self._await_turn()

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
