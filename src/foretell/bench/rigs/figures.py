"""The figures that the exchange is judged by: bars, measurements, verdicts, and their table.

A figure is judged by its value as the table shows it. A run that other programs disturbed is not judged.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from rich.table import Table

COLUMNS: Final = ("figure", "bar", "seen", "ceiling of the same run", "verdict")
NOTHING: Final = "-"


class Judgement(StrEnum):
    """The judgement of a figure."""

    MET = "met"
    MISSED = "missed"
    DISTURBED = "disturbed"
    NOT_MEASURED = "not measured"


class Target(NamedTuple):
    """A figure and its bar: the least or the most that it may be."""

    figure: str
    least: float | None = None
    most: float | None = None
    unit: str = ""

    def is_met(self, seen: float) -> bool:
        """Return whether a value reaches the bar, as it is shown."""
        shown = round(seen, 2)
        return (self.least is None or shown >= self.least) and (
            self.most is None or shown <= self.most
        )

    def bar(self) -> str:
        """Return the bar in words."""
        sign, value = ("≥", self.least) if self.least is not None else ("≤", self.most)
        return f"{sign} {value:g}{self.unit}"

    def shown(self, seen: float) -> str:
        """Return a value in words."""
        return f"{seen:,.2f}{self.unit}"


class Measurement(NamedTuple):
    """The value of a figure, and the ceiling or floor of the same run in words."""

    figure: str
    seen: float
    ceiling: str


class Judged(NamedTuple):
    """A line of the table."""

    figure: str
    bar: str
    seen: str
    ceiling: str
    verdict: Judgement


CPU_SERVING: Final = "order-cpu, serving thread"
CPU_ALL: Final = "order-cpu, all processes"
LATENCY: Final = "order-latency"
DURABLE: Final = "durable-cost"
BOOK: Final = "book"
ENGINE: Final = "engine, 1,000 resting orders"
DEPTH: Final = "match-depth"
READY: Final = "ready"
REPLAY: Final = "replay"
ORDER_BYTES: Final = "memory, a resting order"
DAY: Final = "memory, a day"
FAILOVER: Final = "failover"
SETTLE: Final = "settle"
SETTLE_BESIDE: Final = "settle, 300 orders/s beside it"
WS: Final = "ws"
INDEX: Final = "index, fetch and decode"
INDEX_MEMORY: Final = "index, memory"


def e2e_at(connections: int) -> str:
    """Return the figure of orders over this many connections."""
    return f"order-e2e, {connections} connections"


def match_at(depth: int) -> str:
    """Return the figure of matching in a book of this depth."""
    return f"match, {depth:,} resting orders"


def journal_of(records: int) -> str:
    """Return the figure of a journal with batches of this size."""
    return f"journal, {records:,} {'record' if records == 1 else 'records'}"


TARGETS: Final = (
    Target(e2e_at(32), least=0.40),
    Target(e2e_at(128), least=0.50),
    Target(CPU_SERVING, most=1.6),
    Target(CPU_ALL, most=4.0),
    Target(LATENCY, most=1.5),
    Target(DURABLE, least=0.85),
    Target(BOOK, least=0.9),
    Target(WS, least=0.8),
    Target(match_at(10), least=2.0),
    Target(match_at(1_000), least=2.5),
    Target(match_at(100_000), least=4.0),
    Target(ENGINE, least=0.25),
    Target(DEPTH, least=0.50),
    Target(journal_of(1), most=1.3),
    Target(journal_of(16), most=1.3),
    Target(journal_of(128), most=1.3),
    Target(journal_of(1_024), most=1.5),
    Target(READY, most=10.0, unit=" s"),
    Target(REPLAY, least=0.30),
    Target(ORDER_BYTES, most=600.0, unit=" B"),
    Target(DAY, most=1.05),
    Target(FAILOVER, most=1.5),
    Target(SETTLE, least=0.7),
    Target(SETTLE_BESIDE, least=0.5),
    Target(INDEX, least=0.5),
    Target(INDEX_MEMORY, most=1.05),
)


def judge(
    measurements: Sequence[Measurement],
    disturbed: Mapping[str, str],
    missing: Mapping[str, str],
    targets: Sequence[Target] = TARGETS,
) -> list[Judged]:
    """Return a line for each target.

    `disturbed` has, by figure, the disturbance of its benchmark, and `missing` the reason why it has no value.
    """
    by_figure = {each.figure: each for each in measurements}
    lines = []
    for target in targets:
        figure, measured = target.figure, by_figure.get(target.figure)
        if measured is None:
            why = missing.get(figure, NOTHING)
            line = Judged(figure, target.bar(), NOTHING, why, Judgement.NOT_MEASURED)
        elif figure in disturbed:
            ceiling = f"{measured.ceiling}; {disturbed[figure]}"
            shown = target.shown(measured.seen)
            line = Judged(figure, target.bar(), shown, ceiling, Judgement.DISTURBED)
        else:
            verdict = Judgement.MET if target.is_met(measured.seen) else Judgement.MISSED
            shown = target.shown(measured.seen)
            line = Judged(figure, target.bar(), shown, measured.ceiling, verdict)
        lines.append(line)
    return lines


def table_of_figures(lines: Sequence[Judged]) -> Table:
    """Return the lines as a table for a terminal."""
    table = Table(*COLUMNS)
    for line in lines:
        table.add_row(*line)
    return table


def markdown_of_figures(lines: Sequence[Judged]) -> str:
    """Return the lines as a table in Markdown; a missed bar stands out."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [
        (*line[:-1], f"**{line.verdict}**" if line.verdict is Judgement.MISSED else line.verdict)
        for line in lines
    ]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
