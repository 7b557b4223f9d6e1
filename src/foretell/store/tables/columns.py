"""The kinds of columns, and the metadata that all tables belong to."""

from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

metadata: Final = sa.MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def key(name: str, kind: type[sa.types.TypeEngine[Any]] = sa.Text) -> sa.Column[Any]:
    """Return a column of the primary key."""
    return sa.Column(name, kind, primary_key=True, autoincrement=False)


def text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column of text."""
    return sa.Column(name, sa.Text, nullable=nullable)


def sorted_text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column of text whose index is in the order of code points on both databases."""
    kind = sa.Text().with_variant(postgresql.TEXT(collation="C"), "postgresql")
    return sa.Column(name, kind, nullable=nullable)


def integer(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column of 64-bit integers."""
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def flag(name: str) -> sa.Column[Any]:
    """Return a column that is true or false."""
    return sa.Column(name, sa.Boolean, nullable=False)


def document(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Return a column of JSON documents."""
    return sa.Column(name, sa.JSON(none_as_null=True), nullable=nullable)


def place() -> tuple[sa.Column[Any], ...]:
    """Return the columns of a row's place on the chain; `part` counts the rows of one log."""
    return (
        key("block_number", sa.BigInteger),
        key("log_index", sa.BigInteger),
        key("part", sa.BigInteger),
    )
