"""The figures of an attack, of a trader beside it and of the memory of the server, and their bars."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from tests.faults.attacks.attacker import SLOW_READERS, UNREAD, UNREAD_OF_ONE, UNREAD_PAGES
from tests.faults.attacks.target import Latencies

from foretell.app.http.write_buffers import BUFFERED_BYTES_BY_CLIENT_MAX
from foretell.app.read_process.client import DearReadLimits
from foretell.bench.rigs.machine import DISTURBED_CORES, others_words

IDLE: Final = "idle"
SLOW_HEADS: Final = "slow-heads"
HELD: Final = frozenset({IDLE, SLOW_HEADS})
"""Attacks whose connections the server keeps until a deadline."""
READ_BY_NOBODY: Final = frozenset({SLOW_READERS, UNREAD, UNREAD_OF_ONE, UNREAD_PAGES})
CLOSED: Final = frozenset({SLOW_READERS, UNREAD, UNREAD_PAGES})
"""Attacks that at scale 1 have more kept for them than the server keeps of their clients, so that it closes some."""
MEMORY_RATIO_MAX: Final = 1.2
"""Of the memory after an attack to that before the first one."""
GROWTH_BYTES_MAX: Final = {
    UNREAD: 2 * DearReadLimits().unsent_bytes,
    UNREAD_OF_ONE: 2 * DearReadLimits().unsent_bytes_per_client,
    UNREAD_PAGES: 2 * BUFFERED_BYTES_BY_CLIENT_MAX,
}
"""By which the memory may grow during these attacks, beyond its bar after them: kept answers, and their handling."""
P99_RATIO_MAX: Final = 2.0
P99_FLOOR_MS: Final = 5.0
"""Added to the bar: below it, the scheduler of the system alone moves the figure."""


class Outcome(NamedTuple):
    """One attack; resident memory is in bytes."""

    way: str
    connections: int
    alone: Latencies
    beside: Latencies
    held: int
    """Connections of strangers that the server had accepted and kept at a time, at the most."""
    unsent_bytes: int
    refused_reads: int
    """Lists of trades that were refused, of strangers."""
    opened: int
    closed: int
    before_bytes: int
    """Before the first attack."""
    most_bytes: int
    """While the attack lasted."""
    after_bytes: int
    children_before_bytes: int
    children_after_bytes: int
    given_back_s: float
    others_cores: float
    """Of other programs, at the most, while the trader was alone or beside the attack."""

    @property
    def is_disturbed(self) -> bool:
        """Whether the latencies say little."""
        return self.others_cores > DISTURBED_CORES

    @property
    def p99_max_ms(self) -> float:
        """The bar of the latency beside the attack."""
        return P99_RATIO_MAX * self.alone.p99_ms + P99_FLOOR_MS

    @property
    def is_slow(self) -> bool:
        """Whether the latency misses its bar."""
        return not self.is_disturbed and self.beside.p99_ms > self.p99_max_ms

    def misses(self, *, is_whole: bool) -> list[str]:
        """Return the figures besides the latency that miss their bar, in words; those of a whole attack if it was one."""
        most_bytes_max = MEMORY_RATIO_MAX * self.before_bytes + GROWTH_BYTES_MAX.get(self.way, 0)
        bars = {
            f"memory {self.after_bytes} <= {MEMORY_RATIO_MAX} * {self.before_bytes}": (
                self.after_bytes <= MEMORY_RATIO_MAX * self.before_bytes
            ),
            f"memory of the other processes {self.children_after_bytes}"
            f" <= {MEMORY_RATIO_MAX} * {self.children_before_bytes}": (
                self.children_after_bytes <= MEMORY_RATIO_MAX * self.children_before_bytes
            ),
            f"memory during it {self.most_bytes} <= {most_bytes_max:.0f}": (
                self.way not in GROWTH_BYTES_MAX or self.most_bytes <= most_bytes_max
            ),
            f"opened {self.opened} >= {self.connections}": self.opened >= self.connections,
            f"held {self.held} >= {self.connections}": (
                self.way not in HELD or self.held >= self.connections
            ),
            f"unsent bytes {self.unsent_bytes} > 0": (
                self.way not in READ_BY_NOBODY or self.unsent_bytes > 0
            ),
            f"refused reads {self.refused_reads} > 0": (
                self.way != UNREAD_OF_ONE or self.refused_reads > 0
            ),
            f"closed {self.closed} > 0": (
                not is_whole or self.way not in CLOSED or self.closed > 0
            ),
        }
        return [f"{self.way}: {words}" for words, is_met in bars.items() if not is_met]


def misses_of(plays: Sequence[Outcome], *, is_whole: bool) -> list[str]:
    """Return what the plays of an attack miss, in words: the latency in most of them, and any other figure in one."""
    slow = [play for play in plays if is_whole and play.is_slow]
    words = [
        f"{play.way}: p99 beside it {play.beside.p99_ms:.1f} ms <= {play.p99_max_ms:.1f} ms"
        for play in slow
    ]
    of_others = [each for play in plays for each in play.misses(is_whole=is_whole)]
    return of_others + (words if 2 * len(slow) > len(plays) else [])


COLUMNS: Final = (
    "attack",
    "alone p50 / p99 ms",
    "beside it",
    "p99 ratio",
    "orders",
    "held",
    "opened",
    "closed",
    "unsent kB",
    "refused reads",
    "RSS before MB",
    "most",
    "after",
    "ratio",
    "others before",
    "others after",
    "within s",
    "others' cores",
)


def row_of(outcome: Outcome) -> str:
    """Return the figures of an attack as a row, and below it what is not judged."""
    alone, beside = outcome.alone, outcome.beside
    cells = (
        f"{outcome.connections:,} {outcome.way}",
        f"{alone.p50_ms:.1f} / {alone.p99_ms:.1f}",
        f"{beside.p50_ms:.1f} / {beside.p99_ms:.1f}",
        f"{beside.p99_ms / alone.p99_ms:.2f}",
        beside.orders,
        outcome.held,
        outcome.opened,
        outcome.closed,
        f"{outcome.unsent_bytes / 1e3:.0f}",
        outcome.refused_reads,
        f"{outcome.before_bytes / 1e6:.0f}",
        f"{outcome.most_bytes / 1e6:.0f}",
        f"{outcome.after_bytes / 1e6:.0f}",
        f"{outcome.after_bytes / outcome.before_bytes:.2f}",
        f"{outcome.children_before_bytes / 1e6:.0f}",
        f"{outcome.children_after_bytes / 1e6:.0f}",
        f"{outcome.given_back_s:.1f}",
        others_words(outcome.others_cores),
    )
    row = f"| {' | '.join(map(str, cells))} |\n"
    if outcome.is_disturbed:
        row += f"{outcome.way}: disturbed by other programs, so its latency is not judged\n"
    return row


def head() -> str:
    """Return the head of the rows."""
    return f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|\n"
