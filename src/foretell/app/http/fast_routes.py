"""The fast routes that a connection serves, by the request lines that name them, and requests for them."""

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.app.http.request_head import Head
from foretell.edge.fast_route import FastRoute, Route
from foretell.edge.rate_limiter import LimitedRoute
from foretell.edge.telemetry import Telemetry
from foretell.edge.throttle import Turn
from foretell.edge.throttled_application import ApiLimits


class ServedFastRoute(NamedTuple):
    """A fast route, its method and the path that it sees, the telemetry and the limits of its API."""

    route: FastRoute
    method: str
    path: str
    telemetry: Telemetry
    limits: ApiLimits | None
    limited: LimitedRoute | None


RequestLine = bytes
"""The method and the path of a request, as its first line has them, with a space between."""
FastRoutes = Mapping[RequestLine, ServedFastRoute]

NO_FAST_ROUTES: Final[FastRoutes] = MappingProxyType({})


def served_under(
    prefix: str,
    fast_routes: Mapping[Route, FastRoute],
    telemetry: Telemetry,
    limits: ApiLimits | None = None,
) -> dict[RequestLine, ServedFastRoute]:
    """Return the fast routes of an API by their request lines under its prefix."""
    served = {}
    for (method, path), route in fast_routes.items():
        limited = None if limits is None else limits.limiter.route(method, path)
        served[f"{method} {prefix}{path}".encode()] = ServedFastRoute(
            route, method, path, telemetry, limits, limited
        )
    return served


class Arrival(NamedTuple):
    """A request for a fast route with a usual head; its body begins at `body_at` of the data."""

    line: RequestLine
    served: ServedFastRoute
    query: bytes
    head: Head
    body_at: int

    @property
    def url(self) -> bytes:
        """The path that was requested, with the prefix of its API."""
        return self.line.partition(b" ")[2]


class Answering:
    """A request of a fast route that is not answered yet."""

    __slots__ = ("request_id", "served", "started", "turn")

    def __init__(self, served: ServedFastRoute, request_id: str | None, turn: Turn | None) -> None:
        self.served = served
        self.request_id = request_id
        self.turn = turn
        self.started = time.perf_counter()
