"""Many rows for an empty database, faster than by statements: benchmarks fill theirs with them."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from foretell.store.database import WRITER_CACHE_KIB, Database

FILLING_CACHE_KIB: Final = 1024 * 1024
"""Keys are hashes, so rows touch pages all over the file: those that are in memory are written once."""

RowsByTable = Mapping[sa.Table, list[tuple[Any, ...]]]
"""Rows with a value for each column, in the table's order, unconverted."""

WriteRows = Callable[[sa.Table, Sequence[tuple[Any, ...]]], Awaitable[None]]
"""Inserts rows with a value for each column, in the table's order, unconverted."""


@contextlib.asynccontextmanager
async def filling(database: Database, tables: Sequence[sa.Table]) -> AsyncIterator[WriteRows]:
    """Give what inserts rows into tables that have none yet; their indexes are built at the end.

    SQLite gets all of it in one transaction, PostgreSQL by COPY.
    """
    indexes = [index for table in tables for index in table.indexes]
    if not database.is_sqlite:
        await _run(database, [sa.schema.DropIndex(index) for index in indexes])

        async def copy(table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
            await _copy(database, table, rows)

        yield copy
        await _run(database, [sa.schema.CreateIndex(index) for index in indexes])
        return
    async with database.writing() as tx:
        await tx.execute(sa.text(f"PRAGMA cache_size=-{FILLING_CACHE_KIB}"))
        for index in indexes:
            await tx.execute(sa.schema.DropIndex(index))
        yield tx.insert_rows
        for index in indexes:
            await tx.execute(sa.schema.CreateIndex(index))
    async with database.writing() as tx:
        await tx.execute(sa.text(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}"))


async def _run(database: Database, statements: Sequence[sa.Executable]) -> None:
    async with database.writing() as tx:
        for statement in statements:
            await tx.execute(statement)


async def _copy(database: Database, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    def copy(connection: sa.Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        columns = [column.name for column in table.c]
        raw.run_async(
            lambda driver: driver.copy_records_to_table(table.name, records=rows, columns=columns)
        )

    await database.run_sync(copy)
