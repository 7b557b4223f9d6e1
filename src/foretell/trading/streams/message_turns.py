"""The turns in which the messages of clients are handled, in a bounded share of the event loop.

A message that names many markets costs the loop up to a millisecond, and many streams may send one at the same moment.
So one is handled at a time, of each client in turn, and a pause follows that is three times as long: the loop comes to
everything else between two messages, and has three quarters of its time for it. A message that comes alone waits for nothing.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final

from foretell.runtime.loop_share import FairTurns
from foretell.runtime.pauses import Pauses
from foretell.runtime.timed_steps import TimedSteps

PAUSE_FACTOR: Final = 3.0
"""The pause after a message, in lengths of the time that its handling took."""


class MessageTurns:
    """The messages that wait to be handled, at most one of each stream, by the client of the stream."""

    def __init__(
        self, pauses: Pauses | None = None, busy_s: Callable[[], float] = time.thread_time
    ) -> None:
        """Other kinds of work may share the pauses; `busy_s` is the processor time of the loop's thread."""
        self._busy_s = busy_s
        self._turns = FairTurns(PAUSE_FACTOR, pauses or Pauses())

    async def run(self, client: Hashable, handle: Callable[[], Awaitable[None]]) -> None:
        """Handle a message when its client has its turn; only its own steps count, not what it waits for."""
        if not self._turns.are_free:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._turns.await_turn(client, partial(_give, turn))
            await turn
        steps = TimedSteps(handle(), self._busy_s)
        try:
            await steps
        finally:
            self._turns.count(steps.spent_s)


def _give(turn: "asyncio.Future[None]") -> None:
    """Have a message handled, unless its stream has ended."""
    if not turn.done():
        turn.set_result(None)
