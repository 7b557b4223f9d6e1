"""A database of the operator that a benchmark uses and leaves as it was."""

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from foretell.domain.errors.command import BenchFailed
from foretell.journal.postgres.connections import LOST, Connection, cause_of, connected

_HAS_JOURNAL: Final = "SELECT to_regnamespace('journal') IS NOT NULL"
_REMOVE: Final = "DROP SCHEMA IF EXISTS journal CASCADE"


@contextlib.asynccontextmanager
async def scratch_database(url: str) -> AsyncIterator[Connection]:
    """Give a connection to a database without a journal, and remove the journal made in it."""
    try:
        async with connected(url) as connection:
            if await connection.fetchval(_HAS_JOURNAL):
                raise BenchFailed("the database has a journal; name one that has none")
            try:
                yield connection
            finally:
                await connection.execute(_REMOVE)
    except LOST as error:
        raise BenchFailed(f"the database: {cause_of(error)}") from error
