"""Topics of commits, and the watches that wake when one of theirs is announced.

An announcement is a hint that there is work: owners of watches read the tables for it, and also read
them at intervals without any announcement.
"""

from collections.abc import Iterable, Sequence

from foretell.runtime.watch import Watch


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
