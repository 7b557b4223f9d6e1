"""Reads that wait for a place, by client: clients have their turns in order, and the reads of each come first in first out.

The client of which most reads wait is found without a look at the others: in a full queue it is the one that loses a read.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator

Place = asyncio.Future[bool]
"""Whether the read that waits has got its place or lost it to another one.

It is no exception: that would have the frame that waits, which has it, until the collector finds both.
"""


class WaitingReads:
    """The reads that wait, and how many of each client."""

    def __init__(self) -> None:
        self._queue_by_client: OrderedDict[str, deque[Place]] = OrderedDict()
        """The client whose turn is next first."""
        self._clients_by_count: dict[int, dict[str, None]] = {}
        """The clients of which so many reads wait, in the order in which they came to that number."""
        self._most = 0
        self._total = 0

    def __len__(self) -> int:
        return self._total

    def __iter__(self) -> Iterator[str]:
        """Return the clients, the one whose turn is next first."""
        return iter(self._queue_by_client)

    def count_of(self, client: str) -> int:
        """Return how many reads of a client wait."""
        return len(self._queue_by_client.get(client, ()))

    @property
    def most(self) -> int:
        """How many reads wait of the client with most of them."""
        return self._most

    def add(self, client: str, place: Place) -> None:
        """Add a read of a client after its others."""
        queue = self._queue_by_client.setdefault(client, deque())
        queue.append(place)
        self._count(client, len(queue) - 1, len(queue))

    def take_next(self, client: str) -> Place:
        """Take the first read of a client, whose next turn is after all others'."""
        place = self._queue_by_client[client].popleft()
        self._count_taken(client)
        if client in self._queue_by_client:
            self._queue_by_client.move_to_end(client)
        return place

    def take_newest_of_most(self) -> Place:
        """Take the newest read of the client with most of them: of several, the one that came to so many last."""
        client = next(reversed(self._clients_by_count[self._most]))
        place = self._queue_by_client[client].pop()
        self._count_taken(client)
        return place

    def discard(self, client: str, place: Place) -> None:
        """Remove a read if it waits."""
        queue = self._queue_by_client.get(client, deque())
        if place in queue:
            queue.remove(place)
            self._count_taken(client)

    def _count_taken(self, client: str) -> None:
        """Note that a read of a client was taken from its queue."""
        left = len(self._queue_by_client[client])
        if not left:
            del self._queue_by_client[client]
        self._count(client, left + 1, left)

    def _count(self, client: str, before: int, now: int) -> None:
        """Note that one more or one less read of a client waits."""
        self._total += now - before
        if before:
            clients = self._clients_by_count[before]
            del clients[client]
            if not clients:
                del self._clients_by_count[before]
                self._most = now if before == self._most else self._most
        if now:
            self._clients_by_count.setdefault(now, {})[client] = None
            self._most = max(self._most, now)
