"""A bounded share of the event loop for answers that take long to compute.

Such an answer is computed in parts of about a millisecond. Parts of all answers take turns here, one at a time, and a
pause follows each, in which the loop serves everything else. Without it a few such answers at once would delay each
order by a part of every one of them.
"""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

PAUSE_FACTOR: Final = 3.0
"""The pause after a part, in lengths of the time that it took: parts have a quarter of the loop's time."""

Value = TypeVar("Value")


class LoopShare:
    """The turns of parts; those who wait for one get it in the order of their asking."""

    def __init__(self, pause_factor: float = PAUSE_FACTOR) -> None:
        self._pause_factor = pause_factor
        self._turn = asyncio.Lock()

    async def run(self, compute: Callable[[], Value]) -> Value:
        """Return what a part computes, after the pause that it owes; the loop has turned at least once."""
        async with self._turn:
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            value = compute()
            await asyncio.sleep(self._pause_factor * (loop.time() - began_s))
        return value
