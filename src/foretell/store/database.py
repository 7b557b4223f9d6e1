"""The database connection, and all differences between SQLite and PostgreSQL.

SQLite serves one process and the child that writes its tables: one connection of each writes, some
read, and every commit is synced. PostgreSQL serves several. A reader sees one instant of the whole
database; a writer announces a topic, and the watches on it wake after the commit, with SQLite those of
its own process. Reads of public routes have connections of their own and places for each client, writes of
requests places for each client. Every transaction of a request has a deadline; those of loops have none.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, Self, overload

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.pool import ConnectionPoolEntry

from foretell.runtime.watch import Watch
from foretell.runtime.worker import Wait
from foretell.store.deadlines import Deadline, ended_at, limit_statements, within, write_too_slow
from foretell.store.failures import reported
from foretell.store.page_cost import with_cheap_pages
from foretell.store.postgres_notify import Listener
from foretell.store.public_reads.places import (
    PublicReadLimits,
    ReadKind,
    ReadPlaces,
    client_name,
    in_request,
)
from foretell.store.public_reads.rests import ReadRests
from foretell.store.sqlite.cursor import open_connection
from foretell.store.sqlite.memory import measure_sqlite
from foretell.store.sqlite.transactions import BUSY_TIMEOUT_MS, begin_reading, begin_writing
from foretell.store.topics import Topics
from foretell.store.write_places import POSTGRES_PLACES, SQLITE_PLACES, WritePlaces

READERS_MAX: Final = 4
POSTGRES_CONNECTIONS_MAX: Final = 20
POSTGRES_CONNECTIONS_KEPT: Final = 12
"""Connections that stay open: requests have places for ten, and loops then do not open one for each transaction."""
ROWS_PER_STATEMENT_MAX: Final = 500
STATEMENTS_KEPT_MAX: Final = 64

CHECKPOINT_PAGES: Final = 32_000
"""Pages in SQLite's log before they are copied to the file, 128 MB: most are changed again until then."""
WRITER_CACHE_KIB: Final = 32 * 1024
"""Memory cache of SQLite's writer: keys are hashes, so inserts touch pages all over the file."""
READER_CACHE_KIB: Final = 4 * 1024
"""Memory cache of each of SQLite's readers: what is read of 1,000 positions does not fit in its default, 2 MB."""

_SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA foreign_keys=ON",
    f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}",
    f"PRAGMA wal_autocheckpoint={CHECKPOINT_PAGES}",
)


class Transaction:
    """One database transaction; the store's modules take it as their first argument."""

    def __init__(self, connection: AsyncConnection, deadline: Deadline | None = None) -> None:
        self._connection = connection
        self._deadline = deadline
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
            await self._keep_deadline()
            return (await self._connection.execute(statement)).rowcount
        for start in range(0, len(rows), ROWS_PER_STATEMENT_MAX):
            await self._keep_deadline()
            part = list(rows[start : start + ROWS_PER_STATEMENT_MAX])
            await self._connection.execute(statement, part)
        return None

    async def execute_rows(self, statement: sa.Executable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Run a statement for each row, with the values passed to the driver unconverted.

        A row has its values in the order in which the statement names them. For many rows this
        costs a tenth of `execute`.
        """
        if rows:
            await self._keep_deadline()
            sql = _sql_of(statement, self._connection.dialect)
            await self._connection.exec_driver_sql(sql, list(rows))

    async def insert_rows(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows with a value for each column, in the table's order, unconverted."""
        await self.execute_rows(_insertion(table), rows)

    async def upsert_rows(self, table: sa.Table, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert such rows; each replaces the row with the same key."""
        is_sqlite = self.dialect == "sqlite"
        await self.execute_rows(_upsert_statement(table, is_sqlite=is_sqlite), rows)

    async def insert_new(
        self, table: sa.Table, *, by: sa.Column[Any] | None = None, **values: object
    ) -> bool:
        """Insert a row, or return False where one with its keys is there; `by` is the one key that counts."""
        dialect = sqlite if self.dialect == "sqlite" else postgresql
        new = dialect.insert(table).values(**values)
        keys = None if by is None else [by]
        return await self.execute(new.on_conflict_do_nothing(index_elements=keys)) == 1

    async def all(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> Sequence[sa.Row[Any]]:
        """Return every row of a query, with values for its parameters.

        A statement that is built once and gets its values here costs less than one that is built with them.
        """
        return (await self._query(statement, values)).all()

    async def first(self, statement: sa.Executable) -> sa.Row[Any] | None:
        """Return the first row of a query, if there is one."""
        return (await self._query(statement)).first()

    async def scalar(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the first column of the first row of a query, or None."""
        return (await self._query(statement, values)).scalar()

    async def _query(
        self, statement: sa.Executable, values: Mapping[str, Any] | None = None
    ) -> sa.CursorResult[Any]:
        await self._keep_deadline()
        return await self._connection.execute(statement, values)

    async def _keep_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.check()
            if self.dialect == "postgresql":
                await limit_statements(self._deadline, self._connection)

    async def announce(self, topic: str) -> None:
        """Wake the watches on the topic once this transaction has committed."""
        if topic not in self.announced:
            await self._keep_deadline()
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


class _PublicReads(NamedTuple):
    places: ReadPlaces
    deadline_s: float


class SqliteCaches(NamedTuple):
    """The memory in which each connection to SQLite keeps pages, until it closes."""

    writer_kib: int = WRITER_CACHE_KIB
    reader_kib: int = READER_CACHE_KIB


SMALL_CACHES: Final = SqliteCaches(1024, 1024)
"""For a process that reads and writes few rows at a time."""


class Database:
    """An open database."""

    def __init__(
        self,
        url: str,
        public: PublicReadLimits | None = None,
        caches: SqliteCaches | None = None,
    ) -> None:
        self._url = sa.make_url(url)
        self.is_sqlite = self._url.get_backend_name() == "sqlite"
        kept = SqliteCaches() if caches is None else caches
        self._writers = _open_engine(self._url, kept.writer_kib, is_writer=True)
        self._readers = (
            _open_engine(self._url, kept.reader_kib, is_writer=False)
            if self.is_sqlite
            else self._writers
        )
        self._limits = limits = PublicReadLimits() if public is None else public
        self._public_readers = _open_engine(
            self._url, kept.reader_kib, is_writer=False, connections_max=limits.connections
        )
        self._writes = WritePlaces(SQLITE_PLACES if self.is_sqlite else POSTGRES_PLACES)
        self.read_rests = ReadRests()
        self._public = {
            ReadKind.LISTING: _PublicReads(
                ReadPlaces(limits.places, limits.places_per_client, limits.bounds, self.read_rests),
                limits.read_s,
            ),
            ReadKind.OWN: _PublicReads(
                ReadPlaces(limits.own, limits.own_per_client, limits.bounds), limits.read_s
            ),
            ReadKind.KEY: _PublicReads(
                ReadPlaces(limits.keys, limits.keys_per_client, limits.key_bounds), limits.key_s
            ),
            ReadKind.SUM: _PublicReads(ReadPlaces(limits.sums, 1, limits.bounds), limits.sum_s),
            ReadKind.REPORT: _PublicReads(
                ReadPlaces(limits.reports, 1, limits.bounds), limits.sum_s
            ),
        }
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
        await self._public_readers.dispose()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        """Open a transaction that commits when the block ends, and is rolled back when it raises.

        One of a request waits for a place of its client first (`write_places`), and is refused as StoreUnavailable
        at its deadline. It wakes the watches also when the commit does not end in time: it may take effect later.
        """
        announced: Mapping[str, None] = {}
        async with self._writes.taken():
            deadline = Deadline(self._limits.write_s, write_too_slow) if in_request() else None
            try:
                async with (
                    within(deadline),
                    reported(),
                    self._writers.begin() as connection,
                    ended_at(deadline, connection),
                ):
                    tx = Transaction(connection, deadline)
                    yield tx
                    announced = tx.announced
            finally:
                if self.is_sqlite:
                    self.topics.announce(announced)

    @contextlib.asynccontextmanager
    async def reading(self) -> AsyncIterator[Transaction]:
        """Open a transaction that sees one instant of the database and changes nothing.

        One of a request is ended at the deadline of public reads. It has no place of its own, so what
        strangers can ask for needs `public_reading`.
        """
        deadline = Deadline(self._limits.read_s) if in_request() else None
        async with (
            within(deadline),
            _reading(self._readers) as connection,
            ended_at(deadline, connection),
        ):
            yield Transaction(connection, deadline)

    @contextlib.asynccontextmanager
    async def public_reading(self, kind: ReadKind = ReadKind.LISTING) -> AsyncIterator[Transaction]:
        """Open such a transaction for a route that anyone may call.

        It waits for a place of the client (`client_name`), and is ended at its deadline. It has a
        connection apart, so that no number of such reads delays what uses `reading` and `writing`.
        """
        places, duration_s = self._public[kind]
        client = client_name.get()
        await places.take(client)
        deadline = Deadline(duration_s)
        try:
            async with (
                within(deadline),
                _reading(self._public_readers) as connection,
                ended_at(deadline, connection),
            ):
                yield Transaction(connection, deadline)
        finally:
            places.release(client)

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
        async with reported(), self._writers.connect() as connection:
            await connection.run_sync(work)
            await connection.commit()


def shown_url(url: str) -> str:
    """Return a database's URL for a message: without its password, and without options that may have one."""
    return sa.make_url(url).set(query={}).render_as_string(hide_password=True)


@contextlib.asynccontextmanager
async def _reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    async with reported(), engine.connect() as connection:
        if connection.dialect.name == "postgresql":
            await connection.execution_options(isolation_level="REPEATABLE READ")
        async with connection.begin():
            yield connection


def _open_engine(
    url: sa.URL, cache_kib: int, *, is_writer: bool, connections_max: int | None = None
) -> AsyncEngine:
    """Return an engine whose pool opens connections when they are needed."""
    if url.get_backend_name() != "sqlite":
        overflow = POSTGRES_CONNECTIONS_MAX - POSTGRES_CONNECTIONS_KEPT
        bounds = {"pool_size": POSTGRES_CONNECTIONS_KEPT, "max_overflow": overflow}
        if connections_max is not None:
            bounds = {"pool_size": connections_max, "max_overflow": 0}
        return with_cheap_pages(create_async_engine(url, pool_pre_ping=True, **bounds))
    measure_sqlite()
    engine = create_async_engine(
        url,
        pool_size=1 if is_writer else connections_max or READERS_MAX,
        max_overflow=0,
        pool_timeout=BUSY_TIMEOUT_MS / 1000,
        pool_use_lifo=True,  # few connections then have pages and prepared statements in memory
    )

    sa.event.listen(engine.sync_engine, "do_connect", open_connection)

    @sa.event.listens_for(engine.sync_engine, "connect")
    def _configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        for pragma in (*_SQLITE_PRAGMAS, f"PRAGMA cache_size=-{cache_kib}"):
            cursor.execute(pragma)
        if is_writer:
            cursor.execute("PRAGMA busy_timeout=0")  # `begin_writing` waits
        cursor.close()

    @sa.event.listens_for(engine.sync_engine, "invalidate")
    def _undo(
        connection: DBAPIConnection, _: ConnectionPoolEntry, __: BaseException | None
    ) -> None:
        # Closed while a cursor is still referred to, SQLite would keep its lock.
        connection.rollback()

    sa.event.listen(engine.sync_engine, "begin", begin_writing if is_writer else begin_reading)
    return engine
