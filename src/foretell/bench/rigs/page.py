"""A page with measured figures: a block between two markers, and a chart of the steps of an order beside it."""

import textwrap
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Final

from foretell.domain.errors.command import BenchFailed

BEGIN: Final = "<!-- foretell bench all: begin -->"
END: Final = "<!-- foretell bench all: end -->"
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


def check_page(page: Path) -> None:
    """Refuse a page without the two markers, so that a long run does not end with that."""
    _parts(page)


def write_page(page: Path, head: str, table: str, us_by_step: Mapping[str, float]) -> None:
    """Replace what is between the markers, and write the chart, if there are steps, beside the page."""
    before, after = _parts(page)
    block = [BEGIN, "", *textwrap.wrap(head, LINE_WIDTH), "", table]
    if us_by_step:
        page.with_name(CHART_NAME).write_text(chart_of_steps(CHART_TITLE, us_by_step))
        block += [CHART_LINE, ""]
    page.write_text("\n".join([*before, *block, END, *after, ""]))


def _parts(page: Path) -> tuple[list[str], list[str]]:
    """Return the lines of a page before and after its block; each marker is a line."""
    lines = page.read_text().splitlines()
    try:
        begin = lines.index(BEGIN)
        end = lines.index(END, begin)
    except ValueError:
        raise BenchFailed(
            f"{page} has no place for the figures: add the lines {BEGIN} and {END}"
        ) from None
    return lines[:begin], lines[end + 1 :]


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
