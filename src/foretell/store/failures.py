"""Failures of a database as refusals: it is unavailable, or other transactions hold rows for too long."""

import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from typing import Final

import sqlalchemy as sa

from foretell.domain.errors.http import TooManyRequests
from foretell.domain.errors.storage import (
    ReadsBusy,
    ReadTooSlow,
    RowsLocked,
    StoreUnavailable,
    WritesBusy,
)

# PostgreSQL: no connection, idle for too long, no access, no such database, rolled back, out of resources, shut down.
_UNAVAILABLE_STATES: Final = ("08", "25P03", "28", "3D", "40", "53", "57", "58")
_LOCK_NOT_GIVEN: Final = "55P03"


@contextlib.contextmanager
def after_effect() -> Iterator[None]:
    """Leave the outcome of a request open whose effect is there, and whose next transaction is refused.

    The refusals of one alone say that nothing was done, and a request that did nothing may be carried out again.
    """
    try:
        yield
    except (ReadTooSlow, ReadsBusy, TooManyRequests, RowsLocked) as refusal:
        raise StoreUnavailable("what the request did was not read in time") from refusal
    except WritesBusy as refusal:
        raise begun_in_part() from refusal


def begun_in_part() -> StoreUnavailable:
    """Return the refusal of a request that wrote before, and whose next write had no place in time."""
    return StoreUnavailable("the request has begun, and its next write had no place in time")


def _cause(error: Exception) -> str:
    """Return the words for a failure: a lock that stays is somebody else's, who should be looked for."""
    original = getattr(error, "orig", None)
    if getattr(original, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY:
        return "another program holds a lock on its file, such as a shell of SQLite"
    return type(error).__name__


@contextlib.asynccontextmanager
async def reported() -> AsyncIterator[None]:
    """Raise StoreUnavailable, or RowsLocked, in place of what the libraries raise when a database does not do its work."""
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError, OSError) as error:
        raise StoreUnavailable(_cause(error)) from error
    except sa.exc.DBAPIError as error:
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if isinstance(error, sa.exc.InternalError) and not state:
            # asyncpg raises an internal error when the server closes just as a statement begins.
            raise StoreUnavailable(type(error).__name__) from error
        if state == _LOCK_NOT_GIVEN:
            raise RowsLocked from error
        if not state.startswith(_UNAVAILABLE_STATES):
            raise
        raise StoreUnavailable(f"SQLSTATE {state}") from error
