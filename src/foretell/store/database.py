"""The database connection, and all differences between SQLite and PostgreSQL.

SQLite serves one process and the child that writes its tables: one connection of each writes, some
read, and every commit is synced. PostgreSQL serves several. A reader sees one instant of the whole
database; a writer announces a topic, and the watches on it wake after the commit, with SQLite those of
its own process.
"""

import contextlib
from collections.abc import AsyncIterator, Sequence
from functools import lru_cache
from typing import Any, Final, Self, overload

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from foretell.domain.errors.storage import StoreUnavailable
from foretell.runtime.watch import Watch
from foretell.runtime.worker import Wait
from foretell.store.postgres_notify import Listener
from foretell.store.topics import Topics

READERS_MAX: Final = 4
POSTGRES_CONNECTIONS_MAX: Final = 10
BUSY_TIMEOUT_MS: Final = 10_000
ROWS_PER_STATEMENT_MAX: Final = 500
STATEMENTS_KEPT_MAX: Final = 64

# PostgreSQL: no connection, no access, no such database, rolled back, out of resources, shut down.
_UNAVAILABLE_STATES: Final = ("08", "28", "3D", "40", "53", "57", "58")

CHECKPOINT_PAGES: Final = 8_000
"""Pages in SQLite's log before they are copied to the file: most are changed again until then."""
WRITER_CACHE_KIB: Final = 32 * 1024
"""Memory cache of SQLite's writer: keys are hashes, so inserts touch pages all over the file."""

_SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
)


class Transaction:
    """One database transaction; the store's modules take it as their first argument."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection
        self.announced: dict[str, None] = {}

    @property
    def dialect(self) -> str:
        """`sqlite` or `postgresql`."""
        return self._connection.dialect.name

    @overload
    async def execute(self, statement: sa.Executable) -> int: ...

    @overload
    async def execute(self, statement: sa.Executable, rows: Sequence[dict[str, Any]]) -> None: ...

    async def execute(
        self, statement: sa.Executable, rows: Sequence[dict[str, Any]] | None = None
    ) -> int | None:
        """Run a statement and return how many rows it changed; with `rows`, run it for each of them.

        With `rows` it returns None: PostgreSQL's driver does not count changes over many rows.
        """
        if rows is None:
            return (await self._connection.execute(statement)).rowcount
        for start in range(0, len(rows), ROWS_PER_STATEMENT_MAX):
            part = list(rows[start : start + ROWS_PER_STATEMENT_MAX])
            await self._connection.execute(statement, part)
        return None

    async def execute_rows(self, statement: sa.Executable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement for each row, with the values passed to the driver unconverted.

        A row has its values in the order in which the statement names them. For many rows this
        costs a tenth of `execute`.
        """
        if rows:
            sql = _sql_of(statement, self._connection.dialect)
            await self._connection.exec_driver_sql(sql, list(rows))

    async def insert_rows(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with a value for each column, in the table's order, unconverted."""
        await self.execute_rows(_insertion(table), rows)

    async def upsert_rows(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert such rows; each replaces the row with the same key."""
        is_sqlite = self.dialect == "sqlite"
        await self.execute_rows(_upsert_statement(table, is_sqlite=is_sqlite), rows)

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        """Return every row of a query."""
        return (await self._connection.execute(statement)).all()

    async def first(self, statement: sa.Executable) -> sa.Row[Any] | None:
        """Return the first row of a query, if there is one."""
        return (await self._connection.execute(statement)).first()

    async def scalar(self, statement: sa.Executable) -> Any:
        """Return the first column of the first row of a query, or None."""
        return (await self._connection.execute(statement)).scalar()

    async def announce(self, topic: str) -> None:
        """Wake the watches on the topic once this transaction has committed."""
        if topic not in self.announced:
            self.announced[topic] = None
            if self.dialect == "postgresql":
                await self._connection.execute(sa.select(sa.func.pg_notify(topic, "")))


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _sql_of(statement: sa.Executable, dialect: sa.Dialect) -> str:
    assert isinstance(statement, sa.ClauseElement)
    return str(statement.compile(dialect=dialect))


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _insertion(table: sa.Table) -> sa.Insert:
    return table.insert()


@lru_cache(maxsize=STATEMENTS_KEPT_MAX)
def _upsert_statement(table: sa.Table, *, is_sqlite: bool) -> sa.Insert:
    new = sqlite.insert(table) if is_sqlite else postgresql.insert(table)
    key = table.primary_key.columns
    changed = {
        column.name: new.excluded[column.name] for column in table.c if not column.primary_key
    }
    return new.on_conflict_do_update(index_elements=list(key), set_=changed)


class Database:
    """An open database."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        self._writers = _open_engine(self._url, is_writer=True)
        self._readers = (
            _open_engine(self._url, is_writer=False) if self.is_sqlite else self._writers
        )
        self.topics = Topics()
        self._listener = None if self.is_sqlite else Listener(self._url, self.topics)

    @property
    def url(self) -> str:
        """The URL with its password: for a child process, through a pipe, never for a log."""
        return self._url.render_as_string(hide_password=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every connection."""
        if self._listener is not None:
            await self._listener.close()
        await self._writers.dispose()
        await self._readers.dispose()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        """Open a transaction that commits when the block ends, and is rolled back when it raises."""
        async with _reported(), self._writers.begin() as connection:
            tx = Transaction(connection)
            yield tx
        if self.is_sqlite:
            self.topics.announce(tx.announced)

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """Open a transaction that sees one instant of the database and changes nothing."""
        async with _reported(), self._readers.connect() as connection:
            if not self.is_sqlite:
                await connection.execution_options(isolation_level="REPEATABLE READ")
            async with connection.begin():
                yield Transaction(connection)

    async def watch(self, *topics: str) -> Watch:
        """Return a watch on topics; it wakes after commits that announced one of them."""
        if self._listener is not None:
            await self._listener.listen(topics)
        return self.topics.watch(topics)

    async def watching(self, *topics: str) -> Wait:
        """Return the wait of such a watch, as workers need it."""
        return (await self.watch(*topics)).wait

    async def run_sync(self, work: Any) -> None:
        """Run synchronous work, such as a migration, on a connection of its own."""
        async with _reported(), self._writers.connect() as connection:
            await connection.run_sync(work)
            await connection.commit()


@contextlib.asynccontextmanager
async def _reported() -> AsyncIterator[None]:
    try:
        yield
    except (sa.exc.OperationalError, sa.exc.InterfaceError, sa.exc.TimeoutError, OSError) as error:
        raise StoreUnavailable(type(error).__name__) from error
    except sa.exc.DBAPIError as error:
        state = str(getattr(error.orig, "sqlstate", None) or "")
        if isinstance(error, sa.exc.InternalError) and not state:
            # asyncpg raises an internal error when the server closes just as a statement begins.
            raise StoreUnavailable(type(error).__name__) from error
        if not state.startswith(_UNAVAILABLE_STATES):
            raise
        raise StoreUnavailable(f"SQLSTATE {state}") from error


def _open_engine(url: sa.URL, *, is_writer: bool) -> AsyncEngine:
    if url.get_backend_name() != "sqlite":
        return create_async_engine(url, pool_size=POSTGRES_CONNECTIONS_MAX, pool_pre_ping=True)
    engine = create_async_engine(
        url,
        pool_size=1 if is_writer else READERS_MAX,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_MS / 1000,
    )
    begin = "BEGIN IMMEDIATE" if is_writer else "BEGIN"

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in _SQLITE_PRAGMAS:
            cursor.execute(pragma)
        if is_writer:
            cursor.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}")
            cursor.execute(f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}")
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "invalidate")
    def _undo(
        connection: DBAPIConnection, _: ConnectionPoolEntry, __: BaseException | None
    ) -> None:
        # Closed while a cursor is still referred to, SQLite would keep its lock.
        connection.rollback()

    @sa.event.listens_for(engine.sync_engine, "begin")
    def _begin(connection: sa.Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine
