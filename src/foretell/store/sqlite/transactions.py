"""The beginning of a transaction in SQLite, which has one writer at a time.

SQLite's own wait for another writer sleeps for up to 100 ms at a time, so that one of two busy processes
is idle for longer than the other one writes. This one looks again every few milliseconds.
"""

import asyncio
import sqlite3
import time
from typing import Final, cast

import sqlalchemy as sa

BUSY_TIMEOUT_MS: Final = 10_000
BUSY_POLL_S: Final = 0.002
_BEGIN_WRITING: Final = "BEGIN IMMEDIATE"
_PRIMARY_CODE: Final = 0xFF
"""The part of SQLite's error codes that all kinds of one error share."""


def begin_reading(connection: sa.Connection) -> None:
    """Begin a transaction that sees one instant of the database."""
    connection.exec_driver_sql("BEGIN")


def begin_writing(connection: sa.Connection) -> None:
    """Begin a transaction once nobody else writes, on a connection whose own busy timeout is 0.

    Raises the library's error if another process still writes after `BUSY_TIMEOUT_MS`.
    """
    deadline_s = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        cursor = connection.connection.cursor()
        try:
            cursor.execute(_BEGIN_WRITING)
        except sqlite3.OperationalError as error:
            is_busy = error.sqlite_errorcode & _PRIMARY_CODE == sqlite3.SQLITE_BUSY
            if not is_busy or time.monotonic() >= deadline_s:
                break
        else:
            return
        finally:
            cursor.close()
        _wait(connection)
    connection.exec_driver_sql(_BEGIN_WRITING)


def _wait(connection: sa.Connection) -> None:
    """Let the event loop do other things meanwhile."""
    driver = cast("sa.engine.AdaptedConnection", connection.connection.dbapi_connection)
    driver.run_async(lambda _: asyncio.sleep(BUSY_POLL_S))
