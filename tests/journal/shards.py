"""Journals in a real PostgreSQL, and ways to look at them and to spoil them from outside."""

import asyncio
import os
import threading
from typing import Any

import asyncpg

from foretell.journal.postgres.journal import PostgresJournal, open_journal
from foretell.journal.postgres.leases import Candidate, JournalPlace

SHARD_COUNT = 8
LEASE_S = 2.0
"""Long enough for a machine that is busy with other tests."""


class Shards:
    """Journals by name, each of them a shard of one database."""

    def __init__(self, url: str, lease_s: float = LEASE_S) -> None:
        self._url = url
        self._lease_s = lease_s
        self._shard_by_name: dict[str, int] = {}

    def place(self, name: str) -> JournalPlace:
        shard = self._shard_by_name.setdefault(name, len(self._shard_by_name))
        return JournalPlace(self._url, shard, SHARD_COUNT)

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
