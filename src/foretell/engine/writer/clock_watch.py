"""The time of an engine beside this machine's clock: an engine that is ahead is logged and measured.

The times of commands never go back, also not at a start from the journal. When the clock was ahead and was corrected,
the engine's time stands still until the clock has caught up. Meanwhile GTD orders that expire before it are refused,
delayed orders are not released, and trades that wait for settlement grow no older.
"""

from collections.abc import Callable
from typing import Final

import structlog
from prometheus_client import Gauge

from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)
AHEAD_S_MAX: Final = 5
"""Clocks of two machines that lead a shard in turn differ by less, and so does one that is adjusted all the time."""

AHEAD: Final = Gauge(
    "foretell_engine_clock_ahead_seconds",
    "time of the matching engine's last command minus that of this machine, 0 while it is not later",
)

log = structlog.get_logger(__name__)


class ClockWatch:
    """Compares an engine's time with the clock once a second.

    An engine that is ahead is logged when it exceeds `AHEAD_S_MAX`, and again when it no longer does.
    """

    def __init__(self, ahead_ms: Callable[[], int]) -> None:
        self._ahead_ms = ahead_ms
        self._is_ahead = False

    async def run(self) -> None:
        """Compare every second, until canceled."""
        await run_worker("engine clock", self.run_once, PACE)

    async def run_once(self) -> bool:
        """Compare once, and log what is due."""
        ahead_s = self._ahead_ms() / 1000
        AHEAD.set(ahead_s)
        is_ahead = ahead_s > AHEAD_S_MAX
        if is_ahead and not self._is_ahead:
            log.warning(
                "the engine's time is ahead of this machine's clock",
                seconds=round(ahead_s),
                consequence="until the clock has caught up it stands still, GTD orders that expire before it are"
                " refused, and delayed orders wait",
            )
        elif self._is_ahead and not is_ahead:
            log.warning("this machine's clock has caught up with the engine's time")
        self._is_ahead = is_ahead
        return False
