"""Time buckets of a price history.

The history stores the top of the book once a minute, as of the minute's last change. A chart shows
the last one known at the end of each bucket.
"""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.errors.http import MalformedQuery
from foretell.domain.portfolio.prices import BookTop, last_price, midpoint

MINUTE_S: Final = 60
HOUR_S: Final = 60 * MINUTE_S
DAY_S: Final = 24 * HOUR_S
POINTS_MAX: Final = 1000
POINTS_PER_BATCH_MAX: Final = 4000
"""Points of all histories of a batch: of the most tokens that it may have, a chart's 200 each."""
FIDELITY_MINUTES_MAX: Final = 30 * 24 * 60
SECONDS_MAX: Final = 10**11

STEPS_S: Final = (MINUTE_S, 5 * MINUTE_S, 30 * MINUTE_S, 3 * HOUR_S, 12 * HOUR_S)
"""The default steps between points; the finest without too many points is used."""

INTERVALS_S: Final[Mapping[str, int | None]] = MappingProxyType(
    {
        "5m": 5 * MINUTE_S,
        "15m": 15 * MINUTE_S,
        "1h": HOUR_S,
        "6h": 6 * HOUR_S,
        "1d": DAY_S,
        "1w": 7 * DAY_S,
        "1m": 30 * DAY_S,
        "max": None,
        "all": None,
    }
)
"""The length of each interval; None reaches to the beginning. `1m` is a month."""


class Buckets(NamedTuple):
    """The ends of a history's buckets, in seconds, each a step after the one before it; the last one may be nearer.

    There are none if the first would end after the last.
    """

    first_end_s: int
    last_end_s: int
    step_s: int


_NO_BUCKETS: Final = Buckets(MINUTE_S, 0, MINUTE_S)


def parse_interval(text: str) -> int | None:
    """Return the length of an interval, None for all time, or refuse it."""
    try:
        return INTERVALS_S[text]
    except KeyError:
        raise MalformedQuery("interval", f"one of {', '.join(INTERVALS_S)}") from None


def present_end_s(now_s: int) -> int:
    """Return where a span ends that reaches to now: with the minute that runs.

    So its last point has the newest price, and the history stays the same through the minute if that does.
    """
    return _ceiling(now_s, MINUTE_S)


def points_of_each(histories: int) -> int:
    """Return how many points each history of a batch may have."""
    return min(POINTS_MAX, POINTS_PER_BATCH_MAX // histories)


def buckets(
    start_s: int, end_s: int, fidelity_minutes: int | None, points_max: int = POINTS_MAX
) -> Buckets:
    """Return the buckets between two times, none if the second one is earlier.

    Their ends are whole multiples of the step, but the last one is the end of the minute of `end_s`: what was
    known later is no point of the span. A fidelity with too many points is coarsened to the limit. The length of the span
    alone decides that, so that a chart that reaches to now keeps its step from minute to minute.
    """
    if end_s < start_s:
        return _NO_BUCKETS
    last_end_s = _ceiling(end_s, MINUTE_S)
    least_s = _least_step_s(last_end_s - start_s, points_max)
    if fidelity_minutes is None:
        step_s = next((step for step in STEPS_S if step >= least_s), STEPS_S[-1])
    else:
        step_s = fidelity_minutes * MINUTE_S
    step_s = max(step_s, least_s)
    return Buckets(min(_ceiling(start_s, step_s), last_end_s), last_end_s, step_s)


def history_price(top: BookTop) -> Fraction | None:
    """Return the price of a point: the midpoint, or without one the last price."""
    middle = midpoint(top)
    return last_price(top) if middle is None else middle


def _least_step_s(span_s: int, points_max: int) -> int:
    """Return the finest step, in whole minutes, that does not exceed the limit of points.

    A span of whole steps has a point more than steps: one at each end.
    """
    assert points_max > 1
    minutes = -(-span_s // ((points_max - 1) * MINUTE_S))
    return max(minutes, 1) * MINUTE_S


def _ceiling(at_s: int, step_s: int) -> int:
    return -(-at_s // step_s) * step_s
