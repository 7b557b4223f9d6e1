"""A sandbox's trading API on loopback, with its own clock, and a client of each family."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ecosystem.clients import NAMES, Client, Family, a_client
from tests.trading.serving import serving
from tests.trading.venue import Clock, Venue, a_venue_on
from typing_extensions import override

from foretell.store.database import Database


class RealClock(Clock):
    """The clock that the clients sign with."""

    @override
    def now_ms(self) -> int:
        return time.time_ns() // 10**6


@pytest.fixture
async def venue(fresh_database: Database, tmp_path: Path) -> AsyncIterator[Venue]:
    async with a_venue_on(tmp_path / "journal", fresh_database, RealClock()) as venue:
        await venue.open("market", "alice", "bob")
        yield venue


@pytest.fixture
async def host(venue: Venue) -> AsyncIterator[str]:
    async with serving(venue.app) as host:
        yield host


@pytest.fixture(scope="session")
async def families() -> AsyncIterator[list[Family]]:
    """Every family, its process started when it is first used."""
    families = [Family(name) for name in NAMES]
    yield families
    for family in families:
        await family.stop()


@pytest.fixture(params=range(len(NAMES)), ids=NAMES)
def family(request: pytest.FixtureRequest, families: list[Family]) -> Family:
    position: int = request.param
    return families[position]


@pytest.fixture
async def alice(host: str, family: Family) -> AsyncIterator[Client]:
    async with a_client(family, host, "alice") as client:
        await client.log_in()
        yield client
