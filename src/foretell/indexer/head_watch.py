"""The heads that a node reports: one that stands still or jumps is logged.

One that goes back is a reorg, and logged as such.
"""

from typing import Final

import structlog

STILL_AFTER_S: Final = 60.0
JUMP_BLOCKS: Final = 1_000

log = structlog.get_logger(__name__)


class HeadWatch:
    """Compares each head with the one before.

    A head that stands still is logged once, when it has for `still_after_s`, and again when it goes on; never without
    that time, as on a chain whose blocks come with transactions alone.
    """

    def __init__(self, still_after_s: float | None) -> None:
        self._still_after_s = still_after_s
        self._head: int | None = None
        self._changed_at_s = 0.0
        self._is_still = False

    def see(self, head: int, now_s: float) -> None:
        """Take the number of the newest block, and log what is out of order."""
        before, self._head = self._head, head
        if before == head:
            self._see_still(head, now_s)
            return
        if self._is_still:
            log.info("chain's head goes on", block=head, seconds=round(now_s - self._changed_at_s))
        self._changed_at_s, self._is_still = now_s, False
        if before is not None and head - before > JUMP_BLOCKS:
            log.warning("chain's head jumped", block=head, before=before)

    def _see_still(self, head: int, now_s: float) -> None:
        still_s = now_s - self._changed_at_s
        if self._still_after_s is None or self._is_still or still_s < self._still_after_s:
            return
        self._is_still = True
        log.warning("chain's head stands still", block=head, seconds=round(still_s))
