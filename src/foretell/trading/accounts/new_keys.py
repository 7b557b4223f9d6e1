"""The API keys that each client may create in a minute.

Anyone can make addresses, so a bound for each of these does not bound what one client stores.
"""

import time
from collections.abc import Callable
from typing import Final

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.values.rate_windows import RateLimit, RateWindow
from foretell.runtime.lru import LruCache

NEW_KEYS: Final = RateLimit(60, 60_000)
CLIENTS_MAX: Final = 10_000


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class NewKeyBudget:
    """The keys that the latest clients of this process created in the last minute."""

    def __init__(
        self,
        limit: RateLimit = NEW_KEYS,
        now_ms: Callable[[], int] = _monotonic_ms,
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        self._limit = limit
        self._now_ms = now_ms
        self._window_by_client: LruCache[str, RateWindow] = LruCache(clients_max)

    @property
    def clients(self) -> int:
        """The number of clients that something is known of."""
        return len(self._window_by_client)

    def take(self, client: str) -> None:
        """Count a new key of a client, or refuse it as TooManyRequests."""
        now_ms = self._now_ms()
        window = self._window_by_client.get(client)
        if window is None:
            window = RateWindow(self._limit)
            self._window_by_client.put(client, window)
        wait_ms = window.place_ms(now_ms) - now_ms
        if wait_ms > 0:
            raise TooManyRequests(-(-wait_ms // 1000))
        window.take(now_ms)
