"""One SQLite database that stays open: opening one and compiling all statements again is slow. And copies of tables."""

import asyncio
import contextlib
import copy
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Final

import sqlalchemy as sa

from foretell.store.database import Database
from foretell.store.tables import metadata
from foretell.store.topics import Topics

EMPTIED_WITHIN_S: Final = 60.0
POLL_S: Final = 0.01


class SharedDatabase:
    """The database of a test process, as empty for each test as a new one."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._path = shutil.copy(template, folder / "foretell.db")
        self.database = Database(f"sqlite+aiosqlite:///{self._path}")

    async def emptied(self) -> Database:
        """Return the database with the template's rows and without any watch."""
        await asyncio.to_thread(self._copy_template)
        database = copy.copy(self.database)
        database.topics = Topics()
        return database

    def _copy_template(self) -> None:
        """Copy the template once the event loop has released the previous test's lock on the file."""
        give_up_at = time.monotonic() + EMPTIED_WITHIN_S

        def check(*_: int) -> None:
            assert time.monotonic() < give_up_at, "a previous test keeps the database locked"

        with (
            contextlib.closing(sqlite3.connect(self._template)) as template,
            contextlib.closing(sqlite3.connect(self._path)) as present,
        ):
            present.execute("PRAGMA synchronous=OFF")
            template.backup(present, progress=check, sleep=POLL_S)


async def copy_tables(source: Database, target: Database) -> None:
    """Write all rows of a database to another, which is empty: whatever wrote them, reads of both have one answer."""
    for table in metadata.sorted_tables:
        async with source.reading() as tx:
            rows = await tx.all(sa.select(table))
        if rows:
            async with target.writing() as tx:
                await tx.execute(table.insert().values([row._asdict() for row in rows]))
