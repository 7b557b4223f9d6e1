"""Sliding windows of request counts, as arithmetic on milliseconds.

A window admits at most a number of requests in any span of its length. It keeps the times of those that it
admitted. Times that are closer than 1/128 of the length share a bucket, which leaves the window as a whole,
with its last request. So a window never admits more than its limit, and is late by at most 1/128.

A request over the limit has a place: the earliest time at which it is admitted after all that came before.
Places that were taken lie in the future until their requests are carried out.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

BUCKETS_PER_WINDOW: Final = 128
REQUESTS_MAX: Final = 10**9
WINDOW_MS_MAX: Final = 24 * 60 * 60 * 1000
OFF: Final = "off"
"""The text of no limit."""

_LIMIT: Final = re.compile(r"(\d{1,10})/(\d{1,5})(s|min|h)\Z", re.ASCII)
_MS_BY_UNIT: Final = {"s": 1_000, "min": 60_000, "h": 3_600_000}


class RateLimit(NamedTuple):
    """The most requests in any span of this length."""

    requests: int
    window_ms: int

    @property
    def text(self) -> str:
        """The limit as settings write it, such as `200/10s`."""
        unit, unit_ms = next(
            (unit, ms)
            for unit, ms in reversed(_MS_BY_UNIT.items())
            if self.window_ms % ms == 0 or unit == "s"
        )
        return f"{self.requests}/{self.window_ms // unit_ms}{unit}"


def parse_limits(text: str) -> tuple[RateLimit, ...]:
    """Return the limits of a text such as `2400/10s, 24000/10min`, none for `off`.

    Raises ValueError for any other text.
    """
    if text.strip() == OFF:
        return ()
    return tuple(_parse_limit(part.strip()) for part in text.split(","))


def _parse_limit(text: str) -> RateLimit:
    match = _LIMIT.match(text)
    if match is None:
        raise ValueError(f"{text!r} must be {OFF}, or a limit such as 200/10s or 24000/10min")
    requests, window_ms = int(match[1]), int(match[2]) * _MS_BY_UNIT[match[3]]
    if not 0 < requests <= REQUESTS_MAX or not 0 < window_ms <= WINDOW_MS_MAX:
        raise ValueError(f"{text!r} must allow 1 to {REQUESTS_MAX} requests in at most 24h")
    return RateLimit(requests, window_ms)


class RateWindow:
    """The requests of one client that one limit counts."""

    __slots__ = (
        "_buckets",
        "_grain_ms",
        "_last_ms",
        "_requests",
        "_window_ms",
        "count",
        "elsewhere",
        "share",
    )

    def __init__(self, limit: RateLimit) -> None:
        self._requests, self._window_ms = limit
        self._grain_ms = limit.window_ms // BUCKETS_PER_WINDOW
        self._buckets: list[list[int]] = []
        """The first time, the last time and the number of requests of each bucket."""
        self._last_ms = 0
        self.count = 0
        """The requests in all buckets."""
        self.share: int | None = None
        """The requests that this process may admit, if several share the limit."""
        self.elsewhere = 0
        """The requests of the limit that other processes hold."""

    @property
    def limit(self) -> RateLimit:
        """The limit that binds now."""
        return RateLimit(self._requests, self._window_ms)

    def set_requests(self, requests: int) -> None:
        """Change the number of requests that the window admits from now on."""
        assert requests > 0
        self._requests = requests

    def has_room(self, now_ms: int) -> bool:
        """Return whether one request is surely admitted at once; if not, `place_ms` knows."""
        return self.count < self._requests and self._last_ms <= now_ms

    def admits(self, now_ms: int, requests: int) -> bool:
        """Return whether the process's share has room for so many requests."""
        share = self._requests if self.share is None else self.share
        used = self.used(now_ms) + min(requests, self._requests)
        return self._last_ms <= now_ms and used <= share

    def used(self, now_ms: int) -> int:
        """Return how many requests have not left the window."""
        gone_ms = now_ms - self._window_ms
        gone = 0
        for bucket in self._buckets:
            if bucket[1] > gone_ms:
                break
            gone += bucket[2]
        return self.count - gone

    def place_ms(self, now_ms: int, requests: int = 1) -> int:
        """Return the time from which so many requests at once are admitted; `now_ms` if at once.

        More requests than the limit take the whole window.
        """
        last_ms = self._last_ms
        earliest_ms = max(now_ms, last_ms)
        excess = self.count + min(requests, self._requests) - self._requests
        if excess <= 0:
            return earliest_ms
        at = 0
        while (excess := excess - self._buckets[at][2]) > 0:
            at += 1
        return max(earliest_ms, self._buckets[at][1] + self._window_ms)

    def take(self, at_ms: int, requests: int = 1) -> None:
        """Count requests at a time, which is never before that of the last ones."""
        if at_ms < self._last_ms:  # noqa: PLR1730 - a call of max or min costs as much as the rest
            at_ms = self._last_ms
        if requests > self._requests:  # noqa: PLR1730
            requests = self._requests
        buckets = self._buckets
        gone_ms = at_ms - self._window_ms
        while buckets and buckets[0][1] <= gone_ms:
            self.count -= buckets.pop(0)[2]
        if buckets and at_ms - buckets[-1][0] < self._grain_ms:
            bucket = buckets[-1]
            bucket[1] = at_ms
            bucket[2] += requests
        else:
            buckets.append([at_ms, at_ms, requests])
        self._last_ms = at_ms
        self.count += requests

    def remaining(self, now_ms: int) -> int:
        """Return how many requests are admitted at once."""
        if self._last_ms > now_ms:
            return 0
        return max(0, self._requests - self.elsewhere - self.used(now_ms))

    def reset_ms(self, now_ms: int) -> int:
        """Return the milliseconds until the window is empty, if nothing more is counted."""
        return max(0, self._last_ms + self._window_ms - now_ms) if self.count else 0


def place_in_all_ms(windows: Iterable[RateWindow], now_ms: int, requests: int) -> int:
    """Return the time from which all windows admit so many requests at once."""
    return max((window.place_ms(now_ms, requests) for window in windows), default=now_ms)


def windows_of(
    limits: Sequence[RateLimit], earlier: Sequence[RateWindow] = ()
) -> tuple[RateWindow, ...]:
    """Return the windows of limits; one that had the same length before keeps its count."""
    earlier_by_length = {window.limit.window_ms: window for window in earlier}
    windows = []
    for limit in limits:
        window = earlier_by_length.get(limit.window_ms)
        if window is None:
            window = RateWindow(limit)
        else:
            window.set_requests(limit.requests)
        windows.append(window)
    return tuple(windows)
