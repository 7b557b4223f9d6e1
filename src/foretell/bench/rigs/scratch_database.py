"""A database that somebody lends to a benchmark, which is left as it was."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from foretell.domain.errors.command import BenchFailed
from foretell.journal.postgres.connections import LOST, Connection, cause_of, connected

_IS_THERE: Final = "SELECT to_regnamespace('journal') IS NOT NULL"
_FORGET: Final = "DROP SCHEMA IF EXISTS journal CASCADE"


@contextlib.asynccontextmanager
async def lent_database(url: str) -> AsyncIterator[Connection]:
    """Give a connection to a database without a journal, and forget the one that comes into it."""
    try:
        async with connected(url) as connection:
            if await connection.fetchval(_IS_THERE):
                raise BenchFailed("the database has a journal; name one that has none")
            try:
                yield connection
            finally:
                await connection.execute(_FORGET)
    except LOST as error:
        raise BenchFailed(f"the database: {cause_of(error)}") from error
