"""Pages of markets, kept for a second for all clients together.

A page costs the loop that takes orders as much as a hundred of them, so few are rendered, however many are asked for.
One is rendered at a time. A client that waits has its turn among the other clients, and gets the page that another had
rendered meanwhile. A render that fails or is cancelled is of no consequence to others: the next client renders.
"""

import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, NamedTuple

from foretell.edge.read_answers import TaggedContent
from foretell.store.public_reads.places import ReadPlaces, WaitBounds, answering, client_name
from foretell.store.public_reads.rests import ALL_CLIENTS


class PageLimits(NamedTuple):
    """Bounds of what is rendered in one turn of the loop, of what waits, and of what is kept."""

    markets_per_part: int = 50
    """Loaded and encoded together, in about a millisecond."""
    renders: int = 1
    bounds: WaitBounds = WaitBounds(per_client=100, total=1_000)
    kept_s: int = 1
    """From the beginning of a render: the prices in a page are as old at most."""
    pages_max: int = 32
    bytes_max: int = 32 * 1024 * 1024
    """Of all kept pages; one that is larger is not kept."""


PAGE_LIMITS: Final = PageLimits()


class _KeptPage(NamedTuple):
    page: TaggedContent
    began_s: float

    @property
    def size_bytes(self) -> int:
        return len(self.page.content)


class MarketPages:
    """Encoded pages by their keys, and the clients that wait for one."""

    def __init__(
        self, limits: PageLimits = PAGE_LIMITS, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._now_s = now_s
        self._renders = ReadPlaces(limits.renders, 1, limits.bounds)
        self._kept: OrderedDict[Hashable, _KeptPage] = OrderedDict()
        """The oldest first."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    @property
    def waiting(self) -> int:
        """How many requests wait for a page."""
        return self._renders.waiting

    async def get(
        self, key: Hashable, render: Callable[[], Awaitable[TaggedContent]]
    ) -> TaggedContent:
        """Return the page of a key, rendered unless one is kept or was begun since, or refuse after too long a wait."""
        asked_s = self._now_s()
        page = self._find(key, asked_s)
        if page is not None:
            return page
        client = client_name.get()
        await self._renders.take(client)
        try:
            page = self._find(key, asked_s)
            return await self._render(key, render) if page is None else page
        finally:
            self._renders.release(client)

    async def _render(
        self, key: Hashable, render: Callable[[], Awaitable[TaggedContent]]
    ) -> TaggedContent:
        """Return a page that is read for all clients: it does not wait for the reads of the one that asked."""
        began_s = self._now_s()
        with answering(ALL_CLIENTS):
            page = await render()
        self._keep(key, _KeptPage(page, began_s))
        return page

    def _find(self, key: Hashable, asked_s: float) -> TaggedContent | None:
        """Return a page that is new enough: one that was begun after it was asked for is, however long it took."""
        kept = self._kept.get(key)
        if kept is None or not (kept.began_s >= asked_s or self._is_new(kept)):
            return None
        return kept.page

    def _is_new(self, kept: _KeptPage) -> bool:
        return self._now_s() < kept.began_s + self.limits.kept_s

    def _keep(self, key: Hashable, rendered: _KeptPage) -> None:
        """Keep a page in place of those that are too many."""
        if key in self._kept:
            self._drop(key)
        if rendered.size_bytes > self.limits.bytes_max:
            return
        self._kept[key] = rendered
        self.size_bytes += rendered.size_bytes
        while len(self._kept) > self.limits.pages_max or self.size_bytes > self.limits.bytes_max:
            self._drop(next(iter(self._kept)))

    def _drop(self, key: Hashable) -> None:
        self.size_bytes -= self._kept.pop(key).size_bytes
