"""A journal that a benchmark writes to."""

import asyncio
from collections.abc import Iterable
from typing import Final

from foretell.domain.errors.command import BenchFailed
from foretell.journal.port import Journal

SYNC_DEADLINE_S: Final = 60.0


class JournalWriter:
    """A started journal, and the sequence up to which it is durable."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._failure: Exception | None = None
        self._synced = 0
        self._woken = asyncio.Event()
        journal.start(self._on_synced, self._on_failed)

    async def write(self, payloads: Iterable[bytes]) -> None:
        """Append payloads at once, and return when the last of them is durable."""
        append = self._journal.append
        for payload in payloads:
            append(payload)
        async with asyncio.timeout(SYNC_DEADLINE_S):
            while self._synced < self._journal.last_sequence:
                if self._failure is not None:
                    raise BenchFailed(str(self._failure))
                self._woken.clear()
                await self._woken.wait()

    def _on_synced(self, sequence: int) -> None:
        self._synced = sequence
        self._woken.set()

    def _on_failed(self, failure: Exception) -> None:
        self._failure = failure
        self._woken.set()
