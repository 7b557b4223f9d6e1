"""A new database that is deleted afterwards, and statements on it as a benchmark compares with."""

import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import create_async_engine

from foretell.store.database import Database


@contextlib.asynccontextmanager
async def scratch_store(server: str | None, name: str) -> AsyncIterator[Database]:
    """Give a new database without tables: of this name on a PostgreSQL server, or without one on SQLite."""
    if server is None:
        with tempfile.TemporaryDirectory(prefix="foretell-bench-") as folder:
            async with Database(f"sqlite+aiosqlite:///{Path(folder) / 'foretell.db'}") as database:
                yield database
        return
    url = sa.make_url(server).set(drivername="postgresql+asyncpg")
    engine = create_async_engine(url, isolation_level="AUTOCOMMIT")
    try:
        async with engine.connect() as connection:
            await connection.execute(sa.text(f"CREATE DATABASE {name}"))
            try:
                own = url.set(database=name).render_as_string(hide_password=False)
                async with Database(own) as database:
                    yield database
            finally:
                await connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
    finally:
        await engine.dispose()


async def analyze(database: Database) -> None:
    """Have PostgreSQL count what was written, as it does by itself after a while."""
    if not database.is_sqlite:
        async with database.writing() as tx:
            await tx.execute(sa.text("ANALYZE"))


async def fetch_bare(database: Database, sql: str, values: Mapping[str, str]) -> int:
    """Run a statement and return the number of its rows."""
    async with database.reading() as tx:
        return len(await tx.all(sa.text(sql).bindparams(**values)))
