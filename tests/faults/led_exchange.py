"""An exchange whose engines run apart, with their journal and its tables in PostgreSQL."""

import contextlib
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.faults.exchange import Exchange, Retold, furnish, lay_out, people_of, retell
from tests.faults.people import Notes
from tests.faults.processes import Member, Processes
from tests.journal.shards import query
from typing_extensions import override

from foretell.journal.postgres.rows import read_entries
from foretell.store.database import Database

SHARD = 0


@dataclass
class LedExchange(Exchange):
    """One shard, which any of several engines may lead."""

    url: str = ""

    @property
    @override
    def environment(self) -> dict[str, str]:
        return super().environment | {
            "FORETELL_DATABASE_URL": self.url,
            "FORETELL_JOURNAL": "postgres",
            "FORETELL_SHARDS": "1",
        }

    async def start_engine(self) -> Member:
        """Begin an engine, which serves once it leads."""
        return await self.processes.start(self.folder, ["engine"], self.environment)

    @override
    def retold(self) -> Retold:
        return retell(read_entries(self.url, SHARD))

    @override
    def rows(self, table: str) -> list[Any]:
        """Return the rows as SQLite has them, which has no word for true."""
        found = query(self.url, f"SELECT * FROM {table}")
        rows = [tuple(int(v) if isinstance(v, bool) else v for v in row) for row in found]
        return sorted(rows, key=repr)


@contextlib.asynccontextmanager
async def a_led_exchange(
    folder: Path, empty_database: Path, made: Processes, url: str
) -> AsyncIterator[LedExchange]:
    """Give an exchange without an engine and without anybody who serves."""
    await lay_out(folder, empty_database)
    async with Database(url) as database:
        await furnish(database)
    notes = Notes(folder / "notes")
    async with people_of(notes, random.Random(1)) as (people, https):
        try:
            yield LedExchange(folder, made, people, https, notes, url=url)
        finally:
            await made.end()
