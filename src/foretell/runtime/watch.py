"""A watch: its owner waits for an announcement, at most for some time.

A watch misses nothing: an announcement while its owner is busy wakes it at the next wait. It is a hint
that there is work, not the work itself; owners also look for work at intervals without any announcement.
"""

import asyncio


class Watch:
    """A watch with one owner."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Have the present or the next wait return at once."""
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return True once it was woken, or False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True
