"""Pauses between attempts: each longer than the one before, up to a limit, with jitter.

With jitter, processes that lost the same server do not all reconnect at the same moment.
"""

import random  # noqa: TID251 - jitter decides nothing that a replay or a test depends on
from collections.abc import Iterator
from typing import Final

JITTER: Final = 0.25
"""The part of a pause that varies."""


def pauses_s(first_s: float, most_s: float) -> Iterator[float]:
    """Yield, without end, how many seconds to wait before each further attempt."""
    assert 0 < first_s <= most_s
    pause_s = first_s
    while True:
        yield pause_s * (1 - JITTER * random.random())  # noqa: S311 - see above
        pause_s = min(2 * pause_s, most_s)
