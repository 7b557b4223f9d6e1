"""Cursors of SQLite that cross to the thread of their connection once for each statement.

SQLAlchemy's own cursor crosses four times: to be opened, to execute, to fetch, and to be closed. Each crossing wakes two
threads, which costs more than finding a few rows by an index. For this the cursor replaces private methods of
SQLAlchemy's, and uses the queue of aiosqlite.
"""

import asyncio
import collections
import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, cast

import sqlalchemy as sa
from sqlalchemy.dialects.sqlite.aiosqlite import (
    AsyncAdapt_aiosqlite_connection,
    AsyncAdapt_aiosqlite_cursor,
)
from sqlalchemy.util import EMPTY_DICT
from typing_extensions import override

from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.threads import starting_thread

Run = Callable[[sqlite3.Cursor], object]


class OneCrossingCursor(AsyncAdapt_aiosqlite_cursor):
    """A cursor that executes a statement, fetches its rows, and is closed, in one call on the connection's thread."""

    __slots__ = ()
    _awaitable_cursor_close = False

    def __init__(self, adapt_connection: Any) -> None:
        self._adapt_connection = adapt_connection
        self._connection = adapt_connection.driver_connection
        self._soft_closed_memoized = EMPTY_DICT
        self._rows = collections.deque()
        self._cursor = cast("Any", None)

    @override
    def close(self) -> None:
        self._rows.clear()

    @override
    async def _execute_async(self, operation: Any, parameters: Any = None) -> Any:
        return await self._cross(lambda cursor: cursor.execute(operation, parameters or ()))

    @override
    async def _executemany_async(self, operation: Any, seq_of_parameters: Sequence[Any]) -> Any:
        return await self._cross(lambda cursor: cursor.executemany(operation, seq_of_parameters))

    async def _cross(self, run: Run) -> Any:
        """Run a statement; the driver's cursor keeps its attributes, such as its number of rows, when it is closed.

        One whose caller is canceled is interrupted: the rollback, and so the caller, would wait for its end.
        """
        on_thread: Any = getattr(self._connection, "_execute", None)
        try:
            self._cursor, rows = await on_thread(_run, self._connection, run)
        except asyncio.CancelledError:
            with contextlib.suppress(ValueError, sqlite3.ProgrammingError):  # it is closed already
                await self._connection.interrupt()
            raise
        self._rows = collections.deque(rows)
        return self._cursor


class OneCrossingConnection(AsyncAdapt_aiosqlite_connection):
    """A connection with such cursors."""

    __slots__ = ()
    _cursor_cls: Any = OneCrossingCursor


def open_connection(dialect: sa.Dialect, _: object, arguments: Any, options: Any) -> Any:
    """Return a new connection with such cursors, for the event `do_connect` of an engine."""
    dbapi = cast("Any", dialect.loaded_dbapi)
    try:
        with starting_thread():  # each connection has one
            opened: AsyncAdapt_aiosqlite_connection = dbapi.connect(*arguments, **options)
    except BlockingIOError as error:
        raise StoreUnavailable(str(error.strerror)) from error
    return OneCrossingConnection(dbapi, opened.driver_connection)


def _run(driver: Any, run: Run) -> tuple[sqlite3.Cursor, list[Any]]:
    of_thread: Any = getattr(driver, "_conn", None)
    cursor: sqlite3.Cursor = of_thread.cursor()
    try:
        run(cursor)
        return cursor, cursor.fetchall() if cursor.description else []
    finally:
        cursor.close()
