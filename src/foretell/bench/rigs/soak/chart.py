"""The chart of a soak: memory, files, open files, latencies and lags over time, each panel with a scale of its own."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

PANELS: Final = {
    "Memory of each process, MB": (
        "memory server MB",
        "memory tables MB",
        "memory recovery MB",
        "memory settlement MB",
        "memory reads MB",
        "memory chain MB",
        "memory SQLite of server MB",
    ),
    "Files, MB": ("files database MB", "files journal MB", "files chain MB"),
    "Open files and connections": ("files open",),
    "Latency of orders and reads, ms": (
        "orders p50 ms",
        "orders p99 ms",
        "reads p50 ms",
        "reads p99 ms",
    ),
    "Lag: tables (ms)": ("lag tables ms",),
    "Lag: index (blocks), settlement (s)": ("lag index blocks", "lag settlement s"),
}
COLORS: Final = ("#4c78a8", "#e45756", "#54a24b", "#b279a2", "#9d755d", "#f58518", "#72b7b2")
WIDTH: Final = 760
LEFT: Final = 60
PLOT_WIDTH: Final = 490
PLOT_HEIGHT: Final = 110
PANEL_HEIGHT: Final = 160
TITLE_HEIGHT: Final = 28
HEIGHT_OF_CHART: Final = PANEL_HEIGHT * len(PANELS)
FONT: Final = 'font-family="sans-serif" font-size="12"'

Samples = Sequence[Mapping[str, float]]


def chart_of_soak(samples: Samples) -> str:
    """Return the chart as SVG."""
    rows = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT_OF_CHART}" {FONT}>',
        f'<rect width="{WIDTH}" height="{HEIGHT_OF_CHART}" fill="#ffffff"/>',
    ]
    for number, (title, names) in enumerate(PANELS.items()):
        rows += _panel(samples, title, names, PANEL_HEIGHT * number)
    return "\n".join([*rows, "</svg>", ""])


def _panel(samples: Samples, title: str, names: Sequence[str], top: int) -> list[str]:
    end_s = max((each["at_s"] for each in samples), default=0.0) or 1.0
    most = (
        max((each[name] for each in samples for name in names if name in each), default=0.0) or 1.0
    )
    bottom = top + TITLE_HEIGHT + PLOT_HEIGHT
    frame = (
        f'<rect x="{LEFT}" y="{bottom - PLOT_HEIGHT}" width="{PLOT_WIDTH}" height="{PLOT_HEIGHT}"'
        ' fill="none" stroke="#cccccc"/>'
    )
    rows = [
        f'<text x="{LEFT}" y="{top + 20}" font-weight="bold">{escape(title)}</text>',
        frame,
        f'<text x="{LEFT - 6}" y="{bottom - PLOT_HEIGHT + 10}" text-anchor="end">{most:,.4g}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{LEFT + PLOT_WIDTH}" y="{bottom + 15}" text-anchor="end">{end_s / 60:,.1f} min</text>',
    ]
    for number, name in enumerate(names):
        points = " ".join(
            f"{LEFT + PLOT_WIDTH * each['at_s'] / end_s:.1f},{bottom - PLOT_HEIGHT * each[name] / most:.1f}"
            for each in samples
            if name in each
        )
        color, at = COLORS[number], bottom - PLOT_HEIGHT + 14 + 18 * number
        rows += [
            f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>',
            f'<text x="{LEFT + PLOT_WIDTH + 12}" y="{at}" fill="{color}">{escape(name)}</text>',
        ]
    return rows
