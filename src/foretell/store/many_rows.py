"""Writing many rows at once: PostgreSQL gets them in one statement, as an array for each column.

Its driver would send each row of `Transaction.insert_rows` as a call of its own, which takes several times as long.
SQLite has no such calls, and gets the rows as before.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.store.database import STATEMENTS_KEPT_MAX, Transaction

ROWS_PER_ARRAY_MAX: Final = 5_000

Rows = Sequence[tuple[Any, ...]]


async def insert_many(tx: Transaction, table: sa.Table, rows: Rows) -> None:
    """Insert rows with a value for each column, in the table's order."""
    if tx.dialect == "sqlite":
        await tx.insert_rows(table, rows)
    else:
        await _write(tx, _insertion(table, is_upsert=False), rows)


async def upsert_many(tx: Transaction, table: sa.Table, rows: Rows) -> None:
    """Insert such rows, whose keys are distinct; each replaces the row with the same key."""
    if tx.dialect == "sqlite":
        await tx.upsert_rows(table, rows)
    else:
        await _write(tx, _insertion(table, is_upsert=True), rows)


async def _write(tx: Transaction, statement: sa.TextClause, rows: Rows) -> None:
    for start in range(0, len(rows), ROWS_PER_ARRAY_MAX):
        columns = zip(*rows[start : start + ROWS_PER_ARRAY_MAX], strict=True)
        values = {_name(place): list(column) for place, column in enumerate(columns)}
        await tx.execute(statement, [values])


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _insertion(table: sa.Table, *, is_upsert: bool) -> sa.TextClause:
    names = [column.name for column in table.c]
    arrays = ", ".join(f":{_name(place)}" for place in range(len(names)))
    text = f"INSERT INTO {table.name} ({', '.join(names)}) SELECT * FROM unnest({arrays})"  # noqa: S608 - names are the store's own
    if is_upsert:
        keys = ", ".join(column.name for column in table.primary_key.columns)
        changed = [column.name for column in table.c if not column.primary_key]
        settings = ", ".join(f"{name} = excluded.{name}" for name in changed)
        text += f" ON CONFLICT ({keys}) DO UPDATE SET {settings}"
    kinds = [
        sa.bindparam(_name(place), type_=postgresql.ARRAY(column.type))
        for place, column in enumerate(table.c)
    ]
    return sa.text(text).bindparams(*kinds)


def _name(place: int) -> str:
    return f"column_{place}"
