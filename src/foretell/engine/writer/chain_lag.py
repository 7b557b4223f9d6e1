"""The lag of an engine behind its chain, past which it takes no new orders.

A chain that mines on demand has no blocks while nothing happens, so the age of the newest block says nothing. The lag
is the time since the engine had observed all blocks that the node named. While the node answers, and the index and
the feed follow, there is none, however old the head is. A node that does not answer, one of another chain, and an
index that stands still let it grow.

A node that answers with the same head for ever looks like a chain on demand. On a chain with regular blocks, the head
may therefore stand still for a time only.
"""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import structlog
from prometheus_client import Gauge

from foretell.domain.errors.exchange import EngineCancelOnly
from foretell.domain.errors.families import Upstream
from foretell.runtime.worker import PollIntervals, run_worker

PACE: Final = PollIntervals(busy_s=1.0, idle_s=1.0)
LOOK_S_MAX: Final = 5.0
"""A node that is silent for so long names no head."""

LAG: Final = Gauge(
    "foretell_chain_lag_seconds",
    "time since the matching engine had observed all blocks that the node named",
)

log = structlog.get_logger(__name__)


class LagLimits(NamedTuple):
    """Seconds that an engine may be behind its chain, and that a head may stand still; 0 is for no limit."""

    lag_s_max: int
    still_s_max: int = 0


class _Head(NamedTuple):
    """The number of a newest block, and when the node named it."""

    block_number: int
    at_s: float


class ChainLag:
    """Compares the heads that a node names with the blocks that an engine has observed.

    Time counts from the start of the process.
    """

    def __init__(
        self,
        fetch_head: Callable[[], Awaitable[int]],
        limits: LagLimits,
        monotonic_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetch_head = fetch_head
        self._limits = limits
        self._monotonic_s = monotonic_s
        self._observed = -1
        self._wanted: _Head | None = None
        """A head that the engine has not observed yet, from which its next lag counts."""
        self._current_at_s = self._moved_at_s = monotonic_s()
        self._head = -1
        self._is_logged = False

    @property
    def lag_s(self) -> int:
        """The seconds since the engine had observed all blocks that the node named."""
        return int(self._monotonic_s() - self._current_at_s)

    @property
    def refusal(self) -> EngineCancelOnly | None:
        """The refusal of new orders while the engine is too far behind."""
        lag_s, still_s = self.lag_s, int(self._monotonic_s() - self._moved_at_s)
        if 0 < self._limits.lag_s_max < lag_s:
            return EngineCancelOnly(
                f"the chain was last followed to its newest block {lag_s} s ago, and"
                f" {self._limits.lag_s_max} s are allowed",
            )
        if 0 < self._limits.still_s_max < still_s:
            return EngineCancelOnly(
                f"the chain has had no new block for {still_s} s, and {self._limits.still_s_max} s"
                " are allowed",
            )
        return None

    def observe(self, block_number: int) -> None:
        """Take the block up to which the engine has observed the chain."""
        self._observed = block_number
        self._catch_up()

    async def run(self) -> None:
        """Ask the node for its head every second, until canceled."""
        await run_worker("chain lag", self.run_once, PACE)

    async def run_once(self) -> bool:
        """Ask the node for its head, and log when orders begin or cease to be refused.

        The indexer logs that a node does not answer.
        """
        with contextlib.suppress(Upstream, TimeoutError):
            async with asyncio.timeout(LOOK_S_MAX):
                self._see(await self._fetch_head())
        LAG.set(self.lag_s)
        self._log_change()
        return False

    def _see(self, block_number: int) -> None:
        head = _Head(block_number, self._monotonic_s())
        if block_number != self._head:
            self._head, self._moved_at_s = block_number, head.at_s
        # A later head would put off the end of the lag on a chain whose blocks come faster than looks.
        if self._wanted is None or block_number <= self._wanted.block_number:
            self._wanted = head
        self._catch_up()

    def _catch_up(self) -> None:
        if self._wanted is not None and self._observed >= self._wanted.block_number:
            self._current_at_s, self._wanted = self._wanted.at_s, None

    def _log_change(self) -> None:
        refusal = self.refusal
        if (refusal is not None) == self._is_logged:
            return
        self._is_logged = refusal is not None
        if refusal is None:
            log.warning("orders are placed again", block=self._observed)
        else:
            log.error("orders are refused", cause=refusal.message, block=self._observed)
