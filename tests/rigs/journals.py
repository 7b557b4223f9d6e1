"""Journals for tests: written and closed at once, and shards of a real PostgreSQL."""

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg

from foretell.domain.values.sharding import ShardNumber
from foretell.journal.files.group_commit import InlineLimits
from foretell.journal.port import Journal
from foretell.journal.postgres.journal import PostgresJournal, open_journal
from foretell.journal.postgres.leases import Candidate, JournalPlace

SEGMENT_BYTES: Final = 256 * 1024
SHARD_COUNT = 8
WITHIN_S = 300.0
NEVER_INLINE = InlineLimits(records=0)
ALWAYS_INLINE = InlineLimits(sync_s=60.0)
"""Also on a slow disk, if the segment and an idle writer allow it."""
LEASE_S = 60.0
"""No test waits for its end, and a worker may have no processor for seconds."""


class JournalCalls:
    """The calls of a journal's callbacks, in order, and a way to wait for them."""

    def __init__(self) -> None:
        self.synced: list[int] = []
        self.failures: list[Exception] = []
        self._woken = asyncio.Event()

    def on_synced(self, sequence: int) -> None:
        self.synced.append(sequence)
        self._woken.set()

    def on_failed(self, failure: Exception) -> None:
        self.failures.append(failure)
        self._woken.set()

    async def until_synced(self, sequence: int) -> None:
        """Wait until a sequence is durable."""
        async with asyncio.timeout(WITHIN_S):
            while not self.synced or self.synced[-1] < sequence:
                self._woken.clear()
                await self._woken.wait()

    async def until_failed(self) -> Exception:
        """Wait until the journal fails, and return the failure."""
        async with asyncio.timeout(WITHIN_S):
            while not self.failures:
                self._woken.clear()
                await self._woken.wait()
        return self.failures[0]


@contextlib.asynccontextmanager
async def writing(journal: Journal) -> AsyncIterator[JournalCalls]:
    """Start a journal, and close it after the block."""
    calls = JournalCalls()
    journal.start(calls.on_synced, calls.on_failed)
    try:
        yield calls
    finally:
        await journal.close()


async def written(journal: Journal, payloads: list[bytes]) -> None:
    """Write payloads and close the journal."""
    async with writing(journal) as calls:
        for payload in payloads:
            journal.append(payload)
        if payloads:
            await calls.until_synced(journal.last_sequence)


class PostgresJournals:
    """Journals by name, each of them a shard of one database."""

    def __init__(self, url: str, lease_s: float = LEASE_S) -> None:
        self._url = url
        self._lease_s = lease_s
        self._shard_by_name: dict[str, int] = {}

    def place(self, name: str) -> JournalPlace:
        shard = self._shard_by_name.setdefault(name, len(self._shard_by_name))
        return JournalPlace(self._url, ShardNumber(shard), SHARD_COUNT)

    def open(self, name: str, patience_s: float = 0.0) -> PostgresJournal:
        return open_journal(self.place(name), a_candidate(self._lease_s), patience_s=patience_s)


def a_candidate(lease_s: float = LEASE_S, endpoint: str = "here") -> Candidate:
    return Candidate(os.urandom(16), endpoint, lease_s)


def query(url: str, statement: str, *values: Any) -> list[Any]:
    """Run a statement on a connection and in a thread of its own, and return its rows."""
    rows: list[Any] = []

    async def run() -> None:
        connection = await asyncpg.connect(url.replace("+asyncpg", ""))
        rows.extend(await connection.fetch(statement, *values))
        await connection.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    thread.join()
    return rows
