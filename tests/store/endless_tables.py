"""Tables of two billion rows, so that a read of all of them never ends in time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Final

import sqlalchemy as sa

from foretell.store.database import Database

VALUE_BY_TYPE: Final = MappingProxyType(
    {
        sa.Text: "'{name} ' || n",
        sa.BigInteger: "CAST(n AS BIGINT) + {place}",
        sa.Boolean: "n > {place}",
        sa.Double: "n + {place}.5",
        sa.LargeBinary: "NULL",
        sa.JSON: "'{{}}'",
    }
)
"""No column is the number itself, nor the same as another: a database would see that no row has what a query asks."""


@asynccontextmanager
async def endless(database: Database, *tables: sa.Table) -> AsyncIterator[None]:
    """Put views of so many rows in the place of tables."""
    for table in tables:
        await _run(database, f"ALTER TABLE {table.name} RENAME TO few_{table.name}", _view(table))
    try:
        yield
    finally:
        for table in tables:
            await _run(
                database,
                f"DROP VIEW {table.name}",
                f"ALTER TABLE few_{table.name} RENAME TO {table.name}",
            )


def _view(table: sa.Table) -> str:
    """Return the view in the place of a table, with its types.

    It reads the table once: of a statement that reads none, SQLite would not notice that the view is gone.
    """
    columns = ", ".join(
        f"{VALUE_BY_TYPE[type(column.type)].format(name=column.name, place=place)} AS {column.name}"
        for place, column in enumerate(table.columns, start=1)
    )
    return f"""CREATE VIEW {table.name} AS
        WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 2000000000)
        SELECT {columns} FROM numbers, (SELECT count(*) FROM few_{table.name}) AS counted"""


async def _run(database: Database, *statements: str) -> None:
    async with database.writing() as tx:
        for statement in statements:
            await tx.execute(sa.text(statement))
