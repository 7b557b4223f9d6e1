"""A page with measured figures: a block between two markers, and a chart of the steps of an order beside it."""

import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from foretell.domain.errors.command import BenchFailed

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
    total, longest = sum(us_by_step.values()), max(us_by_step.values())
    assert longest > 0, "a step takes time"
    height = TITLE_HEIGHT + ROW_HEIGHT * len(us_by_step) + ROW_HEIGHT // 2
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" {FONT}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="12" y="23" font-size="14" font-weight="bold">{escape(title)}</text>',
    ]
    for number, (step, us) in enumerate(us_by_step.items()):
        top = TITLE_HEIGHT + ROW_HEIGHT * number
        baseline, width = top + BAR_HEIGHT - 3, BAR_WIDTH_MAX * us / longest
        words = f"{us:,.0f} µs, {us / total:.0%}"
        rows += [
            f'<text x="{BAR_BEGIN - 10}" y="{baseline}" text-anchor="end">{escape(step)}</text>',
            f'<rect x="{BAR_BEGIN}" y="{top}" width="{width:.1f}" {BAR}/>',
            f'<text x="{BAR_BEGIN + width + 8:.1f}" y="{baseline}">{words}</text>',
        ]
    return "\n".join([*rows, "</svg>", ""])
