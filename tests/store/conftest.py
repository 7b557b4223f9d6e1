"""Each store test runs twice: on SQLite, and on a real PostgreSQL."""

from collections.abc import AsyncIterator

import pytest

from foretell.store.database import Database


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database
