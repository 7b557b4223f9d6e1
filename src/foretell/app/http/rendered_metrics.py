"""The metrics of this process as text, which is kept for a moment.

Collecting and rendering them takes milliseconds of the event loop, and sending them a part of one. At the port of the APIs
anybody may ask for them, before every rate limit. So a text answers all requests of a second, and an address gets a few.
"""

import time
from collections.abc import Callable
from typing import Final

from prometheus_client import generate_latest

from foretell.domain.errors.http import TooManyRequests
from foretell.edge.client_addresses import ClientAddresses
from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.lru import LruCache

KEPT_S: Final = 1.0
"""For how long a text answers further requests; a collector that asks every few seconds gets a new one each time."""

ANSWERS_BURST: Final = 60.0
ANSWERS_PER_S: Final = 20.0
"""To one address."""
ADDRESSES_MAX: Final = 1_000


class RenderedMetrics:
    """The text of the metrics, rendered at most once in `KEPT_S`, for clients that ask seldom enough.

    Only the event loop's thread asks for it, so there is never more than one rendering at a time.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        render: Callable[[], bytes] = generate_latest,
    ) -> None:
        self._now_s = now_s
        self._render = render
        self._text = b""
        self._ends_at_s: float | None = None
        self._addresses = ClientAddresses()
        self._allowance_by_client: LruCache[str, GrowingAllowance] = LruCache(ADDRESSES_MAX)

    def text_for(self, peer: str | None) -> bytes:
        """Return the metrics as they were at most `KEPT_S` ago.

        Refuses an address that asks too often, with TooManyRequests.
        """
        client, now_s = self._addresses.client(peer), self._now_s()
        allowance = self._allowance_by_client.get(client)
        if allowance is None:
            allowance = GrowingAllowance(ANSWERS_BURST, ANSWERS_PER_S, now_s)
            self._allowance_by_client.put(client, allowance)
        if not allowance.try_take(1.0, now_s):
            raise TooManyRequests(1)
        return self._current()

    def _current(self) -> bytes:
        if self._ends_at_s is None or self._now_s() >= self._ends_at_s:
            self._text = self._render()
            self._ends_at_s = self._now_s() + KEPT_S
        return self._text
