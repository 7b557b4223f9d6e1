"""The readings of wallets that requests may ask for in a minute, and the requests that wait for one.

Anyone can make addresses, so both are counted by client, as rate limits are. A part of the minute is kept for clients
that have asked for nothing in it: those that ask for many cannot use it up.
"""

from collections import Counter, deque
from typing import Final, NamedTuple

MINUTE_MS: Final = 60_000


class ReadingLimits(NamedTuple):
    """Readings in a minute: of one client, of all, and besides these the first of each client; and requests that wait."""

    per_client: int = 30
    shared: int = 240
    reserve: int = 60
    waiting_per_client: int = 8
    waiting: int = 64


class ReadingBudget:
    """The readings that were asked for in the last minute, at most `shared` and `reserve` of them."""

    def __init__(self, limits: ReadingLimits) -> None:
        self._limits = limits
        self._asked: deque[tuple[int, str]] = deque()
        self._count_by_client: Counter[str] = Counter()
        self._waiting_by_client: Counter[str] = Counter()

    @property
    def size(self) -> int:
        """The number of clients that something is known of."""
        return len(self._count_by_client) + len(self._waiting_by_client)

    def take(self, client: str, now_ms: int) -> bool:
        """Count a reading of a client, or return False when it may ask for no more now."""
        while self._asked and self._asked[0][0] <= now_ms - MINUTE_MS:
            self._forget(self._asked.popleft()[1])
        limits, own = self._limits, self._count_by_client.get(client, 0)
        most = limits.shared if own else limits.shared + limits.reserve
        if own >= limits.per_client or len(self._asked) >= most:
            return False
        self._asked.append((now_ms, client))
        self._count_by_client[client] += 1
        return True

    def begin_waiting(self, client: str) -> bool:
        """Count a request that waits, or return False when too many do; `end_waiting` takes it off."""
        own = self._waiting_by_client.get(client, 0)
        if (
            own >= self._limits.waiting_per_client
            or self._waiting_by_client.total() >= self._limits.waiting
        ):
            return False
        self._waiting_by_client[client] += 1
        return True

    def end_waiting(self, client: str) -> None:
        """Take a request off that waits no longer."""
        self._waiting_by_client -= Counter({client: 1})

    def _forget(self, client: str) -> None:
        self._count_by_client -= Counter({client: 1})
