"""A bounded share of the event loop for answers that take long to compute.

Such an answer is computed in parts of about a millisecond. Parts of all answers take turns here, one at a time, and a
pause follows each, in which the loop serves everything else. Without it a few such answers at once would delay each
order by a part of every one of them. A short answer has no pauses: it takes no more than other requests do.
"""

import asyncio
import time
from collections.abc import Callable
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
