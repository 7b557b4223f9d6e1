"""The turn of a request: it counts once, and may have to wait.

A request takes its place in the narrowest row at once, and in the wider rows when that place has
come, so that requests of one row never wait for those of another. What waits is bounded for each
client and for all; beyond, a request is refused with the time at which it would be admitted.
Cancels wait apart from all other requests, with bounds of their own.
"""

import asyncio
from typing import Final, Protocol

from foretell.domain.errors.http import ClientGone, TooManyRequests
from foretell.domain.values.rate_windows import RateWindow, place_in_all_ms
from foretell.edge.rate_limiter import (
    ClientWindows,
    LimitedRoute,
    RateLimiter,
    RouteWindows,
    Waiting,
)
from foretell.edge.shared_limits import PendingRequest, SharedRoute

OVERHEAD_BYTES: Final = 8 * 1024
"""What a request that waits needs beside its body."""
BUFFERED_BYTES_MAX: Final = 64 * 1024
"""The most of a body that is read while its request waits."""


class ConnectionPlace(Protocol):
    """The place of a connection, which learns that the connection has shown a key, and paces its requests."""

    def show_key(self, account: str) -> None:
        """Note that a request on the connection was verified with a key of this account."""
        ...

    async def have_turn(self, client: str) -> None:
        """Wait for the turn of a request of a client that no rate limit bounds, unless it has had one."""
        ...

    async def have_turn_again(self, client: str) -> None:
        """Wait for another turn of a request of a client, whose body has arrived and may take long to read."""
        ...

    def count_time(self, client: str, seconds: float) -> None:
        """Count what a request of a client took of the event loop's time."""
        ...


class Turn:
    """One request at a limiter: it takes its places once, and may have to wait for them."""

    __slots__ = (
        "_arrived_ms",
        "_client",
        "_due_ms",
        "_pending",
        "_place",
        "_requests",
        "_windows",
        "address",
        "body_bytes",
        "is_abandoned",
        "is_open",
        "limiter",
        "route",
        "throttled_ms",
    )

    def __init__(
        self,
        limiter: RateLimiter,
        route: LimitedRoute,
        address: str,
        body_bytes: int,
        place: ConnectionPlace | None = None,
    ) -> None:
        self.limiter = limiter
        self.route = route
        self.address = address
        self.body_bytes = body_bytes
        self.is_open = True
        """Whether the request counts nowhere yet."""
        self.is_abandoned = False
        """Whether the connection closed."""
        self.throttled_ms = 0
        self._windows: RouteWindows | None = None
        self._pending: PendingRequest | None = None
        self._place = place

    def take(self, client: str, requests: int = 1) -> bool:
        """Count the request for its address or the account of a verified key; return whether it is admitted at once.

        If not, await `admitted` before it is carried out. A request over the bounds is refused.
        """
        self.is_open = False
        if self._place is not None and client != self.address:
            self._place.show_key(client)
        limiter = self.limiter
        known, route = limiter.windows(client, self.route)
        self._windows = route
        if route.shared is not None:
            return self._take_shared(known, route, route.shared, requests)
        now_ms = limiter.now_ms()
        for window in route.windows:
            if (requests > 1 or not window.has_room(now_ms)) and (
                window.place_ms(now_ms, requests) > now_ms
            ):
                self._queue(known, route, now_ms, requests)
                return False
        for window in route.windows:
            window.take(now_ms, requests)
        for window in route.counted:
            window.take(now_ms, requests)
        return True

    async def admitted(self) -> None:
        """Return when it is the request's turn; it was not admitted at once."""
        assert self._windows is not None
        requests = self._requests
        try:
            if self._pending is not None:
                await self._wait_shared(self._pending)
            else:
                await self._wait_for_places(requests)
        finally:
            for waiting in self._waiting():
                waiting.add(-1, -self._held_bytes)
        self.throttled_ms = self.limiter.now_ms() - self._arrived_ms
        if self.is_abandoned:
            raise ClientGone

    async def _wait_for_places(self, requests: int) -> None:
        assert self._windows is not None
        limiter = self.limiter
        await self._until(self._due_ms)
        for windows in self._windows.steps[1:]:
            now_ms = limiter.now_ms()
            due_ms = place_in_all_ms(windows, now_ms, requests)
            if due_ms - self._arrived_ms > 2 * limiter.limits.bounds.wait_ms:
                raise _refusal(due_ms - now_ms)
            _take(windows, due_ms, requests)
            await self._until(due_ms)

    async def _wait_shared(self, pending: PendingRequest) -> None:
        """Wait for a lease with room."""
        delays = self.limiter.delays
        delays.add(pending.admitted)
        wait_ms = self.limiter.limits.bounds.wait_ms
        try:
            async with asyncio.timeout(wait_ms / 1000):
                await pending.admitted
        except TimeoutError:
            raise _refusal(wait_ms) from None
        finally:
            delays.discard(pending.admitted)

    def _take_shared(
        self, client: ClientWindows, route: RouteWindows, shared: SharedRoute, requests: int
    ) -> bool:
        """Count the request within the leases of this process, or let it wait for a lease."""
        leases = self.limiter.shared
        assert leases is not None
        if leases.try_take(shared, requests):
            return True
        self._check_bounds(client, route, shared.waiting + requests)
        self._requests = requests
        self._pending = leases.queue(shared, requests)
        self._begin_waiting()
        return False

    def header_lines(self) -> tuple[tuple[str, str], ...]:
        """Return the headers of the answer: the window with the fewest requests left."""
        if self._windows is None or not self._windows.windows:
            return ()
        now_ms = self.limiter.now_ms()
        window, *others = self._windows.windows
        least = window.remaining(now_ms)
        for other in others:
            remaining = other.remaining(now_ms)
            if remaining < least:
                least, window = remaining, other
        lines = (
            ("ratelimit-limit", str(window.limit.requests)),
            ("ratelimit-remaining", str(least)),
            ("ratelimit-reset", str(-(-window.reset_ms(now_ms) // 1000))),
        )
        if self.throttled_ms:
            return (*lines, ("x-throttled-ms", str(self.throttled_ms)))
        return lines

    def header_text(self) -> str:
        """Return the same headers as the lines of a head."""
        return "".join([f"{name}: {value}\r\n" for name, value in self.header_lines()])

    def _queue(
        self, client: ClientWindows, route: RouteWindows, now_ms: int, requests: int
    ) -> None:
        """Take the place in the first row, or refuse a request that would wait for too long."""
        self._requests = requests
        self._check_bounds(client, route, requests)
        self._due_ms = place_in_all_ms(route.steps[0], now_ms, requests)
        _take(route.steps[0], self._due_ms, requests)
        _take(route.counted, now_ms, requests)
        self._begin_waiting()

    def _check_bounds(self, client: ClientWindows, route: RouteWindows, requests: int) -> None:
        """Refuse what would wait for too long, or with too much else."""
        bounds, now_ms = self.limiter.limits.bounds, self.limiter.now_ms()
        self._client, self._arrived_ms = client, now_ms
        wait_ms = place_in_all_ms(route.windows, now_ms, requests) - now_ms
        mine, everyone = self._waiting()
        held_bytes = self._held_bytes
        if (
            wait_ms > bounds.wait_ms
            or not mine.has_room(held_bytes, bounds.requests, bounds.held_bytes)
            or not everyone.has_room(held_bytes, bounds.all_requests, bounds.all_held_bytes)
        ):
            raise _refusal(wait_ms)

    def _begin_waiting(self) -> None:
        for waiting in self._waiting():
            waiting.add(1, self._held_bytes)

    @property
    def _held_bytes(self) -> int:
        return OVERHEAD_BYTES + min(self.body_bytes, BUFFERED_BYTES_MAX)

    def _waiting(self) -> tuple[Waiting, Waiting]:
        """Return what waits of the client, and of all clients: cancels apart from all others."""
        if self.route.is_cancel:
            return self._client.cancels, self.limiter.cancels
        return self._client.others, self.limiter.others

    async def _until(self, due_ms: int) -> None:
        loop, delays = asyncio.get_running_loop(), self.limiter.delays
        while (left_ms := due_ms - self.limiter.now_ms()) > 0:
            delay = loop.create_future()
            timer = loop.call_later(left_ms / 1000, _end, delay)
            delays.add(delay)
            try:
                await delay
            finally:
                timer.cancel()
                delays.discard(delay)


def _end(delay: asyncio.Future[None]) -> None:
    if not delay.done():
        delay.set_result(None)


def _refusal(wait_ms: int) -> TooManyRequests:
    return TooManyRequests(max(1, -(-wait_ms // 1000)))


def _take(windows: tuple[RateWindow, ...], at_ms: int, requests: int) -> None:
    for window in windows:
        window.take(at_ms, requests)
