"""`foretell bench limit`: the cost of one check of the rate limits (limit).

A check counts an order in its two windows. The ceiling is a counter that slides over nothing: one dictionary and one
reading of the clock for each request. All times are those of the thread's processor.
"""

import itertools
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from rich.console import Console
from rich.table import Table

from foretell.app.clock_and_ids import monotonic_ms
from foretell.bench.rigs.machine import disturbance, usage_with
from foretell.domain.errors.http import TooManyRequests
from foretell.domain.values.rate_windows import RateLimit
from foretell.edge.rate_limits import RateLimits, WaitingBounds
from foretell.edge.throttle import RateLimiter, Turn

CLIENTS_MANY: Final = 1_000
ROW: Final = "trading POST /order"
WITH_ROOM: Final = (RateLimit(10**9, 10_000), RateLimit(10**9, 600_000))
USED_UP: Final = (RateLimit(1, 10_000), RateLimit(1, 600_000))
FIXED: Final = "a fixed window of one dictionary"
ONE: Final = "two windows, one client"
MANY: Final = f"two windows, {CLIENTS_MANY} clients in turn"
REFUSED: Final = "two windows, used up: refused"
HEADERS: Final = "two windows, and the headers of the answer"

Check = Callable[[], object]


class CheckCosts(NamedTuple):
    """Microseconds of each kind of check in one round, and the cores of other programs."""

    us_by_kind: Mapping[str, float]
    others_cores: float

    @property
    def ratio(self) -> float:
        """The cost of a check with two windows for each one of the ceiling."""
        return self.us_by_kind[ONE] / self.us_by_kind[FIXED]


def run_bench_limit(rounds: int, checks: int, console: Console) -> list[CheckCosts]:
    """Measure round after round, and print the medians."""
    measured = [_measure(checks) for _ in range(rounds)]
    table = Table("check", "us")
    us_by_kind = {
        kind: statistics.median(one.us_by_kind[kind] for one in measured)
        for kind in measured[0].us_by_kind
    }
    for kind, us in us_by_kind.items():
        table.add_row(kind, f"{us:.2f}")
    console.print(table)
    ratio = statistics.median(one.ratio for one in measured)
    console.print(
        f"limit: {us_by_kind[ONE]:.2f} us for each check of two windows, {ratio:.1f} times a fixed"
        f" window (median of {rounds} rounds of {checks} checks)"
    )
    if words := disturbance(measured):
        console.print(words)
    return measured


def _measure(checks: int) -> CheckCosts:
    before = usage_with()
    us_by_kind = {kind: _us_of(check, checks) for kind, check in _kinds().items()}
    return CheckCosts(us_by_kind, before.others_cores(usage_with()))


def _us_of(check: Check, checks: int) -> float:
    began_s = time.thread_time()
    for _ in itertools.repeat(None, checks):
        check()
    return (time.thread_time() - began_s) / checks * 1e6


def _kinds() -> Mapping[str, Check]:
    clients = itertools.cycle([f"client {number}" for number in range(CLIENTS_MANY)])
    admit = _admitting(WITH_ROOM)
    return {
        FIXED: _fixed_window(),
        ONE: lambda: admit("client"),
        MANY: lambda: admit(next(clients)),
        REFUSED: _refusing(_admitting(USED_UP)),
        HEADERS: lambda: admit("client").header_text(),
    }


def _admitting(windows: tuple[RateLimit, ...]) -> Callable[[str], Turn]:
    limits = RateLimits({ROW: windows}, WaitingBounds(wait_ms=0))
    limiter = RateLimiter("trading", limits, monotonic_ms)
    route = limiter.route("POST", "/order")

    def admit(client: str) -> Turn:
        turn = Turn(limiter, route, client, 0)
        turn.take(client)
        return turn

    return admit


def _refusing(admit: Callable[[str], Turn]) -> Check:
    admit("client")

    def refuse() -> None:
        try:
            admit("client")
        except TooManyRequests:
            pass
        else:
            raise AssertionError("the window is used up")

    return refuse


def _fixed_window() -> Check:
    counts: dict[int, int] = {}

    def count() -> None:
        window = monotonic_ms() // WITH_ROOM[0].window_ms
        counts[window] = counts.get(window, 0) + 1

    return count
