"""The times of new heads beside this machine's clock: a clock that is wrong is logged and measured.

Nothing depends on the comparison. A clock that is wrong makes clients fail by `clock_skew`, and orders expire early or
late. A head that a node gives late, because it is behind itself, looks the same.
"""

from collections.abc import Callable
from typing import Final

import structlog
from prometheus_client import Gauge

DIFFERENCE_S_MAX: Final = 60

DIFFERENCE: Final = Gauge(
    "foretell_chain_clock_difference_seconds",
    "time of this machine minus that of the newest block when the indexer first saw it",
)

log = structlog.get_logger(__name__)


class HeadClock:
    """Compares the time of each new head with the clock.

    The first head of a process may be old, and so may one after a reorg. A difference is logged when it exceeds
    `DIFFERENCE_S_MAX`, and again when it no longer does.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._highest: int | None = None
        self._differs = False

    def see(self, head: int, timestamp_s: int) -> None:
        """Take the number and the time of the newest block."""
        before = self._highest
        if before is not None and head <= before:
            return
        self._highest = head
        if before is None:
            return
        difference_s = self._now_ms() // 1000 - timestamp_s
        DIFFERENCE.set(difference_s)
        differs = abs(difference_s) > DIFFERENCE_S_MAX
        if differs and not self._differs:
            log.warning("clock differs from the chain's", seconds=difference_s, block=head)
        elif self._differs and not differs:
            log.warning("clock agrees with the chain's again", seconds=difference_s, block=head)
        self._differs = differs
