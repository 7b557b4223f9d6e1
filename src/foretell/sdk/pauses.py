"""Pauses between attempts: each longer than the one before, up to a limit, with jitter."""

import random  # noqa: TID251 - clients that lost the same server must not return together
from collections.abc import Iterator
from typing import Final

FIRST_S: Final = 0.1
LONGEST_S: Final = 5.0
JITTER: Final = 0.25
"""The part of a pause that varies."""


def growing_pauses_s(first_s: float = FIRST_S, longest_s: float = LONGEST_S) -> Iterator[float]:
    """Yield, without end, how many seconds to wait before each further attempt."""
    pause_s = first_s
    while True:
        yield pause_s * (1 - JITTER * random.random())  # noqa: S311 - see above
        pause_s = min(2 * pause_s, longest_s)
