"""The limiter of an API: the windows of each client, and the routes that count in them.

A client is the account of a verified API key, else an address: keys cost nothing. The client that was idle for longest makes way when
there are too many. If several processes share the limits, each window has a quota
(`shared_limits`).
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Final, NamedTuple

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.values.rate_windows import RateWindow, windows_of
from foretell.edge.rate_limits import BATCHES, CANCELS, SIGNED, LimitRow, RateLimits, rows_of
from foretell.edge.shared_limits import Quota, SharedLimits, SharedRoute

CLIENTS_MAX: Final = 20_000
"""The clients whose requests are counted; the one that was idle for longest makes way."""

_SLASHES: Final = re.compile("/{2,}")


def routed_path(path: str) -> str:
    """Return a path as the framework routes it: several slashes are one, and those at the end are none."""
    if "//" in path:
        path = _SLASHES.sub("/", path)
    return path.rstrip("/") or "/"


class LimitedRoute(NamedTuple):
    """A route, as a limiter counts it: the rows that wait, and those that only count."""

    key: str
    waits_in: tuple[LimitRow, ...]
    counts_in: tuple[LimitRow, ...]
    is_cancel: bool
    is_batch: bool
    is_signed: bool


class RouteWindows(NamedTuple):
    """The windows of one client that a route counts in."""

    steps: tuple[tuple[RateWindow, ...], ...]
    """The windows of each row that a request waits for, in order."""
    windows: tuple[RateWindow, ...]
    counted: tuple[RateWindow, ...]
    shared: SharedRoute | None = None


class Waiting:
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


class ClientWindows:
    """The windows of a client, and what waits of it."""

    __slots__ = (
        "cancels",
        "earlier_by_row",
        "others",
        "quota_by_name",
        "route_by_key",
        "version",
        "windows_by_row",
    )

    def __init__(self, version: int) -> None:
        self.version = version
        self.earlier_by_row: dict[str, tuple[RateWindow, ...]] = {}
        """The windows of earlier limits, whose counts still hold."""
        self.windows_by_row: dict[str, tuple[RateWindow, ...]] = {}
        self.route_by_key: dict[str, RouteWindows] = {}
        self.quota_by_name: dict[str, Quota] = {}
        self.cancels = Waiting()
        self.others = Waiting()

    def quota(self, name: str, window: RateWindow) -> Quota:
        """Return the client's quota of a window, which all its routes share."""
        quota = self.quota_by_name.get(name)
        if quota is None or quota.window is not window:
            quota = self.quota_by_name[name] = Quota(name, window)
        return quota


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
        shared: SharedLimits | None = None,
        *,
        clients_max: int = CLIENTS_MAX,
    ) -> None:
        self.api = api
        self.shared = shared
        self.now_ms = now_ms
        self.limits = limits
        self.version = 0
        self.cancels = Waiting()
        self.others = Waiting()
        self.delays: set[asyncio.Future[None]] = set()
        """The waits of requests whose turn has not come."""
        self._clients_max = clients_max
        self._client_by_name: OrderedDict[str, ClientWindows] = OrderedDict()
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
        """Return how the requests to a path count."""
        if method == "HEAD":
            method = "GET"
        return self._route_by_key.get(f"{method} {routed_path(path)}", self._other)

    def bounds(self, route: LimitedRoute) -> bool:
        """Return whether any limit applies to a route."""
        return any(self.limits.windows_by_row.get(row.key) for row in route.waits_in)

    def is_signed(self, method: str, template: str) -> bool:
        """Return whether the requests to a route count for the account whose key signed them."""
        return f"{self.api} {'GET' if method == 'HEAD' else method} {template}" in SIGNED

    def windows(self, name: str, route: LimitedRoute) -> tuple[ClientWindows, RouteWindows]:
        """Return a client, and its windows for a route; both are made when they are needed."""
        clients = self._client_by_name
        client = clients.get(name)
        if client is None:
            client = clients[name] = ClientWindows(self.version)
            if len(clients) > self._clients_max:
                clients.popitem(last=False)
        else:
            clients.move_to_end(name)
            if client.version != self.version:
                self._renew(client)
        found = client.route_by_key.get(route.key)
        if found is None:
            found = client.route_by_key[route.key] = self._make_route(client, name, route)
        return client, found

    def use(self, name: str) -> list[WindowUse]:
        """Return how much of each window of the API a client has used."""
        now_ms = self.now_ms()
        client = self._client_by_name.get(name) or ClientWindows(self.version)
        if client.version != self.version:
            self._renew(client)
        return [
            WindowUse(row, *window.limit, window.remaining(now_ms), window.reset_ms(now_ms))
            for row in self._rows
            for window in self._windows_of(client, row)
        ]

    def _renew(self, client: ClientWindows) -> None:
        """Let a client's windows be made again, because the limits have changed."""
        client.earlier_by_row |= client.windows_by_row
        client.windows_by_row.clear()
        client.route_by_key.clear()
        client.version = self.version

    def _make_route(self, client: ClientWindows, name: str, route: LimitedRoute) -> RouteWindows:
        steps = tuple(self._windows_of(client, row) for row in route.waits_in)
        counted = tuple(self._windows_of(client, row) for row in route.counts_in)
        shared = None
        if self.shared is not None:
            waits_in, counts_in = (
                [
                    client.quota(f"{row.key} {window.limit.window_ms} {name}", window)
                    for row in rows
                    for window in self._windows_of(client, row)
                ]
                for rows in (route.waits_in, route.counts_in)
            )
            shared = SharedRoute(waits_in, counts_in)
        return RouteWindows(tuple(filter(None, steps)), sum(steps, ()), sum(counted, ()), shared)

    def _windows_of(self, client: ClientWindows, row: LimitRow) -> tuple[RateWindow, ...]:
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
