"""A database that stays open, and one memory of compiled statements: both save tests time. And copies of tables.

Most tests open a database of their own, and so engines of their own. Each would compile the same statements again: about
a tenth of the work of tests of the store.
"""

import asyncio
import contextlib
import copy
import shutil
import sqlite3
import time
from pathlib import Path
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.asyncpg import PGDialect_asyncpg
from sqlalchemy.dialects.sqlite.aiosqlite import SQLiteDialect_aiosqlite
from sqlalchemy.util import LRUCache

from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits, WaitBounds
from foretell.store.tables import metadata
from foretell.store.topics import Topics

EMPTIED_WITHIN_S: Final = 60.0
POLL_S: Final = 0.01
PATIENT_S: Final = 120.0
PATIENT: Final = PublicReadLimits(
    read_s=PATIENT_S,
    sum_s=PATIENT_S,
    key_s=PATIENT_S,
    write_s=PATIENT_S,
    bounds=WaitBounds(wait_s=PATIENT_S),
    key_bounds=WaitBounds(wait_s=PATIENT_S),
)
"""For tests that are not about deadlines: a worker may have no processor for seconds."""
STATEMENTS_MAX: Final = 3_000


def share_compiled_statements() -> None:
    """Have all engines that are opened from now on use one memory; those of a database's kind are one dialect."""
    compiled: LRUCache[Any, Any] = LRUCache(STATEMENTS_MAX)
    open_engine = sa.Engine.__init__

    def open_with_shared(engine: sa.Engine, *arguments: Any, **named: Any) -> None:
        open_engine(engine, *arguments, **named)
        engine._compiled_cache = compiled

    sa.Engine.__init__ = open_with_shared  # type: ignore[assignment, method-assign]
    equal: dict[str, Any] = {"__eq__": _is_same_kind, "__hash__": _kind_hash}
    for kind in (SQLiteDialect_aiosqlite, PGDialect_asyncpg):
        for name, method in equal.items():
            setattr(kind, name, method)


def _is_same_kind(dialect: sa.Dialect, other: object) -> bool:
    """The key of a compiled statement names its dialect."""
    return type(dialect) is type(other)


def _kind_hash(dialect: sa.Dialect) -> int:
    return hash(type(dialect))


class SharedDatabase:
    """The database of a test process, as empty for each test as a new one."""

    def __init__(self, template: Path, folder: Path) -> None:
        self._template = template
        self._path = shutil.copy(template, folder / "foretell.db")
        self.database = Database(f"sqlite+aiosqlite:///{self._path}", PATIENT)

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
