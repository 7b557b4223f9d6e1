"""Loading rows by many keys at once, in parts that fit a statement.

The keys are joined as a table of constants: SQLite then finds rows through their index, and would read
the whole table for the same keys in an IN.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import sqlalchemy as sa

from foretell.store.database import ROWS_PER_STATEMENT_MAX, Transaction

Key = tuple[Any, ...]


async def load_rows(
    tx: Transaction, table: sa.Table, columns: Iterable[sa.Column[Any]], keys: Iterable[Key]
) -> Sequence[sa.Row[Any]]:
    """Return the rows of a table whose columns equal one of these keys."""
    held, wanted = list(columns), sorted(set(keys))
    rows: list[sa.Row[Any]] = []
    for start in range(0, len(wanted), ROWS_PER_STATEMENT_MAX):
        part = wanted[start : start + ROWS_PER_STATEMENT_MAX]
        rows += await tx.all(rows_with(table, held, part))
    return rows


def rows_with(
    table: sa.Table, columns: Sequence[sa.Column[Any]], keys: Sequence[Key]
) -> sa.Select[Any]:
    """Return the query for the rows whose columns equal one of these distinct keys."""
    names = [sa.column(f"wanted_{column.name}", column.type) for column in columns]
    wanted = sa.values(*names, name="wanted").data(list(keys)).cte("wanted")
    pairs = zip(columns, names, strict=True)
    is_wanted = sa.and_(*(column == wanted.c[name.name] for column, name in pairs))
    return sa.select(table).join_from(wanted, table, is_wanted)
