"""Loading rows by many keys at once, in parts that fit a statement.

The keys are joined as a table, so rows are found through their index; SQLite would read the whole table for the
same keys in an IN. The statement is the same for any number of keys, which are one parameter in JSON (SQLite)
or an array for each column (PostgreSQL): building a statement with a place for each key costs more than running it.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from foretell.store.database import ROWS_PER_STATEMENT_MAX, STATEMENTS_KEPT_MAX, Transaction

Key = tuple[Any, ...]


def among(name: str, kind: type[sa.types.TypeEngine[Any]] = sa.Text) -> sa.BindParameter[Any]:
    """Return the parameter of a list of values in a statement that is built once: `column.in_(among("ids"))`."""
    return sa.bindparam(name, type_=kind, expanding=True)


KEYS: Final = "wanted"
"""The parameter of the keys; on PostgreSQL each column has its own, with a number behind."""


async def load_rows(
    tx: Transaction, table: sa.Table, columns: Iterable[sa.Column[Any]], keys: Iterable[Key]
) -> Sequence[sa.Row[Any]]:
    """Return the rows of a table whose columns equal one of these keys."""
    held, wanted = tuple(columns), sorted(set(keys))
    rows: list[sa.Row[Any]] = []
    for start in range(0, len(wanted), ROWS_PER_STATEMENT_MAX):
        part = wanted[start : start + ROWS_PER_STATEMENT_MAX]
        rows += await tx.all(*rows_with(tx.dialect, table, held, part))
    return rows


def rows_with(
    dialect: str, table: sa.Table, columns: tuple[sa.Column[Any], ...], keys: Sequence[Key]
) -> tuple[sa.TextualSelect, dict[str, Any]]:
    """Return the query for the rows whose columns equal one of these distinct keys, and its values.

    A statement that had the values would keep them until garbage is collected.
    """
    if dialect == "sqlite":
        return _in_sqlite(table, columns), {KEYS: msgspec.json.encode(keys).decode()}
    parts = zip(*keys, strict=True)
    arrays = {f"{KEYS}_{place}": list(part) for place, part in enumerate(parts)}
    return _in_postgres(table, columns), arrays


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _in_sqlite(table: sa.Table, columns: tuple[sa.Column[Any], ...]) -> sa.TextualSelect:
    same = [
        f"{table.name}.{column.name} = json_extract({KEYS}.value, '$[{place}]')"
        for place, column in enumerate(columns)
    ]
    # CROSS JOIN keeps the order of the tables: keys first.
    text = f"SELECT {_names(table)} FROM json_each(:{KEYS}) AS {KEYS} CROSS JOIN {table.name}"  # noqa: S608 - names are the store's own
    return sa.text(f"{text} WHERE {' AND '.join(same)}").columns(*table.c)


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _in_postgres(table: sa.Table, columns: tuple[sa.Column[Any], ...]) -> sa.TextualSelect:
    names = [f"{KEYS}_{place}" for place in range(len(columns))]
    pairs = list(zip(columns, names, strict=True))
    same = [f"{table.name}.{column.name} = {KEYS}.{name}" for column, name in pairs]
    arrays = ", ".join(f":{name}" for name in names)
    # The rows of each key are a query of their own (OFFSET 0), which uses the index; joined freely, a few hundred
    # keys would have PostgreSQL read the whole table.
    text = (
        f"SELECT {_names(table)} FROM unnest({arrays}) AS {KEYS}({', '.join(names)})"  # noqa: S608 - names are the store's own
        f" CROSS JOIN LATERAL (SELECT * FROM {table.name} WHERE {' AND '.join(same)} OFFSET 0)"
        f" AS {table.name}"
    )
    kinds = [sa.bindparam(name, type_=postgresql.ARRAY(column.type)) for column, name in pairs]
    return sa.text(text).bindparams(*kinds).columns(*table.c)


def _names(table: sa.Table) -> str:
    return ", ".join(f"{table.name}.{column.name}" for column in table.c)
