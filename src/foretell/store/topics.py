"""Watches: they wake when a commit announced one of their topics.

A watch misses nothing: an announcement while its owner is busy wakes it at the next wait. It is a hint
that there is work, not the work itself; owners read the tables, and also read them at intervals without
any announcement.
"""

import asyncio
from collections.abc import Iterable, Sequence


class Watch:
    """A watch with one owner."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Have the present or the next wait return at once."""
        self._woken.set()

    async def wait(self, timeout_s: float) -> bool:
        """Return True once a topic was announced, or False after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Topics:
    """The watches of one process, by topic."""

    def __init__(self) -> None:
        self._watches_by_topic: dict[str, list[Watch]] = {}

    def watch(self, topics: Sequence[str]) -> Watch:
        """Return a new watch on these topics."""
        watch = Watch()
        for topic in topics:
            self._watches_by_topic.setdefault(topic, []).append(watch)
        return watch

    def announce(self, topics: Iterable[str]) -> None:
        """Wake every watch on these topics."""
        for topic in topics:
            for watch in self._watches_by_topic.get(topic, ()):
                watch.wake()

    def announce_all(self) -> None:
        """Wake every watch: announcements may have been missed."""
        self.announce(list(self._watches_by_topic))
