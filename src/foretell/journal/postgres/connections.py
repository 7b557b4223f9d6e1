"""Connections to the PostgreSQL of a journal: every wait has an end, and a commit is durable.

A URL may name several servers, one of which leads at a time: all are tried at once, so that a
silent one costs nothing, and the first that takes writes is used. A connection belongs to the
thread that opened it, and is dropped after any failure: the outcome of its last statement is
unknown then, and is looked up on a new connection.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, urlencode

import asyncpg

from foretell.domain.errors.storage import JournalFailed
from foretell.runtime.backoff import pauses_s
from foretell.runtime.event_loop_thread import LoopThread

Connection = asyncpg.Connection

_URL: Final = re.compile(r"([^:/]+)://([^/?#]*)([^?#]*)(?:\?([^#]*))?")
"""Scheme, servers, path and query: newer Pythons refuse to split a URL with a list of IPv6 addresses."""

CONNECT_DEADLINE_S: Final = 5.0
STATEMENT_DEADLINE_S: Final = 10.0
LOCK_DEADLINE_S: Final = 5.0
DISCONNECT_DEADLINE_S: Final = 0.5
RETRY_S: Final = 0.02
RETRY_S_MAX: Final = 0.5

LOST: Final = (
    OSError,  # TimeoutError among them
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
)

# SQLSTATEs after which a new connection may succeed: no connection, read-only (a standby that is
# promoted soon), rolled back, out of resources, no lock in time, shut down or canceled, system
# error.
_PASSING_STATES: Final = ("08", "25006", "40", "53", "55P03", "57", "58")

DRIVER: Final = "postgresql+asyncpg://"
_SERVER_SETTINGS: Final = {
    "application_name": "foretell journal",
    "default_transaction_isolation": "read committed",
    "lock_timeout": f"{LOCK_DEADLINE_S:.0f}s",
    "tcp_user_timeout": f"{STATEMENT_DEADLINE_S:.0f}s",
}

# A cluster may be configured for more than this (remote_apply), never for less.
_COMMIT_DURABLY: Final = """
SELECT set_config('synchronous_commit', 'on', false)
WHERE current_setting('synchronous_commit') IN ('off', 'local', 'remote_write')
"""


T = TypeVar("T")


async def connect(url: str) -> asyncpg.Connection:
    """Return a new connection to the server that takes writes; raises one of LOST."""
    attempts = [asyncio.ensure_future(_connect(each)) for each in servers(url)]
    chosen: asyncpg.Connection | None = None
    failures: list[BaseException] = []
    try:
        for attempt in asyncio.as_completed(attempts):
            try:
                chosen = await attempt
            except LOST as error:
                failures.append(error)
            else:
                return chosen
    finally:
        await _give_up(attempts, chosen)
    raise next((failure for failure in failures if is_passing(failure)), failures[0])


async def _give_up(
    attempts: Sequence["asyncio.Task[asyncpg.Connection]"], chosen: asyncpg.Connection | None
) -> None:
    """End every attempt except the chosen one."""
    for attempt in attempts:
        attempt.cancel()
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        if isinstance(outcome, asyncpg.Connection) and outcome is not chosen:
            outcome.terminate()


def servers(url: str) -> list[str]:
    """Return one URL for each server that a URL names, in the notation of libpq or of SQLAlchemy.

    These are `?host=a,b&port=1,2`, `?host=a:1&host=b:2` and `//user@a:1,b:2/`.
    """
    url = url.replace(DRIVER, "postgresql://", 1)
    parts = _URL.match(url)
    if parts is None:
        return [url]
    scheme, place, path, options = parts.groups()
    query = parse_qsl(options or "")
    user, at, named = place.rpartition("@")
    hosts = _values(query, "host") or named.split(",")
    ports = _values(query, "port")
    if len(hosts) == 1:
        return [url]
    rest = [(name, value) for name, value in query if name not in {"host", "port"}]
    rest = list({"target_session_attrs": "read-write", **dict(rest)}.items())
    urls = []
    for index, host in enumerate(hosts):
        port = ports[index % len(ports)] if ports else ""
        server = [("host", host), *([("port", port)] if port else [])]
        urls.append(f"{scheme}://{user}{at}{path}?{urlencode([*server, *rest])}")
    return urls


def _values(query: Sequence[tuple[str, str]], name: str) -> list[str]:
    return [each for key, value in query if key == name for each in value.split(",")]


async def _connect(url: str) -> asyncpg.Connection:
    connection = await asyncpg.connect(
        url,
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
    """Yield a connection for one piece of work."""
    connection = await connect(url)
    try:
        yield connection
    except BaseException:
        connection.terminate()
        raise
    await disconnect(connection)


def with_connection(url: str, work: Callable[[asyncpg.Connection], Coroutine[Any, Any, T]]) -> T:
    """Return the result of work on a new connection in a new thread; the calling thread waits."""

    async def do() -> T:
        async with connected(url) as connection:
            return await work(connection)

    thread = LoopThread("journal query")
    try:
        return thread.run(do())
    except LOST as error:
        raise JournalFailed(cause_of(error)) from error
    finally:
        thread.close()


async def disconnect(connection: asyncpg.Connection) -> None:
    """Close a connection, with a goodbye if the server still answers."""
    try:
        await connection.close(timeout=DISCONNECT_DEADLINE_S)
    except LOST:
        connection.terminate()


def terminate(connection: asyncpg.Connection | None) -> None:
    """Close a connection, if there is one, without a goodbye."""
    if connection is not None:
        connection.terminate()


def is_passing(error: BaseException) -> bool:
    """Return whether a new connection may succeed after this error."""
    if isinstance(error, asyncpg.PostgresError):
        return (error.sqlstate or "").startswith(_PASSING_STATES)
    return isinstance(error, LOST)


def retry_pauses_s() -> Iterator[float]:
    """Yield how long to wait before each further attempt."""
    return pauses_s(RETRY_S, RETRY_S_MAX)


def cause_of(error: BaseException) -> str:
    """Return what a log may say of a failure: no statement, no value."""
    state = getattr(error, "sqlstate", None)
    return f"{type(error).__name__}, SQLSTATE {state}" if state else type(error).__name__
