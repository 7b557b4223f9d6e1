"""The trading product, fresh for each test; its empty database is made once and copied."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.trading.venue import Trader, Venue, a_venue


@pytest.fixture
def database_file(empty_database: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(empty_database, tmp_path / "foretell.db"))


@pytest.fixture
async def venue(database_file: Path, tmp_path: Path) -> AsyncIterator[Venue]:
    """The product with one open market, and funds for alice, bob and carol."""
    async with a_venue(tmp_path / "journal", database_file) as venue:
        await venue.open("market", "alice", "bob", "carol")
        yield venue


@pytest.fixture
async def alice(venue: Venue) -> Trader:
    return await venue.trader("alice")


@pytest.fixture
async def bob(venue: Venue) -> Trader:
    return await venue.trader("bob")
