"""Ratios in printed tables, beside figures that were rounded to whole numbers."""

from typing import Final

TOLERANCE: Final = 0.02


def is_ratio(printed: str, over: float, under: float) -> bool:
    """Return whether a printed ratio may be that of two figures before these were rounded.

    On a busy machine a figure may be so small that its rounding is most of a difference.
    """
    least = (over - 0.5) / (under + 0.5)
    most = (over + 0.5) / max(under - 0.5, 1e-9)
    return least - TOLERANCE <= float(printed) <= most + TOLERANCE
