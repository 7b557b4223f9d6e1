"""Each store test runs twice: on SQLite, and on a real PostgreSQL.

Every test gets a database with today's schema and no rows: on SQLite a copy of a file, on PostgreSQL,
where creating a database takes a second, an emptied one.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.rigs.postgres import PostgresServer

from foretell.store.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty database with today's schema."""
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("empty_database")
        return f"sqlite+aiosqlite:///{shutil.copy(template, tmp_path / 'foretell.db')}"
    server: PostgresServer = request.getfixturevalue("postgres")
    server.empty_database()
    return server.database_url


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    async with Database(database_url) as database:
        yield database
