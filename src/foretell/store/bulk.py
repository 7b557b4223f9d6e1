"""Many rows for an empty database, faster than by statements: benchmarks fill theirs with them."""

import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any

import sqlalchemy as sa

from foretell.store.database import Database


@contextlib.asynccontextmanager
async def indexes_built_after(
    database: Database, tables: Sequence[sa.Table]
) -> AsyncIterator[None]:
    """Delete the indexes of tables that have no row yet, and create them again at the end.

    An index of hashes is changed all over with each row, and built in one pass.
    """
    indexes = [index for table in tables for index in table.indexes]

    def drop(connection: sa.Connection) -> None:
        for index in indexes:
            index.drop(connection)

    def create(connection: sa.Connection) -> None:
        for index in indexes:
            index.create(connection)

    await database.run_sync(drop)
    yield
    await database.run_sync(create)


async def write_rows(database: Database, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Insert rows with a value for each column, in the table's order, in one transaction."""
    if database.is_sqlite:
        async with database.writing() as tx:
            await tx.insert_rows(table, rows)
        return

    def copy(connection: sa.Connection) -> None:
        raw: Any = connection.connection.dbapi_connection
        columns = [column.name for column in table.c]
        raw.run_async(
            lambda driver: driver.copy_records_to_table(table.name, records=rows, columns=columns)
        )

    await database.run_sync(copy)
