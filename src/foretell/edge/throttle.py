"""The limiter of an API: counts the requests of each client, and lets those over a limit wait their turn.

A client is a verified API key, else an address. A request takes its place in the narrowest row at once, and in the
wider rows when that place has come, so that requests of one row never wait for those of another. What waits
is bounded for each client and for all; beyond, a request is refused with the time at which it would be admitted.
Cancels wait apart from all other requests, with bounds of their own.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from foretell.domain.errors.http import ClientGone, TooManyRequests
from foretell.domain.values.rate_windows import RateWindow, place_in_all_ms, windows_of
from foretell.edge.rate_limits import BATCHES, CANCELS, SIGNED, LimitRow, RateLimits, rows_of

CLIENTS_MAX: Final = 20_000
"""The clients whose requests are counted; the one that was idle for longest makes way."""
OVERHEAD_BYTES: Final = 8 * 1024
"""What a request that waits needs beside its body."""
BUFFERED_BYTES_MAX: Final = 64 * 1024
"""The most of a body that is read while its request waits."""


class LimitedRoute(NamedTuple):
    """A route, as a limiter counts it: the rows that wait, and those that only count."""

    key: str
    waits_in: tuple[LimitRow, ...]
    counts_in: tuple[LimitRow, ...]
    is_cancel: bool
    is_batch: bool
    is_signed: bool


class _Route(NamedTuple):
    """The windows of one client that a route counts in."""

    steps: tuple[tuple[RateWindow, ...], ...]
    """The windows of each row that a request waits for, in order."""
    windows: tuple[RateWindow, ...]
    counted: tuple[RateWindow, ...]


class _Waiting:
    """The number of requests that wait, and the bytes that they hold."""

    __slots__ = ("held_bytes", "requests")

    def __init__(self) -> None:
        self.requests = 0
        self.held_bytes = 0

    def has_room(self, held_bytes: int, requests_max: int, held_bytes_max: int) -> bool:
        """Return whether one more request may wait."""
        return self.requests < requests_max and self.held_bytes + held_bytes <= held_bytes_max

    def add(self, requests: int, held_bytes: int) -> None:
        """Count requests that begin or end to wait."""
        self.requests += requests
        self.held_bytes += held_bytes


class _Client:
    """The windows of a client, and what waits of it."""

    __slots__ = (
        "cancels",
        "earlier_by_row",
        "others",
        "route_by_key",
        "version",
        "windows_by_row",
    )

    def __init__(self, version: int) -> None:
        self.version = version
        self.earlier_by_row: dict[str, tuple[RateWindow, ...]] = {}
        """The windows of earlier limits, whose counts still hold."""
        self.windows_by_row: dict[str, tuple[RateWindow, ...]] = {}
        self.route_by_key: dict[str, _Route] = {}
        self.cancels = _Waiting()
        self.others = _Waiting()


class WindowUse(NamedTuple):
    """How much of a window a client has used."""

    row: LimitRow
    requests: int
    window_ms: int
    remaining: int
    reset_ms: int


class RateLimiter:
    """Counts the requests to an API."""

    def __init__(
        self,
        api: str,
        limits: RateLimits,
        now_ms: Callable[[], int],
        *,
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        self.api = api
        self.now_ms = now_ms
        self.limits = limits
        self.version = 0
        self.cancels = _Waiting()
        self.others = _Waiting()
        self.delays: set[asyncio.Future[None]] = set()
        """The waits of requests whose turn has not come."""
        self._clients_max = clients_max
        self._client_by_name: OrderedDict[str, _Client] = OrderedDict()
        self._rows = rows_of(api)
        self._other = self._limited("")
        self._route_by_key: dict[str, LimitedRoute] = {
            key: self._limited(key)
            for row in self._rows
            if row.routes is not None
            for key in row.routes
        }

    def __len__(self) -> int:
        return len(self._client_by_name)

    def change(self, limits: RateLimits) -> None:
        """Apply other limits to the requests that come from now on; what was counted stays so."""
        self.limits = limits
        self.version += 1

    def close(self) -> None:
        """Refuse what waits: the process stops."""
        for delay in self.delays:
            if not delay.done():
                delay.set_exception(TooManyRequests(1))

    def route(self, method: str, path: str) -> LimitedRoute:
        """Return how the requests to a path count; a path may end in a slash."""
        if method == "HEAD":
            method = "GET"
        return self._route_by_key.get(f"{method} {path.rstrip('/') or '/'}", self._other)

    def is_signed(self, method: str, template: str) -> bool:
        """Return whether the requests to a route count for the key that signed them."""
        return f"{self.api} {'GET' if method == 'HEAD' else method} {template}" in SIGNED

    def windows(self, name: str, route: LimitedRoute) -> tuple[_Client, _Route]:
        """Return a client, and its windows for a route; both are made when they are needed."""
        clients = self._client_by_name
        client = clients.get(name)
        if client is None:
            client = clients[name] = _Client(self.version)
            if len(clients) > self._clients_max:
                clients.popitem(last=False)
        else:
            clients.move_to_end(name)
        self._renew(client)
        found = client.route_by_key.get(route.key)
        if found is None:
            steps = tuple(self._windows_of(client, row) for row in route.waits_in)
            counted = tuple(self._windows_of(client, row) for row in route.counts_in)
            found = client.route_by_key[route.key] = _Route(
                tuple(filter(None, steps)), sum(steps, ()), sum(counted, ())
            )
        return client, found

    def use(self, name: str) -> list[WindowUse]:
        """Return how much of each window of the API a client has used."""
        now_ms = self.now_ms()
        client = self._client_by_name.get(name) or _Client(self.version)
        self._renew(client)
        return [
            WindowUse(row, *window.limit, window.remaining(now_ms), window.reset_ms(now_ms))
            for row in self._rows
            for window in self._windows_of(client, row)
        ]

    def _renew(self, client: _Client) -> None:
        """Let a client's windows be made again if the limits have changed."""
        if client.version != self.version:
            client.earlier_by_row |= client.windows_by_row
            client.windows_by_row.clear()
            client.route_by_key.clear()
            client.version = self.version

    def _windows_of(self, client: _Client, row: LimitRow) -> tuple[RateWindow, ...]:
        """Return a client's windows of a row; they are made when the first request counts there."""
        windows = client.windows_by_row.get(row.key)
        if windows is None:
            limits = self.limits.windows_by_row.get(row.key, ())
            earlier = client.earlier_by_row.pop(row.key, ())
            windows = client.windows_by_row[row.key] = windows_of(limits, earlier)
        return windows

    def _limited(self, key: str) -> LimitedRoute:
        full = f"{self.api} {key}"
        rows = tuple(row for row in self._rows if row.routes is None or key in row.routes)
        is_cancel = full in CANCELS
        wide = tuple(row for row in rows if row.routes is None) if is_cancel else ()
        return LimitedRoute(
            key=key,
            waits_in=tuple(row for row in rows if row not in wide),
            counts_in=wide,
            is_cancel=is_cancel,
            is_batch=full in BATCHES,
            is_signed=full in SIGNED,
        )


class Turn:
    """One request at a limiter: it takes its places once, and may have to wait for them."""

    __slots__ = (
        "_arrived_ms",
        "_client",
        "_due_ms",
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
        self, limiter: RateLimiter, route: LimitedRoute, address: str, body_bytes: int
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
        self._windows: _Route | None = None

    def take(self, client: str, requests: int = 1) -> bool:
        """Count the request for a client; return whether it is admitted at once.

        If not, await `admitted` before it is carried out. A request over the bounds is refused.
        """
        self.is_open = False
        limiter = self.limiter
        known, route = limiter.windows(client, self.route)
        self._windows = route
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
        limiter, requests = self.limiter, self._requests
        try:
            await self._until(self._due_ms)
            for windows in self._windows.steps[1:]:
                now_ms = limiter.now_ms()
                due_ms = place_in_all_ms(windows, now_ms, requests)
                if due_ms - self._arrived_ms > 2 * limiter.limits.bounds.wait_ms:
                    raise _refusal(due_ms - now_ms)
                _take(windows, due_ms, requests)
                await self._until(due_ms)
        finally:
            for waiting in self._waiting():
                waiting.add(-1, -self._held_bytes)
        self.throttled_ms = limiter.now_ms() - self._arrived_ms
        if self.is_abandoned:
            raise ClientGone

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

    def _queue(self, client: _Client, route: _Route, now_ms: int, requests: int) -> None:
        """Take the place in the first row, or refuse a request that would wait for too long."""
        bounds = self.limiter.limits.bounds
        self._client, self._requests, self._arrived_ms = client, requests, now_ms
        wait_ms = place_in_all_ms(route.windows, now_ms, requests) - now_ms
        mine, everyone = self._waiting()
        held_bytes = self._held_bytes
        if (
            wait_ms > bounds.wait_ms
            or not mine.has_room(held_bytes, bounds.requests, bounds.held_bytes)
            or not everyone.has_room(held_bytes, bounds.all_requests, bounds.all_held_bytes)
        ):
            raise _refusal(wait_ms)
        self._due_ms = place_in_all_ms(route.steps[0], now_ms, requests)
        _take(route.steps[0], self._due_ms, requests)
        _take(route.counted, now_ms, requests)
        for waiting in (mine, everyone):
            waiting.add(1, held_bytes)

    @property
    def _held_bytes(self) -> int:
        return OVERHEAD_BYTES + min(self.body_bytes, BUFFERED_BYTES_MAX)

    def _waiting(self) -> tuple[_Waiting, _Waiting]:
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
