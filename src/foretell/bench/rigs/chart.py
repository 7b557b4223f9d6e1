"""A chart of the steps of an order as SVG: a bar for each step, with its time and its share."""

from collections.abc import Mapping
from html import escape
from typing import Final

WIDTH: Final = 760
BAR_BEGIN: Final = 240
BAR_WIDTH_MAX: Final = 360
ROW_HEIGHT: Final = 24
BAR_HEIGHT: Final = 16
TITLE_HEIGHT: Final = 36
FONT: Final = 'font-family="sans-serif" font-size="13"'
BAR: Final = f'height="{BAR_HEIGHT}" fill="#4c78a8"'


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
