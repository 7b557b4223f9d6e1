"""The order of texts, the same on both databases: by code points, whatever PostgreSQL's collation is."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import ReturnTypeFromArgs


class by_code_points(ReturnTypeFromArgs[str]):  # noqa: N801 - a SQL function
    """A text to sort and compare by."""

    inherit_cache = True


@compiles(by_code_points)
def _plain(element: sa.Function[str], compiler: SQLCompiler, **options: Any) -> str:
    """Return the text as it is: SQLite sorts by bytes."""
    return compiler.process(element.clauses, **options)


@compiles(by_code_points, "postgresql")
def _collated(element: sa.Function[str], compiler: SQLCompiler, **options: Any) -> str:
    return f'({compiler.process(element.clauses, **options)}) COLLATE "C"'
