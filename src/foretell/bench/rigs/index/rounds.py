"""The rounds of `foretell bench index`: their times, their table and their chart."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from foretell.bench.rigs.page import Bar, chart_of_bars, markdown_table

T = TypeVar("T")

COLUMNS: Final = (
    *("round", "logs", "MB", "JSON/s", "read/s", "ratio", "index/s", "µs/log", "memory"),
)
ROUNDS_SHOWN_MAX: Final = 20
"""The most rounds of a page's table; of more, every second, third and so on is shown."""


class Times(NamedTuple):
    """Seconds that passed, and those of the processor in all threads of this process."""

    passed_s: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class IndexRound:
    """The times of one range: of its reading and decoding, of the bare JSON, and of the whole way to the tables.

    `resident_bytes` is the memory of this process afterwards.
    """

    logs: int
    json_bytes: int
    read: Times
    json: Times
    index: Times
    resident_bytes: int

    @property
    def ratio(self) -> float:
        """The speed of reading and decoding over that of bare JSON."""
        return self.json.passed_s / self.read.passed_s

    @property
    def cpu_ratio(self) -> float:
        """The same in processor time, without that of the node."""
        return self.json.cpu_s / self.read.cpu_s

    @property
    def index_per_s(self) -> float:
        """Logs a second from the node into the tables."""
        return self.logs / self.index.passed_s

    def cells(self, number: int) -> Sequence[str]:
        """Return the cells of its row."""
        return (
            str(number),
            f"{self.logs:,}",
            f"{self.json_bytes / 1e6:.1f}",
            f"{self.logs / self.json.passed_s:,.0f}",
            f"{self.logs / self.read.passed_s:,.0f}",
            f"{self.ratio:.2f}",
            f"{self.index_per_s:,.0f}",
            f"{self.index.cpu_s * 1e6 / self.logs:,.0f}",
            f"{self.resident_bytes / 1e6:,.0f} MB",
        )


class IndexResult(NamedTuple):
    """The rounds, and the name of the database that they wrote."""

    rounds: Sequence[IndexRound]
    database: str

    @property
    def ratio(self) -> float:
        """The median speed of reading and decoding over that of bare JSON."""
        return statistics.median([each.ratio for each in self.rounds])

    @property
    def cpu_ratio(self) -> float:
        """The same in processor time."""
        return statistics.median([each.cpu_ratio for each in self.rounds])

    @property
    def json_per_s(self) -> float:
        """The median rate of bare JSON, in logs a second."""
        return statistics.median([each.logs / each.json.passed_s for each in self.rounds])

    @property
    def index_per_s(self) -> float:
        """The median rate into the tables, in logs a second."""
        return statistics.median([each.index_per_s for each in self.rounds])

    @property
    def slowing(self) -> float:
        """The processor time of a log in the last quarter of the rounds over that in the second."""
        _, second_s, last_s = self._quarters()
        return last_s / second_s

    @property
    def slowing_of_all(self) -> float:
        """The same over that in the first quarter, in which tables and caches are still small."""
        first_s, _, last_s = self._quarters()
        return last_s / first_s

    def _quarters(self) -> tuple[float, float, float]:
        """Return the median seconds of a log in the first, the second and the last quarter of the rounds."""
        quarter = max(1, len(self.rounds) // 4)
        costs = [each.index.cpu_s / each.logs for each in self.rounds]
        first, second, last = costs[:quarter], costs[quarter : 2 * quarter], costs[-quarter:]
        return statistics.median(first), statistics.median(second), statistics.median(last)

    def shown(self) -> Sequence[tuple[int, IndexRound]]:
        """Return the rounds that a page shows, with their numbers."""
        step = -(-len(self.rounds) // ROUNDS_SHOWN_MAX)
        return list(enumerate(self.rounds, 1))[step - 1 :: step]

    def markdown(self) -> str:
        """Return the table of the shown rounds as Markdown."""
        return markdown_table(COLUMNS, [each.cells(number) for number, each in self.shown()])

    def chart(self) -> str:
        """Return a chart of the rate into the tables by round."""
        title = f"Logs a second from the node into {self.database}, by round of {self.rounds[0].logs:,} logs"
        bars = [
            Bar(f"round {number}", each.index_per_s, f"{each.index_per_s:,.0f}")
            for number, each in self.shown()
        ]
        return chart_of_bars(title, bars)


async def timed(work: Callable[[], Awaitable[T]]) -> tuple[T, Times]:
    """Return the result of some work, and its times."""
    began = times_now()
    result = await work()
    return result, times_since(began)


def times_now() -> Times:
    """Return the times up to now."""
    return Times(time.perf_counter(), time.process_time())


def times_since(began: Times) -> Times:
    """Return the times from then to now."""
    now = times_now()
    return Times(now.passed_s - began.passed_s, now.cpu_s - began.cpu_s)
