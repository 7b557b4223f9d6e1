"""Fixtures of projections: each database in turn, and trading that writes to it."""

from collections.abc import AsyncIterator

import pytest
from tests.rigs.builders.decided_trading import Trading

from foretell.store.database import Database


@pytest.fixture
async def database(each_database_url: str) -> AsyncIterator[Database]:
    async with Database(each_database_url) as database:
        yield database


@pytest.fixture
async def trading(database: Database) -> Trading:
    """Trading in one market, whose people have funds."""
    begun = Trading(database)
    await begun.begin()
    return begun
