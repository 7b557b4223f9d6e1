"""Connections to the PostgreSQL of a journal: every wait has an end, and a commit is durable.

Each is opened by the thread that uses it, and thrown away after any failure: what its last statement
did is unknown then, and is looked up on a new one.
"""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Final

import asyncpg

Connection = asyncpg.Connection

CONNECT_DEADLINE_S: Final = 5.0
STATEMENT_DEADLINE_S: Final = 10.0
LOCK_DEADLINE_S: Final = 5.0
HANG_UP_DEADLINE_S: Final = 0.5
RETRY_S: Final = 0.02
RETRY_S_MAX: Final = 0.5

LOST: Final = (
    OSError,  # TimeoutError among them
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

# PostgreSQL: no connection, read-only (a standby, soon to lead), rolled back, out of resources,
# no lock in time, shut down or canceled, the system's fault.
_PASSING_STATES: Final = ("08", "25006", "40", "53", "55P03", "57", "58")

DRIVER: Final = "postgresql+asyncpg://"
_SERVER_SETTINGS: Final = {
    "application_name": "foretell journal",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{LOCK_DEADLINE_S:.0f}s",
    "tcp_user_timeout": f"{STATEMENT_DEADLINE_S:.0f}s",
}

# A cluster may ask for more than this (remote_apply), never for less.
_COMMIT_DURABLY: Final = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""


async def connect(url: str) -> asyncpg.Connection:
    """Return a new connection; one of LOST says why there is none."""
    connection = await asyncpg.connect(
        url.replace(DRIVER, "postgresql://", 1),
        timeout=CONNECT_DEADLINE_S,
        command_timeout=STATEMENT_DEADLINE_S,
        server_settings=_SERVER_SETTINGS,
    )
    try:
        await connection.execute(_COMMIT_DURABLY)
    except BaseException:
        connection.terminate()
        raise
    return connection


@contextlib.asynccontextmanager
async def connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    """Give a connection for one piece of work."""
    connection = await connect(url)
    try:
        yield connection
    except BaseException:
        connection.terminate()
        raise
    await hang_up(connection)


async def hang_up(connection: asyncpg.Connection) -> None:
    """Close a connection, politely if the server still answers."""
    try:
        await connection.close(timeout=HANG_UP_DEADLINE_S)
    except LOST:
        connection.terminate()


def is_passing(error: BaseException) -> bool:
    """Return whether a new connection may get an answer."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_PASSING_STATES)
    return isinstance(error, LOST)


def retry_delays_s() -> Iterator[float]:
    """Yield how long to wait before each further attempt."""
    delay_s = RETRY_S
    while True:
        yield delay_s
        delay_s = min(2 * delay_s, RETRY_S_MAX)


def cause_of(error: BaseException) -> str:
    """Return what an operator should read of a failure: no statement, no value."""
    state = getattr(error, "sqlstate", None)
    return f"{type(error).__name__}, SQLSTATE {state}" if state else type(error).__name__
