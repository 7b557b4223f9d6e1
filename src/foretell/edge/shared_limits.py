"""Rate limits that several processes share, by leases in PostgreSQL.

Each process admits requests within the leases of its clients' windows, and exchanges them several times a second, all
busy clients in one transaction. A request beyond the lease waits for the next exchange; those of one client and
route are admitted in order. While the database does not answer, each process admits the whole limit.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from foretell.domain.errors.families import Unavailable
from foretell.domain.values.rate_leases import NO_LEASE, RateLease, part_of, wanted_of
from foretell.domain.values.rate_windows import RateWindow
from foretell.runtime.worker import PollIntervals, run_worker
from foretell.store.database import Database
from foretell.store.rate_leases import Granted, RateClaim, exchange_leases

PACE: Final = PollIntervals(busy_s=0.05, idle_s=0.05)
RENEWAL_MS: Final = 2_000
"""How often a lease is exchanged while its process wants nothing else."""


class PendingRequest:
    """A request that waits for room in its windows, and how many it counts for."""

    __slots__ = ("admitted", "requests")

    def __init__(self, requests: int) -> None:
        self.requests = requests
        self.admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


@dataclass(slots=True)
class Quota:
    """One window of one client, and the lease of this process."""

    name: str
    window: RateWindow
    lease: RateLease = NO_LEASE
    wanted: int = 0
    exchanged_ms: int = -RENEWAL_MS

    def __post_init__(self) -> None:
        self.window.share = part_of(self.window.limit.requests)


@dataclass(slots=True, eq=False)
class SharedRoute:
    """The windows in which a client's requests to a route wait or only count, and those that wait."""

    waits_in: Sequence[Quota]
    counts_in: Sequence[Quota]
    pending: deque[PendingRequest] = field(default_factory=deque)
    waiting: int = 0
    """How many requests the pending ones count for."""

    def admits(self, now_ms: int, requests: int) -> bool:
        """Return whether all windows have room."""
        return all(quota.window.admits(now_ms, requests) for quota in self.waits_in)

    def take(self, now_ms: int, requests: int) -> None:
        """Count requests in every window."""
        for quota in (*self.waits_in, *self.counts_in):
            quota.window.take(now_ms, requests)


class SharedLimits:
    """The leases of one process."""

    def __init__(
        self,
        database: Database,
        process: str,
        now_ms: Callable[[], int],
        pace: PollIntervals = PACE,
    ) -> None:
        self._database = database
        self._process = process
        self._now_ms = now_ms
        self._pace = pace
        self._busy: dict[SharedRoute, None] = {}

    async def run(self) -> None:
        """Exchange leases until cancelled."""
        await run_worker("rate leases", self.step, self._pace, expected=(Unavailable,))

    def try_take(self, route: SharedRoute, requests: int) -> bool:
        """Count requests if they are admitted at once, after all that wait."""
        self._busy[route] = None
        now_ms = self._now_ms()
        if route.pending or not route.admits(now_ms, requests):
            return False
        route.take(now_ms, requests)
        return True

    def queue(self, route: SharedRoute, requests: int) -> PendingRequest:
        """Let requests wait for their turn."""
        pending = PendingRequest(requests)
        route.pending.append(pending)
        route.waiting += requests
        return pending

    async def step(self) -> bool:
        """Exchange the leases that changed, and admit what has room; return whether anything is busy."""
        self._admit_pending()
        claims = list(self._claims())
        if claims:
            try:
                async with self._database.writing() as tx:
                    granted = await exchange_leases(tx, self._process, claims)
            except Unavailable:
                self._admit_everything()
                raise
            self._apply(granted)
            self._admit_pending()
        self._forget_idle()
        return bool(self._busy)

    def _quotas(self) -> dict[str, tuple[Quota, int]]:
        """Return the busy windows by name, and how many requests wait for each."""
        quotas: dict[str, tuple[Quota, int]] = {}
        for route in self._busy:
            for quota in (*route.waits_in, *route.counts_in):
                _, earlier = quotas.get(quota.name, (quota, 0))
                quotas[quota.name] = quota, earlier + route.waiting
        return quotas

    def _claims(self) -> Iterator[RateClaim]:
        now_ms = self._now_ms()
        for quota, waiting in self._quotas().values():
            requests, window_ms = quota.window.limit
            used = quota.window.used(now_ms)
            wanted = wanted_of(requests, used, waiting)
            is_due = now_ms - quota.exchanged_ms >= RENEWAL_MS and quota.lease.held > 0
            if wanted != quota.wanted or is_due or quota.lease.admitted < wanted:
                quota.wanted, quota.exchanged_ms = wanted, now_ms
                yield RateClaim(quota.name, requests, window_ms, used, wanted)

    def _apply(self, granted: Mapping[str, Granted]) -> None:
        for name, (quota, _) in self._quotas().items():
            if name in granted:
                quota.lease, quota.window.elsewhere = granted[name]
            quota.window.share = part_of(quota.window.limit.requests) + quota.lease.admitted

    def _admit_everything(self) -> None:
        """Admit the whole limits, because nothing is known of the other processes."""
        for quota, _ in self._quotas().values():
            quota.window.share = None
        self._admit_pending()

    def _admit_pending(self) -> None:
        now_ms = self._now_ms()
        for route in self._busy:
            while route.pending:
                first = route.pending[0]
                if not first.admitted.done():
                    if not route.admits(now_ms, first.requests):
                        break
                    route.take(now_ms, first.requests)
                    first.admitted.set_result(None)
                route.waiting -= route.pending.popleft().requests

    def _forget_idle(self) -> None:
        for route in list(self._busy):
            quotas = (*route.waits_in, *route.counts_in)
            if not route.pending and all(
                quota.lease.held == 0 and quota.wanted == 0 for quota in quotas
            ):
                del self._busy[route]
