"""A journal that a benchmark writes to."""

import asyncio
from collections.abc import Iterable
from typing import Final

from foretell.domain.errors.command import BenchFailed
from foretell.journal.port import Journal

SYNC_DEADLINE_S: Final = 60.0


class JournalWriter:
    """A started journal, and the sequence up to which it is durable."""

    # A future and a timer for each write cost less than an event and `asyncio.timeout`: what is
    # measured is the journal, and a sync takes a tenth of a millisecond.

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._failure: Exception | None = None
        self._synced = 0
        self._loop = asyncio.get_running_loop()
        self._woken: asyncio.Future[None] = self._loop.create_future()
        journal.start(self._on_synced, self._on_failed)

    async def write(self, payloads: Iterable[bytes]) -> None:
        """Append payloads at once, and return when the last of them is durable."""
        append = self._journal.append
        for payload in payloads:
            append(payload)
        deadline = self._loop.call_later(SYNC_DEADLINE_S, self._on_failed, TimeoutError("no sync"))
        try:
            while self._synced < self._journal.last_sequence:
                if self._failure is not None:
                    raise BenchFailed(str(self._failure))
                self._woken = self._loop.create_future()
                await self._woken
        finally:
            deadline.cancel()

    def _on_synced(self, sequence: int) -> None:
        self._synced = sequence
        self._wake()

    def _on_failed(self, failure: Exception) -> None:
        self._failure = failure
        self._wake()

    def _wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)
