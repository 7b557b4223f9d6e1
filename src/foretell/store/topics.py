"""Topics of commits, and the watches that wake when one of theirs is announced.

An announcement is a hint that there is work: owners of watches read the tables for it, and also read
them at intervals without any announcement.
"""

from collections.abc import Callable, Collection, Iterable, Sequence

from foretell.runtime.watch import Watch


class Topics:
    """The watches of one process, by topic."""

    def __init__(self) -> None:
        self._watches_by_topic: dict[str, list[Watch]] = {}
        self._relays: list[Callable[[Collection[str]], None]] = []

    def watch(self, topics: Sequence[str]) -> Watch:
        """Return a new watch on these topics."""
        watch = Watch()
        for topic in topics:
            self._watches_by_topic.setdefault(topic, []).append(watch)
        return watch

    def relay(self, announce: Callable[[Collection[str]], None]) -> None:
        """Pass on what this process announces, to one that its database does not wake."""
        self._relays.append(announce)

    def announce(self, topics: Collection[str]) -> None:
        """Wake every watch on these topics, and pass them on."""
        self.wake(topics)
        if topics:
            for relay in self._relays:
                relay(list(topics))

    def wake(self, topics: Iterable[str]) -> None:
        """Wake every watch on these topics, which another process has announced."""
        for topic in topics:
            for watch in self._watches_by_topic.get(topic, ()):
                watch.wake()

    def announce_all(self) -> None:
        """Wake every watch: announcements may have been missed."""
        self.wake(list(self._watches_by_topic))
