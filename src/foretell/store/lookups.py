"""Loading rows by many keys at once, in parts that fit a statement.

The keys are joined as a table, so rows are found through their index; SQLite would read the whole table for the
same keys in an IN. The statement is the same for any number of keys, which are one parameter in JSON (SQLite)
or an array for each column (PostgreSQL): building a statement with a place for each key costs more than running it.
"""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from typing_extensions import override

from foretell.store.database import ROWS_PER_STATEMENT_MAX, STATEMENTS_KEPT_MAX, Transaction

Key = tuple[Any, ...]


def among(name: str, kind: type[sa.types.TypeEngine[Any]] = sa.Text) -> sa.BindParameter[Any]:
    """Return the parameter of a list of values in a statement that is built once: `column.in_(among("ids"))`."""
    return sa.bindparam(name, type_=kind, expanding=True)


class _Ids(sa.types.TypeDecorator[Any]):
    """A list of ids as one value: an array on PostgreSQL, JSON on SQLite."""

    impl = sa.Text
    cache_ok = True

    @override
    def load_dialect_impl(self, dialect: sa.Dialect) -> sa.types.TypeEngine[Any]:
        """Return the type of the database."""
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.ARRAY(sa.BigInteger))
        return dialect.type_descriptor(sa.Text())

    @override
    def process_bind_param(self, value: Any, dialect: sa.Dialect) -> Any:
        """Return the value that the driver gets."""
        return list(value) if dialect.name == "postgresql" else msgspec.json.encode(value).decode()


class _OneOf(FunctionElement[Any]):
    """A condition without the type of one: SQLite would compare that with 1, and then use no index."""

    name = "one_of"
    type = sa.types.NullType()
    inherit_cache = True


@compiles(_OneOf, "postgresql")
def _one_of_array(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, ids = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} = ANY ({ids})"


@compiles(_OneOf, "sqlite")
def _one_of_json(element: _OneOf, compiler: SQLCompiler, **options: Any) -> str:
    column, ids = (compiler.process(each, **options) for each in element.clauses)
    return f"{column} IN (SELECT value FROM json_each({ids}))"  # noqa: S608 - no value is in it


def one_of(
    column: sa.ColumnElement[int], name: str, ids: Collection[int] = ()
) -> sa.ColumnElement[bool]:
    """Return the condition that a column is one of the ids of a parameter; a run may give others than these.

    The ids are one value, however many there are, so that the text of the statement is always the same.
    """
    return _OneOf(column, sa.bindparam(name, list(ids), type_=_Ids))


KEYS: Final = "wanted"
"""The parameter of the keys; on PostgreSQL each column has its own, with a number behind."""


async def load_rows(
    tx: Transaction,
    table: sa.TableClause,
    columns: Iterable[sa.ColumnClause[Any]],
    keys: Iterable[Key],
) -> Sequence[sa.Row[Any]]:
    """Return the rows of a table whose columns equal one of these keys.

    They have the columns of `table`, which may be a part of those that the database has.
    """
    held, wanted = tuple(columns), sorted(set(keys))
    rows: list[sa.Row[Any]] = []
    for start in range(0, len(wanted), ROWS_PER_STATEMENT_MAX):
        part = wanted[start : start + ROWS_PER_STATEMENT_MAX]
        rows += await tx.all(*rows_with(tx.dialect, table, held, part))
    return rows


async def load_newest(
    tx: Transaction, table: sa.Table, keys: Iterable[Key]
) -> Sequence[sa.Row[Any]]:
    """Return the row of the last block for each of these keys: the columns of the primary key before its last, the block."""
    *held, last = table.primary_key.columns
    return await load_last(tx, table, tuple(held), (last,), keys)


async def load_last(
    tx: Transaction,
    table: sa.Table,
    columns: tuple[sa.Column[Any], ...],
    newest: tuple[sa.Column[Any], ...],
    keys: Iterable[Key],
) -> Sequence[sa.Row[Any]]:
    """Return the row of each of these keys, found in `columns`, that is the last in the order of `newest`."""
    wanted = sorted(set(keys))
    rows: list[sa.Row[Any]] = []
    for start in range(0, len(wanted), ROWS_PER_STATEMENT_MAX):
        part = wanted[start : start + ROWS_PER_STATEMENT_MAX]
        rows += await tx.all(*rows_with(tx.dialect, table, columns, part, newest))
    return rows


def rows_with(
    dialect: str,
    table: sa.TableClause,
    columns: tuple[sa.ColumnClause[Any], ...],
    keys: Sequence[Key],
    newest: tuple[sa.Column[Any], ...] = (),
) -> tuple[sa.TextualSelect, dict[str, Any]]:
    """Return the query for the rows whose columns equal one of these distinct keys, and its values.

    With `newest`, only the last row of each key in the order of these columns. A statement that had the values would keep
    them until garbage is collected.
    """
    if dialect == "sqlite":
        return _in_sqlite(table, columns, newest), {KEYS: msgspec.json.encode(keys).decode()}
    parts = zip(*keys, strict=True)
    arrays = {f"{KEYS}_{place}": list(part) for place, part in enumerate(parts)}
    return _in_postgres(table, columns, newest), arrays


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _in_sqlite(
    table: sa.TableClause,
    columns: tuple[sa.ColumnClause[Any], ...],
    newest: tuple[sa.Column[Any], ...],
) -> sa.TextualSelect:
    keys = [f"json_extract({KEYS}.value, '$[{place}]')" for place in range(len(columns))]
    pairs = list(zip(columns, keys, strict=True))
    same = [f"{table.name}.{column.name} = {key}" for column, key in pairs]
    if newest:
        also = " AND ".join(f"held.{column.name} = {key}" for column, key in pairs)
        last = ", ".join(f"held.{column.name}" for column in newest)
        order = ", ".join(f"held.{column.name} DESC" for column in newest)
        largest = f"SELECT {last} FROM {table.name} AS held WHERE {also} ORDER BY {order} LIMIT 1"  # noqa: S608 - names are the store's own
        of_rows = ", ".join(f"{table.name}.{column.name}" for column in newest)
        same.append(f"({of_rows}) = ({largest})")
    # CROSS JOIN keeps the order of the tables: keys first.
    text = f"SELECT {_names(table)} FROM json_each(:{KEYS}) AS {KEYS} CROSS JOIN {table.name}"  # noqa: S608 - names are the store's own
    return sa.text(f"{text} WHERE {' AND '.join(same)}").columns(*table.c)


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _in_postgres(
    table: sa.TableClause,
    columns: tuple[sa.ColumnClause[Any], ...],
    newest: tuple[sa.Column[Any], ...],
) -> sa.TextualSelect:
    names = [f"{KEYS}_{place}" for place in range(len(columns))]
    pairs = list(zip(columns, names, strict=True))
    same = [f"{table.name}.{column.name} = {KEYS}.{name}" for column, name in pairs]
    arrays = ", ".join(f":{name}" for name in names)
    order = ", ".join(f"{column.name} DESC" for column in newest)
    part = f"ORDER BY {order} LIMIT 1" if newest else "OFFSET 0"
    # The rows of each key are a query of their own (OFFSET 0), which uses the index; joined freely, a few hundred
    # keys would have PostgreSQL read the whole table.
    text = (
        f"SELECT {_names(table)} FROM unnest({arrays}) AS {KEYS}({', '.join(names)})"  # noqa: S608 - names are the store's own
        f" CROSS JOIN LATERAL (SELECT * FROM {table.name} WHERE {' AND '.join(same)} {part})"
        f" AS {table.name}"
    )
    kinds = [sa.bindparam(name, type_=postgresql.ARRAY(column.type)) for column, name in pairs]
    return sa.text(text).bindparams(*kinds).columns(*table.c)


def _names(table: sa.TableClause) -> str:
    return ", ".join(f"{table.name}.{column.name}" for column in table.c)
