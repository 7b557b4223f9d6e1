"""The metrics of this process as text, which is kept for a moment.

Collecting and rendering them takes milliseconds of the event loop, and anybody may ask for them at the port of the APIs.
"""

import time
from collections.abc import Callable
from typing import Final

from prometheus_client import generate_latest

KEPT_S: Final = 1.0
"""For how long a text answers further requests; a collector that asks every few seconds gets a new one each time."""


class RenderedMetrics:
    """The text of the metrics, rendered at most once in `KEPT_S`.

    Only the event loop's thread asks for it, so there is never more than one rendering at a time.
    """

    def __init__(
        self,
        now_s: Callable[[], float] = time.monotonic,
        render: Callable[[], bytes] = generate_latest,
    ) -> None:
        self._now_s = now_s
        self._render = render
        self._text = b""
        self._ends_at_s: float | None = None

    def text(self) -> bytes:
        """Return the metrics as they were at most `KEPT_S` ago."""
        if self._ends_at_s is None or self._now_s() >= self._ends_at_s:
            self._text = self._render()
            self._ends_at_s = self._now_s() + KEPT_S
        return self._text
