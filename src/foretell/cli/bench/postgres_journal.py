"""The journal in PostgreSQL: how long a batch takes, and how many records are durable in a second.

The ceiling is one bare INSERT of the same bytes in one commit: no lease, no chain, no unique id. Both
are measured in turns on the same server, so that what else it does meets both alike.
"""

import asyncio
import statistics
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import uvloop
from rich.console import Console
from rich.table import Table

from foretell.domain.command_errors import BenchFailed
from foretell.journal.connections import Connection, connected
from foretell.journal.leases import Candidate, ShardPlace
from foretell.journal.postgres import PostgresJournal, lead

BATCHES: Final = (1, 16, 128, 1024)
RECORD_BYTES: Final = 260
SYNC_DEADLINE_S: Final = 30.0

_IS_THERE: Final = "SELECT to_regnamespace('journal') IS NOT NULL"
_MAKE_BARE: Final = "CREATE SCHEMA journal; CREATE TABLE journal.bare (payload bytea)"
_INSERT_BARE: Final = "INSERT INTO journal.bare SELECT unnest($1::bytea[])"
_FORGET: Final = "DROP SCHEMA journal CASCADE"


class Measured(NamedTuple):
    """What batches of one size showed; times are medians, in milliseconds."""

    batch: int
    journal_ms: float
    bare_ms: float

    @property
    def records_per_s(self) -> float:
        """Durable records in a second, one batch after the other."""
        return self.batch * 1e3 / self.journal_ms

    @property
    def ratio(self) -> float:
        """How many times as long as the bare commit a batch takes."""
        return self.journal_ms / self.bare_ms


def run_bench_postgres_journal(url: str, holder: bytes, rounds: int, console: Console) -> None:
    """Measure on a database without a journal, which is left as it was; print the ratios."""
    measured = uvloop.run(_measure(url, holder, rounds))
    table = Table("batch", "journal p50 ms", "bare commit p50 ms", "ratio", "durable records/s")
    for shown in measured:
        table.add_row(
            str(shown.batch),
            f"{shown.journal_ms:.2f}",
            f"{shown.bare_ms:.2f}",
            f"{shown.ratio:.2f}",
            f"{shown.records_per_s:,.0f}",
        )
    console.print(table)
    console.print(
        f"journal-postgres: a batch takes {max(shown.ratio for shown in measured):.2f} times as"
        f" long as a bare commit of the same bytes at most (medians of {rounds} rounds)"
    )


async def _measure(url: str, holder: bytes, rounds: int) -> Sequence[Measured]:
    async with connected(url) as connection:
        if await connection.fetchval(_IS_THERE):
            raise BenchFailed("the database has a journal; name one that has none")
        await connection.execute(_MAKE_BARE)
        try:
            journal = await lead(ShardPlace(url, 0, 1), Candidate(holder, "bench"))
            try:
                turns = _Turns(journal)
                return [await turns.take(connection, batch, rounds) for batch in BATCHES]
            finally:
                await journal.close()
        finally:
            await connection.execute(_FORGET)


class _Turns:
    """The journal that is measured, and the last sequence that it told."""

    def __init__(self, journal: PostgresJournal) -> None:
        self._journal = journal
        self._failure: Exception | None = None
        self._synced = 0
        self._woken = asyncio.Event()
        journal.start(self._hear, self._fail)

    async def take(self, connection: Connection, batch: int, rounds: int) -> Measured:
        """Return what batches of a size show, the first turn of each left out."""
        payloads = [bytes(RECORD_BYTES)] * batch
        journal_s, bare_s = [], []
        for _ in range(rounds + 1):
            started = time.perf_counter()
            await connection.execute(_INSERT_BARE, payloads)
            bare_s.append(time.perf_counter() - started)
            started = time.perf_counter()
            await self._append(payloads)
            journal_s.append(time.perf_counter() - started)
        journal_ms, bare_ms = (statistics.median(each[1:]) * 1e3 for each in (journal_s, bare_s))
        return Measured(batch, journal_ms, bare_ms)

    async def _append(self, payloads: Sequence[bytes]) -> None:
        """Append payloads at once, and wait until the last of them is durable."""
        for payload in payloads:
            self._journal.append(payload)
        async with asyncio.timeout(SYNC_DEADLINE_S):
            while self._synced < self._journal.last_sequence:
                if self._failure is not None:
                    raise BenchFailed(str(self._failure))
                self._woken.clear()
                await self._woken.wait()

    def _hear(self, sequence: int) -> None:
        self._synced = sequence
        self._woken.set()

    def _fail(self, failure: Exception) -> None:
        self._failure = failure
        self._woken.set()
