"""A sandbox's trading API on loopback, with its own clock, and a client of each family."""

import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ecosystem.clients import NAMES, Client, a_client
from tests.trading.serving import serving
from tests.trading.venue import Clock, Venue, a_venue
from typing_extensions import override

from foretell.store.database import Database
from foretell.store.migrations import upgrade


class RealClock(Clock):
    """The clock that the clients sign with."""

    @override
    def now_ms(self) -> int:
        return time.time_ns() // 10**6


@pytest.fixture(scope="session")
async def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "foretell.db"
    async with Database(f"sqlite+aiosqlite:///{path}") as database:
        await upgrade(database)
    return path


@pytest.fixture
async def venue(empty_database: Path, tmp_path: Path) -> AsyncIterator[Venue]:
    database_file = Path(shutil.copy(empty_database, tmp_path / "foretell.db"))
    async with a_venue(tmp_path / "journal", database_file, RealClock()) as venue:
        await venue.open("market", "alice", "bob")
        yield venue


@pytest.fixture
async def host(venue: Venue) -> AsyncIterator[str]:
    async with serving(venue.app) as host:
        yield host


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    """The family of the client."""
    name: str = request.param
    return name


@pytest.fixture
async def alice(host: str, name: str) -> AsyncIterator[Client]:
    async with a_client(name, host, "alice") as client:
        await client.log_in()
        yield client
