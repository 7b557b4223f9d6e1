"""The rig of an exchange whose journal is in PostgreSQL, with several engines that may lead its shard."""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.faults.people import Notes
from tests.faults.processes import Member, Processes
from tests.faults.rig import (
    ANSWERED_WITHIN_S,
    LOOK_S,
    FaultRig,
    Replayed,
    furnish,
    lay_out,
    people_of,
    replay,
)
from tests.rigs.journals import query
from typing_extensions import override

from foretell.bench.rigs.leaders import Leader
from foretell.domain.values.sharding import ShardNumber
from foretell.journal.postgres.rows import read_entries as read_shard
from foretell.store.database import Database

SHARD: Final = ShardNumber(0)
ENGINES: Final = 2


@dataclass
class LedFaultRig(FaultRig):
    """An exchange of one shard in PostgreSQL, which any of several engines may lead."""

    url: str = ""
    engines: list[Member] = field(default_factory=list)

    @property
    @override
    def environment(self) -> dict[str, str]:
        return super().environment | {
            "FORETELL_DATABASE_URL": self.url,
            "FORETELL_JOURNAL": "postgres",
            "FORETELL_SHARDS": "1",
        }

    async def start_engine(self) -> Member:
        """Start an engine, which serves once it leads."""
        return await self.processes.start(self.folder, ["engine"], self.environment)

    @contextlib.asynccontextmanager
    async def supervised(self) -> AsyncIterator[None]:
        """Keep one engine that leads and one that waits: on a busy machine, any may lose its lease."""
        keeping = asyncio.create_task(self._keep_engines())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])
            assert keeping.cancelled(), keeping.exception()

    async def _keep_engines(self) -> None:
        while True:
            running = [engine for engine in self.engines if not engine.code.done()]
            for _ in range(ENGINES - len(running)):
                self.engines.append(await self.start_engine())
            await asyncio.sleep(LOOK_S)

    async def leading(self) -> Member:
        """Return the engine that leads; one that waits is newer, and has not served yet."""
        async with asyncio.timeout(ANSWERED_WITHIN_S):
            while True:
                for engine in reversed(self.engines):
                    if engine.served.is_set() and not engine.code.done():
                        return engine
                await asyncio.sleep(LOOK_S)

    @override
    def replayed(self) -> Replayed:
        return replay(read_shard(self.url, SHARD))

    @override
    def rows(self, table: str) -> list[Any]:
        """Return the rows as SQLite has them, which stores true as 1."""
        found = query(self.url, f"SELECT * FROM {table}")
        rows = [tuple(int(v) if isinstance(v, bool) else v for v in row) for row in found]
        return sorted(rows, key=repr)


@contextlib.asynccontextmanager
async def a_led_fault_rig(
    folder: Path, empty_database: Path, made: Processes, url: str
) -> AsyncIterator[LedFaultRig]:
    """Yield an exchange without an engine and without a serving process."""
    await lay_out(folder, empty_database)
    async with Database(url) as database:
        await furnish(database)
    notes = Notes(folder / "notes")
    async with people_of(notes, random.Random(1)) as (people, https):
        try:
            yield LedFaultRig(folder, made, people, https, notes, url=url)
        finally:
            await made.end()


def check_journal(url: str, leaders: Iterable[Leader]) -> None:
    """Check that every acknowledged payload is in the journal, and none twice.

    Reading the journal also checks that it has no gap and that each entry follows the one before.
    """
    payload_by_sequence = {
        entry.sequence: entry.payload.decode() for entry in read_shard(url, SHARD)
    }
    payloads = list(payload_by_sequence.values())
    assert len(payloads) == len(set(payloads))
    for leader in leaders:
        assert leader.acknowledged.items() <= payload_by_sequence.items()
    numbers_by_term: dict[str, list[int]] = {}
    for payload in payloads:
        term, _, number = payload.rpartition("-")
        numbers_by_term.setdefault(term, []).append(int(number))
    for numbers in numbers_by_term.values():
        assert numbers == list(range(len(numbers)))
