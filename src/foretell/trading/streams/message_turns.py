"""The turns in which the messages of clients are handled, in a bounded share of the event loop.

A message that names many markets costs the loop up to a millisecond, and many streams may send one at the same moment.
So one is handled at a time, of each client in turn, and a pause follows that is as long as its handling: the loop comes
to everything else between two messages, and has half of its time for it. A message that comes alone waits for nothing.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from foretell.runtime.pauses import Pauses
from foretell.runtime.timed_steps import TimedSteps

PAUSE_FACTOR: Final = 1.0
"""The pause after a message, in lengths of the time that its handling took."""


class MessageTurns:
    """The messages that wait to be handled, at most one of each stream, by the client of the stream."""

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        busy_s: Callable[[], float] = time.thread_time,
    ) -> None:
        """`busy_s` is the processor time of the loop's thread."""
        self._busy_s = busy_s
        self._pauses = Pauses(now_s)
        self._waiting: OrderedDict[Hashable, deque[asyncio.Future[None]]] = OrderedDict()
        self._next_turn: asyncio.Handle | None = None

    async def run(self, client: Hashable, handle: Callable[[], Awaitable[None]]) -> None:
        """Handle a message when its client has its turn; only its own steps count, not what it waits for."""
        await self._come(client)
        steps = TimedSteps(handle(), self._busy_s)
        try:
            await steps
        finally:
            self._pauses.add(PAUSE_FACTOR * steps.spent_s, steps.spent_s)

    async def _come(self, client: Hashable) -> None:
        if not self._waiting and not self._pauses.left_s:
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._await_turn()
        await turn

    def _await_turn(self) -> None:
        if self._next_turn is not None or not self._waiting:
            return
        loop, left_s = asyncio.get_running_loop(), self._pauses.left_s
        if left_s > 0:
            self._next_turn = loop.call_later(left_s, self._give)
        else:
            self._next_turn = loop.call_soon(self._give)

    def _give(self) -> None:
        """Have the first message handled, unless its stream has ended; what it takes is known before the next one."""
        self._next_turn = None
        if not self._pauses.left_s:
            client, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[client] = turns
            if not turn.done():
                turn.set_result(None)
        self._await_turn()
