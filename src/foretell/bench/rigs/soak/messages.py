"""Messages between the process of the load and that of the benchmark: a line of JSON each."""

from typing import Final

import msgspec

FAULTS_SHOWN_MAX: Final = 20
"""Descriptions of faults that are kept; all are counted."""


class SoakPlan(msgspec.Struct, frozen=True):
    """Minutes of load, what it does in a second, and the orders before. Every resting order is canceled later."""

    minutes: float
    orders_per_s: float = 10.0
    trades_per_s: float = 0.5
    reads_per_s: float = 10.0
    filling_orders: int = 0

    @property
    def seconds(self) -> float:
        """The duration in seconds."""
        return self.minutes * 60


class SoakWindow(msgspec.Struct, frozen=True, tag=True):
    """What clients saw since the window before; times in milliseconds, None if nothing was measured."""

    at_s: float
    orders_p50_ms: float | None
    orders_p99_ms: float | None
    reads_p50_ms: float | None
    reads_p99_ms: float | None
    tables_ms: float
    """Until an order that was just accepted is in the tables."""
    index_blocks: float
    """Blocks that the engine is behind the chain."""
    unsettled_s: float
    """The age of the oldest trade that is not settled."""
    backlog: int
    """Trades that no stream has reported as settled."""
    orders: int
    """Orders accepted since the load began."""
    faults: int
    """Faults since the load began."""
    examples: tuple[str, ...] = ()
    """Descriptions of those since the window before."""
    sqlite_bytes: float | None = None
    """The memory of SQLite in the server, None if that does not know it."""


class SoakOutcome(msgspec.Struct, frozen=True, tag=True):
    """The end of a load: what was accepted, and what became of it."""

    orders: int
    cancels: int
    trades: int
    reads: int
    stream_messages: int
    settled_p50_s: float | None
    settled_max_s: float | None
    backlog_most: int
    """The most trades at a time that no stream had reported as settled."""
    backlog_end: int
    """Those when the load ended."""
    drained_s: float | None
    """The time from then until there were none, or None if there were some to the end."""
    lost: int
    """Accepted orders that are not found at the end, or not as they must be."""
    unsettled: int
    """Trades that are not confirmed when the time to settle is over."""
    faults: int
    """Statuses of 500 and above, refusals, streams that ended, trades that failed, and rows that differ from the chain."""
    examples: tuple[str, ...] = ()
    rows_compared: int = 0
    """Rows of all tables that were compared with the chain at the end."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing went wrong."""
        return not (self.lost or self.unsettled or self.faults)


Line = SoakWindow | SoakOutcome
