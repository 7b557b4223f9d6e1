"""A line chart as SVG, without any library; notebooks show it as it is."""

from collections.abc import Sequence
from typing import NamedTuple

WIDTH, HEIGHT, MARGIN = 640, 240, 40


class Chart(NamedTuple):
    """Points over time."""

    title: str
    points: Sequence[tuple[float, float]]

    def svg(self) -> str:
        """Return the picture."""
        times, values = [at for at, _ in self.points] or [0.0], [y for _, y in self.points] or [0.0]
        low, high = min(values), max(values)
        span_s, span = max(times) - min(times) or 1, high - low or 1
        places = [
            (
                MARGIN + (at - min(times)) / span_s * (WIDTH - 2 * MARGIN),
                HEIGHT - MARGIN - (value - low) / span * (HEIGHT - 2 * MARGIN),
            )
            for at, value in self.points
        ]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
            f' font-family="sans-serif" font-size="12"><text x="{MARGIN}" y="20">{self.title}</text>'
            f'<text x="2" y="{HEIGHT - MARGIN}">{low:g}</text><text x="2" y="{MARGIN}">{high:g}</text>'
            f'<polyline fill="none" stroke="#2563eb" stroke-width="2" points="{line}"/></svg>'
        )

    def _repr_svg_(self) -> str:
        return self.svg()
