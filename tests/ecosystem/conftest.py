"""A sandbox's trading API on loopback with its fast routes, and a client of each family."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.ecosystem.clients import NAMES, Client, Family, a_client
from tests.rigs.applications import serving
from tests.rigs.clock import Clock
from tests.rigs.trading import TradingRig, a_rig_on
from typing_extensions import override

from foretell.app.clock_and_ids import numbered_ids
from foretell.app.http.fast_routes import served_under
from foretell.edge.telemetry import Telemetry
from foretell.store.database import Database
from foretell.trading.routes.fast_path import fast_routes


class RealClock(Clock):
    """The clock that the clients sign with."""

    @override
    def command_time(self, at_ms: int) -> int:
        return min(at_ms, self.now_ms())

    @override
    def now_ms(self) -> int:
        return time.time_ns() // 10**6


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[TradingRig]:
    async with a_rig_on(tmp_path / "journal", fresh_database, RealClock()) as rig:
        await rig.open("market", "alice", "bob")
        yield rig


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    telemetry = Telemetry(rig.app, "trading", numbered_ids())
    served = served_under("", fast_routes(rig.context), telemetry)
    async with serving(rig.app, served) as host:
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
