"""Answers that are kept for a few seconds, for all clients together: those over all wallets.

Requests of a client for the same answer at the same time share one computation; those of others do not, since it
waits among its client's reads, and may be refused for them. Both the number of answers and their bytes are bounded; a
failure is not kept.
"""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from foretell.runtime.lru import LruCache
from foretell.store.public_reads.places import client_name

RANKINGS_KEPT_S: Final = 5
"""How long a leaderboard is kept: rounds of the rankings are no closer."""
ANSWERS_MAX: Final = 500
ANSWER_BYTES_MAX: Final = 64 * 1024
KEY_CHARS_MAX: Final = 512
"""An answer whose route and query are longer is computed each time."""


class RecentAnswer(NamedTuple):
    """An encoded answer, and the whole seconds for which another cache may keep it, too."""

    content: bytes
    left_s: int


class _Answer(NamedTuple):
    content: bytes
    until_s: float


class RecentAnswers:
    """Encoded answers by their route and query, each for `kept_s` seconds."""

    def __init__(self, kept_s: int, now_s: Callable[[], float] = time.monotonic) -> None:
        self.kept_s = kept_s
        self._now_s = now_s
        self._answers: LruCache[str, _Answer] = LruCache(ANSWERS_MAX)
        self._computing: dict[tuple[str, str], asyncio.Task[_Answer]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[bytes]]) -> RecentAnswer:
        """Return the answer of a key, computed when none is kept; the client's own on the way is shared."""
        if not self.kept_s or len(key) > KEY_CHARS_MAX:
            return RecentAnswer(await compute(), self.kept_s)
        found = self._answers.get(key)
        if found is not None and self._now_s() < found.until_s:
            return self._recent(found)
        shared = client_name.get(), key
        task = self._computing.get(shared)
        if task is None:
            task = asyncio.create_task(self._compute(shared, compute))
            self._computing[shared] = task
        return self._recent(await asyncio.shield(task))

    def _recent(self, answer: _Answer) -> RecentAnswer:
        left_s = math.floor(answer.until_s - self._now_s())
        return RecentAnswer(answer.content, max(left_s, 0))

    async def _compute(
        self, shared: tuple[str, str], compute: Callable[[], Awaitable[bytes]]
    ) -> _Answer:
        until_s = self._now_s() + self.kept_s
        try:
            content = await compute()
        finally:
            del self._computing[shared]
        answer = _Answer(content, until_s)
        if len(content) <= ANSWER_BYTES_MAX:
            self._answers.put(shared[1], answer)
        return answer
