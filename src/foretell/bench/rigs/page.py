"""A page with measured figures: a block between two markers, and a chart of the steps of an order beside it."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from foretell.app.clock_and_ids import now_ms
from foretell.bench.rigs.machine import machine_words
from foretell.domain.errors.command import BenchFailed
from foretell.runtime.interpreter import running_interpreter

ALL: Final = "foretell bench all"
BEGIN: Final = f"<!-- {ALL}: begin -->"
END: Final = f"<!-- {ALL}: end -->"
LINE_WIDTH: Final = 116
CHART_NAME: Final = "order-steps.svg"
CHART_TITLE: Final = "Steps of one order on an idle exchange"
CHART_LINE: Final = f"![The steps of an order, in microseconds and shares]({CHART_NAME})"

WIDTH: Final = 760
BAR_BEGIN: Final = 240
BAR_WIDTH_MAX: Final = 360
ROW_HEIGHT: Final = 24
BAR_HEIGHT: Final = 16
TITLE_HEIGHT: Final = 36
FONT: Final = 'font-family="sans-serif" font-size="13"'
BAR: Final = f'height="{BAR_HEIGHT}" fill="#4c78a8"'


class Bar(NamedTuple):
    """A bar of a chart: its name before it, its length, and the words behind it."""

    name: str
    length: float
    words: str


def occasion() -> str:
    """Return the day, the machine and the interpreter of a run, in words."""
    day = datetime.fromtimestamp(now_ms() / 1000, UTC)
    return f"{day:%Y-%m-%d}, {machine_words()}, {running_interpreter().words()}."


def check_page(page: Path, name: str = ALL) -> None:
    """Refuse a page without the two markers of a name, so that a long run does not end with that."""
    _parts(page, name)


def write_page(page: Path, head: str, table: str, us_by_step: Mapping[str, float]) -> None:
    """Replace what is between the markers, and write the chart, if there are steps, beside the page."""
    chart_lines = []
    if us_by_step:
        page.with_name(CHART_NAME).write_text(chart_of_steps(CHART_TITLE, us_by_step))
        chart_lines = [CHART_LINE, ""]
    write_block(page, ALL, head, [table, *chart_lines])


def write_block(page: Path, name: str, head: str, block: Sequence[str]) -> None:
    """Replace what is between the markers of a name by a head, in lines of bounded width, and a block."""
    before, after = _parts(page, name)
    begin, end = _markers(name)
    lines = [begin, "", *textwrap.wrap(head, LINE_WIDTH), "", *block, end]
    page.write_text("\n".join([*before, *lines, *after, ""]))


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown, without a line end behind it."""
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _markers(name: str) -> tuple[str, str]:
    return f"<!-- {name}: begin -->", f"<!-- {name}: end -->"


def _parts(page: Path, name: str) -> tuple[list[str], list[str]]:
    """Return the lines of a page before and after the block of a name; each marker is a line."""
    lines = page.read_text().splitlines()
    begin, end = _markers(name)
    try:
        first = lines.index(begin)
        last = lines.index(end, first)
    except ValueError:
        raise BenchFailed(
            f"{page} has no place for the figures: add the lines {begin} and {end}"
        ) from None
    return lines[:first], lines[last + 1 :]


def chart_of_steps(title: str, us_by_step: Mapping[str, float]) -> str:
    """Return a chart of microseconds by step; the shares are of their sum."""
    total = sum(us_by_step.values())
    assert total > 0, "a step takes time"
    return chart_of_bars(
        title, [Bar(step, us, f"{us:,.0f} µs, {us / total:.0%}") for step, us in us_by_step.items()]
    )


def chart_of_bars(title: str, bars: Sequence[Bar]) -> str:
    """Return a chart of bars, one below the other; the longest has the whole width."""
    longest = max(bar.length for bar in bars)
    height = TITLE_HEIGHT + ROW_HEIGHT * len(bars) + ROW_HEIGHT // 2
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="23" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, bar in enumerate(bars):
        top = TITLE_HEIGHT + ROW_HEIGHT * number
        baseline, width = top + BAR_HEIGHT - 3, BAR_WIDTH_MAX * bar.length / longest
        rows += [
            f'<text x="{BAR_BEGIN - 10}" y="{baseline}" text-anchor="end">{escape(bar.name)}</text>',
            f'<rect x="{BAR_BEGIN}" y="{top}" width="{width:.1f}" {BAR}/>',
            f'<text x="{BAR_BEGIN + width + 8:.1f}" y="{baseline}">{escape(bar.words)}</text>',
        ]
    return "\n".join([*rows, "</svg>", ""])
