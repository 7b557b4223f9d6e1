"""The lock under which one process at a time rebuilds sums; it ends with the process, however that ends.

PostgreSQL has locks of a session: its connection must not go through a pooler of transactions, which would give it to
others. Beside a file of SQLite is another one, which is locked.
"""

import contextlib
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from foretell.domain.errors.storage import RebuildRunning, StoreUnavailable
from foretell.runtime.files import OWNER_ONLY
from foretell.store.database import Database

FILE: Final = "rebuild.lock"
_LOCK: Final = 0x73756D73


@contextlib.asynccontextmanager
async def rebuild_lock(database: Database) -> AsyncIterator[None]:
    """Hold the lock.

    Raises RebuildRunning when another process has it.
    """
    url = sa.make_url(database.url)
    if not database.is_sqlite:
        async with _session_lock(url):
            yield
        return
    assert url.database is not None
    with _file_lock(Path(url.database).with_name(FILE)):
        yield


@contextlib.contextmanager
def _file_lock(path: Path) -> Iterator[None]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RebuildRunning from None
        yield
    finally:
        os.close(handle)


@contextlib.asynccontextmanager
async def _session_lock(url: sa.URL) -> AsyncIterator[None]:
    engine = create_async_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    try:
        connection = await engine.connect()
    except (OSError, sa.exc.DBAPIError) as error:
        raise StoreUnavailable(type(error).__name__) from error
    try:
        if not await connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_LOCK))):
            raise RebuildRunning
        yield
    finally:
        await connection.close()
        await engine.dispose()
