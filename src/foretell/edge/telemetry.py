"""Telemetry of requests: an id, a log line, a counter and a latency.

Wraps an ASGI application and observes the answers that it sends. Requests are counted by the route
that the framework matched, not by their path, which bounds the number of counters. Headers, queries
and bodies are never logged.
"""

import itertools
import time
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from http import HTTPMethod
from typing import Any, Final

import structlog
from prometheus_client import REGISTRY, Metric
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString
from typing_extensions import override

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Any, Any, Any], Awaitable[None]]
"""Any ASGI application; frameworks type its arguments differently."""

REQUEST_ID_CHARS_MAX: Final = 64
OTHER: Final = "other"
"""The route label of requests that match no route, and the method label of those that no route answers."""
METHODS: Final = frozenset(HTTPMethod)
"""The methods with labels of their own; the parser of HTTP knows dozens more."""

BUCKETS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0)

log = structlog.get_logger(__name__)


class _Latencies:
    """A histogram of seconds to the first byte."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return the cumulative counts by upper bound."""
        bounds = [*map(floatToGoString, BUCKETS_S), "+Inf"]
        return list(zip(bounds, itertools.accumulate(self.counts), strict=True))


class RequestMetrics(Collector):
    """Counts and latencies of requests, as plain numbers that the event loop's thread alone changes.

    The library's own counters lock for every change, which costs more than the rest of a request's
    telemetry.
    """

    def __init__(self) -> None:
        self.count_by_labels: dict[tuple[str, str, str, int], int] = {}
        self.latencies_by_api: dict[str, _Latencies] = {}

    @override
    def collect(self) -> Iterator[Metric]:
        """Return the metrics, for the registry."""
        requests = CounterMetricFamily(
            "foretell_requests", "requests answered", labels=["api", "method", "route", "status"]
        )
        for labels, count in self.count_by_labels.items():
            requests.add_metric([*map(str, labels)], count)
        yield requests
        seconds = HistogramMetricFamily(
            "foretell_request_seconds", "time to the first byte", labels=["api"]
        )
        for api, latencies in self.latencies_by_api.items():
            seconds.add_metric([api], latencies.buckets(), latencies.sum_s)
        yield seconds


METRICS: Final = RequestMetrics()
REGISTRY.register(METRICS)


class Telemetry:
    """An API's application with telemetry."""

    def __init__(self, app: AsgiApp, api: str, new_id: Callable[[], str]) -> None:
        self._app = app
        self._api = api
        self._new_id = new_id
        self._latencies = METRICS.latencies_by_api.setdefault(api, _Latencies())
        self._log: Any = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and record its answer."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = self.request_id(_given_id(scope))
        started = time.perf_counter()
        status = 0

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
                message = {**message, "headers": headers}
                self._latencies.observe(time.perf_counter() - started)
            await send(message)

        await self._app(scope, receive, observed)
        route = scope.get("path_template", OTHER)
        self._record(scope["method"], route, status, request_id, started)

    def request_id(self, given: str | None) -> str:
        """Return the id that the client sent if it is safe to log and send back, or a new one."""
        is_safe = given is not None and given.isascii() and given.replace("-", "").isalnum()
        if given is not None and is_safe and len(given) <= REQUEST_ID_CHARS_MAX:
            return given
        return self._new_id()

    def record_answer(
        self, method: str, route: str, status: int, request_id: str, started: float
    ) -> None:
        """Record a request that the fast path has just answered, without the application."""
        self._latencies.observe(time.perf_counter() - started)
        self._record(method, route, status, request_id, started)

    def _record(
        self, method: str, route: str, status: int, request_id: str, started: float
    ) -> None:
        counted = method if method in METHODS else OTHER
        counts, labels = METRICS.count_by_labels, (self._api, counted, route, status)
        counts[labels] = counts.get(labels, 0) + 1
        if self._log is None:
            self._log = log.bind(api=self._api)
        self._log.debug(
            "request",
            method=method,
            route=route,
            status=status,
            request_id=request_id,
            ms=round((time.perf_counter() - started) * 1000, 3),
        )


def _given_id(scope: Scope) -> str | None:
    """Return the request id that the client sent, or None."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            given: str = value.decode("latin-1")
            return given
    return None
