"""The figures of the reads: their bars, their table, and their chart."""

from collections.abc import Sequence
from html import escape
from typing import Final, NamedTuple

from rich.table import Table

from foretell.bench.rigs.machine import DISTURBED_CORES
from foretell.bench.rigs.page import markdown_table

TIMES_BARE_MAX: Final = 3.0
GROWTH_MAX: Final = 1.3
P99_MS_MAX: Final = 50.0
JUDGED_FROM_MS: Final = 0.5
"""Reads that take less are not compared with bare SQL: a request alone takes most of that."""
BARS: Final = (
    f"p99 ≤ {P99_MS_MAX:g} ms, p50 ≤ {TIMES_BARE_MAX:g} times bare SQL, growth ≤ {GROWTH_MAX:g}"
)
HEADS: Final = (
    *("read", "bare SQL", "p50, fewest", "p50", "p99"),
    *("p50 / bare", "p50 growth", "growth", "repeated", "verdict"),
)

WIDTH: Final = 760
BAR_BEGIN: Final = 200
BAR_WIDTH_MAX: Final = 430
ROW_HEIGHT: Final = 20
BAR_HEIGHT: Final = 12
TITLE_HEIGHT: Final = 40
FONT: Final = 'font-family="sans-serif" font-size="12"'
P50_COLOR: Final = "#4c78a8"
P99_COLOR: Final = "#c5d5ea"
BAR_COLOR: Final = "#e45756"


class ReadTimes(NamedTuple):
    """Milliseconds of a read, of the processor in it, and of the bare SQL; cores that other programs used meanwhile.

    More than one round was made where other programs used too many.
    """

    name: str
    p50_ms: float
    p99_ms: float
    cpu_ms: float
    bare_ms: float
    others_cores: float = 0.0
    rounds: int = 1


class ReadFigure(NamedTuple):
    """A read at the largest size, and its growth from the smallest one if there are two."""

    times: ReadTimes
    growth: float | None
    fewest_p50_ms: float | None = None
    """The p50 at the smallest size."""

    @property
    def missed(self) -> Sequence[str]:
        """The bars that are missed; a time means nothing while other programs use the machine."""
        read = self.times
        is_slow = read.p99_ms > P99_MS_MAX and not self.is_disturbed
        is_costly = read.p50_ms > JUDGED_FROM_MS and read.p50_ms > TIMES_BARE_MAX * read.bare_ms
        has_grown = self.growth is not None and self.growth > GROWTH_MAX
        verdicts = (("p99", is_slow), ("p50 / bare", is_costly), ("growth", has_grown))
        return [name for name, is_missed in verdicts if is_missed]

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs used so much of the machine that times say little."""
        return self.times.others_cores > DISTURBED_CORES

    @property
    def repeated(self) -> str:
        """The rounds of a read that was measured again, and the cores that other programs used in the one that counts."""
        read = self.times
        return f"{read.rounds} rounds, {read.others_cores:.2f} cores" if read.rounds > 1 else ""

    @property
    def verdict(self) -> str:
        """The verdict in words."""
        if self.missed:
            return f"**missed**: {', '.join(self.missed)}"
        return "p99 disturbed" if self.times.p99_ms > P99_MS_MAX else "met"

    def cells(self) -> Sequence[str]:
        """Return the cells of its row."""
        read, fewest_ms = self.times, self.fewest_p50_ms
        return (
            read.name,
            f"{read.bare_ms:,.2f} ms",
            "" if fewest_ms is None else f"{fewest_ms:,.2f} ms",
            *(f"{each:,.2f} ms" for each in (read.p50_ms, read.p99_ms)),
            f"{read.p50_ms / read.bare_ms:.1f}",
            "" if fewest_ms is None else f"{read.p50_ms / fewest_ms:.2f}",
            "" if self.growth is None else f"{self.growth:.2f}",
            self.repeated,
            self.verdict,
        )


def figures_of(runs: Sequence[Sequence[ReadTimes]], *, is_sqlite: bool) -> list[ReadFigure]:
    """Return the figures of runs at growing sizes.

    The growth that is judged is that of the processor time where the database works in this process, else that of
    the p50. That of the p50 is printed beside it.
    """
    is_growing = len(runs) > 1

    def growth(first: ReadTimes, last: ReadTimes) -> float:
        return last.cpu_ms / first.cpu_ms if is_sqlite else last.p50_ms / first.p50_ms

    return [
        ReadFigure(
            last,
            growth(first, last) if is_growing else None,
            first.p50_ms if is_growing else None,
        )
        for first, last in zip(runs[0], runs[-1], strict=True)
    ]


def missed_words(figures: Sequence[ReadFigure]) -> str:
    """Return the reads that miss bars in words, nothing if there are none."""
    missed = [f"{each.times.name} ({', '.join(each.missed)})" for each in figures if each.missed]
    return f": {'; '.join(missed)}" if missed else ""


def table_of_reads(figures: Sequence[ReadFigure]) -> Table:
    """Return the table for a console; one that is narrow breaks the names of reads, and cuts none."""
    table = Table()
    for head in HEADS:
        table.add_column(head, overflow="fold")
    for figure in figures:
        table.add_row(*figure.cells())
    return table


def markdown_of_reads(figures: Sequence[ReadFigure]) -> str:
    """Return the table as Markdown."""
    return markdown_table(HEADS, [figure.cells() for figure in figures])


def chart_of_reads(title: str, figures: Sequence[ReadFigure]) -> str:
    """Return a chart of p50 within p99 for each read, with a line at the bar of the p99."""
    most_ms = max(P99_MS_MAX, *(figure.times.p99_ms for figure in figures)) * 1.05
    height = TITLE_HEIGHT + ROW_HEIGHT * len(figures) + ROW_HEIGHT // 2

    def width(milliseconds: float) -> float:
        return BAR_WIDTH_MAX * milliseconds / most_ms

    at = BAR_BEGIN + width(P99_MS_MAX)
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="23" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, figure in enumerate(figures):
        read = figure.times
        top = TITLE_HEIGHT + ROW_HEIGHT * number
        baseline = top + BAR_HEIGHT - 2
        rows.append(
            f'<text x="{BAR_BEGIN - 10}" y="{baseline}" text-anchor="end">{escape(read.name)}</text>'
        )
        rows += [
            f'<rect x="{BAR_BEGIN}" y="{top}" width="{width(ms):.1f}" height="{BAR_HEIGHT}" fill="{color}"/>'
            for ms, color in ((read.p99_ms, P99_COLOR), (read.p50_ms, P50_COLOR))
        ]
        words = f"{read.p50_ms:,.1f} / {read.p99_ms:,.1f} ms"
        rows.append(
            f'<text x="{BAR_BEGIN + width(read.p99_ms) + 6:.1f}" y="{baseline}">{words}</text>'
        )
    rows += [
        f'<line x1="{at:.1f}" y1="{TITLE_HEIGHT - 4}" x2="{at:.1f}" y2="{height - 8}" stroke="{BAR_COLOR}"/>',
        "</svg>",
        "",
    ]
    return "\n".join(rows)
