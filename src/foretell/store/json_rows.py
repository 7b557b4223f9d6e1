"""Rows of another table in a column of a query, as JSON: what belongs to a row is loaded with it, not by a query more."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class _JsonRows(FunctionElement[str]):
    name = "json_rows"
    type = sa.Text()
    inherit_cache = True


@compiles(_JsonRows, "postgresql")
def _json_rows_of_postgres(element: _JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    row = f"json_build_array({compiler.process(element.clauses, **options)})"
    return f"CAST(json_agg({row}) AS TEXT)"


@compiles(_JsonRows, "sqlite")
def _json_rows_of_sqlite(element: _JsonRows, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_group_array(json_array({compiler.process(element.clauses, **options)}))"


def json_rows(*columns: sa.ColumnElement[Any]) -> sa.ColumnElement[Any]:
    """Return the aggregate of rows: a JSON list of lists in no order; it may be None where there are no rows."""
    return _JsonRows(*columns)
