"""P1: slow reads of one stranger, and what everybody else does meanwhile; on SQLite and on PostgreSQL.

The wallet that is read has so many positions that no read of it ends in time.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from tests.rigs.applications import an_app
from tests.rigs.postgres import PostgresServer
from tests.rigs.trading import BLOBS, TradingRig, a_rig_on
from tests.rigs.values import NOW_S, a_buy, a_word, an_address, an_open_market

from foretell.data.context import DataContext
from foretell.data.routes import build_app
from foretell.store.database import Database
from foretell.store.read_places import PublicReadLimits, WaitBounds
from foretell.store.tables import conditions, positions

pytestmark = pytest.mark.anyio

CONDITIONS = 30_000
SLOW_READS = 50
STRANGER, CLIENT = "10.0.0.1", "10.0.0.2"
WHALE, SMALL = an_address("whale"), an_address("small")
LIMITS = PublicReadLimits(read_s=0.15, ranking_s=0.15, bounds=WaitBounds(wait_s=1.0))
SLOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/positions", {"user": WHALE, "sortBy": "CURRENT"}),
    ("/value", {"user": WHALE}),
    ("/v1/leaderboard", {}),
    ("/v1/leaderboard", {"timePeriod": "ALL", "user": WHALE}),
    ("/closed-positions", {"user": WHALE, "sortBy": "TITLE"}),
)
REFUSED = {(429, "too_many_requests"), (503, "read_too_slow"), (503, "reads_busy")}


class Exchange(NamedTuple):
    """Trading, and the data API of the same database for two addresses."""

    rig: TradingRig
    stranger: httpx.AsyncClient
    client: httpx.AsyncClient


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        template: Path = request.getfixturevalue("empty_database")
        return f"sqlite+aiosqlite:///{shutil.copy(template, tmp_path / 'foretell.db')}"
    server: PostgresServer = request.getfixturevalue("postgres")
    server.empty_database()
    return server.database_url


@pytest.fixture
async def exchange(database_url: str, tmp_path: Path) -> AsyncIterator[Exchange]:
    async with (
        Database(database_url, LIMITS) as database,
        a_rig_on(tmp_path / "journal", database) as rig,
    ):
        await fill(database)
        await rig.open("market", "alice")
        app = an_app(build_app, DataContext(database, BLOBS, rig.clock.now_ms))
        async with client_at(app, STRANGER) as stranger, client_at(app, CLIENT) as client:
            yield Exchange(rig, stranger, client)


def client_at(app: object, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))  # type: ignore[arg-type]  # Litestar's own ASGI types
    return httpx.AsyncClient(transport=transport, base_url="http://data.test", timeout=30)


async def fill(database: Database) -> None:
    """Give the whale both tokens of many conditions, and another wallet one of them."""
    words = [a_word(f"condition {number}") for number in range(CONDITIONS)]
    known = [
        (9, number, 0, word, WHALE, word, f"{number}1", f"{number}2")
        for number, word in enumerate(words)
    ]
    held = [
        (wallet, f"{number}{side}", words[number], 10**7 + number, 4, 5, 4, 0, NOW_S, 9)
        for wallet, count in ((WHALE, CONDITIONS), (SMALL, 1))
        for number in range(count)
        for side in "12"
    ]
    async with database.writing() as tx:
        await tx.insert_rows(conditions, known)
        await tx.insert_rows(positions, held)


async def test_p1_slow_reads_of_one_address_stop_nobody_else(exchange: Exchange) -> None:
    rig, stranger, client = exchange
    alice = await rig.trader("alice")
    slow = [
        asyncio.create_task(stranger.get(path, params=query))
        for path, query in SLOW * (SLOW_READS // len(SLOW))
    ]
    await asyncio.sleep(0.05)
    market = an_open_market("market")
    for salt in ("1", "2", "3"):
        shown = await client.get("/positions", params={"user": SMALL})
        assert (shown.status_code, len(shown.json())) == (200, 2)
        placed = await alice.placed(a_buy("alice", salt=salt))
        book = await rig.client.get("/book", params={"token_id": market.token_yes})
        assert book.status_code == 200
        canceled = await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
        assert canceled.json()["canceled"] == [placed["orderID"]]
    assert sum(not task.done() for task in slow) > SLOW_READS // 2
    answers = await asyncio.gather(*slow)
    refused = [answer for answer in answers if answer.status_code != 200]
    seen = {(answer.status_code, answer.json()["error"].partition(":")[0]) for answer in refused}
    assert {(503, "read_too_slow"), (429, "too_many_requests")} <= seen <= REFUSED
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
