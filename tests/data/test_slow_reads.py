"""P1: slow reads of strangers, and what everybody else does meanwhile; on SQLite and on PostgreSQL.

The tables that the stranger reads are views of two billion rows here, so a read of all of them never ends in time.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from tests.rigs.applications import an_app
from tests.rigs.read_apis import a_data_context
from tests.rigs.trading import BLOBS, TradingRig, a_rig_on
from tests.rigs.values import NOW_S, a_buy, an_address, an_open_market
from tests.store.endless_tables import endless

from foretell.data.routes import build_app
from foretell.store.database import Database
from foretell.store.public_reads.places import PublicReadLimits, WaitBounds
from foretell.store.tables import activities, positions, standings, trading_totals

pytestmark = pytest.mark.anyio

SLOW_READS = 50
STRANGERS, CLIENT = ("10.0.0.1", "10.0.0.3"), "10.0.0.2"
WALLET = an_address("alice")
LIMITS = PublicReadLimits(
    read_s=2.0, sum_s=1.0, key_s=60.0, write_s=60.0, bounds=WaitBounds(wait_s=5.0)
)
"""A read that ends does so within two seconds, however busy the machine is."""
SLOW: tuple[tuple[str, dict[str, str]], ...] = (
    ("/traded", {"user": WALLET}),
    ("/trades", {"user": WALLET}),
    ("/activity", {"user": WALLET}),
    ("/v1/leaderboard", {}),
    ("/v1/leaderboard", {"timePeriod": "ALL", "user": WALLET}),
)
RUN_INTO_DEADLINE, EXCESS = (503, "read_too_slow"), (429, "too_many_requests")
ALL_PLACES_TAKEN = (503, "reads_busy")


class Exchange(NamedTuple):
    """Trading, and the data API of the same database for each address."""

    rig: TradingRig
    strangers: tuple[httpx.AsyncClient, ...]
    client: httpx.AsyncClient


@pytest.fixture
async def exchange(each_database_url: str, tmp_path: Path) -> AsyncIterator[Exchange]:
    async with (
        Database(each_database_url, LIMITS) as database,
        a_rig_on(tmp_path / "journal", database) as rig,
    ):
        await rig.open("market", "alice")
        await hold_both_tokens(database)
        app = an_app(build_app, a_data_context(database, BLOBS, rig.clock.now_ms))
        async with (
            endless(database, activities, trading_totals, standings),
            contextlib.AsyncExitStack() as stack,
        ):
            strangers, client = [
                tuple([await stack.enter_async_context(client_at(app, each)) for each in those])
                for those in (STRANGERS, (CLIENT,))
            ]
            yield Exchange(rig, strangers, *client)


def client_at(app: object, address: str) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, client=(address, 1))  # type: ignore[arg-type]  # Litestar's own ASGI types
    return httpx.AsyncClient(transport=transport, base_url="http://data.test", timeout=60)


async def hold_both_tokens(database: Database) -> None:
    market = an_open_market("market")
    held = [
        (WALLET, token, market.condition_id, 10**7, 4, 5, 4, 0, NOW_S, 1)
        for token in (market.token_yes, market.token_no)
    ]
    async with database.writing() as tx:
        await tx.insert_rows(positions, held)


@pytest.mark.parametrize("addresses", [1, 2])
async def test_p1_slow_reads_of_strangers_stop_nobody_else(
    exchange: Exchange, addresses: int
) -> None:
    """Fifty reads of strangers that never end: some run into the deadline, the others get no place."""
    rig, strangers, client = exchange
    alice, market = await rig.trader("alice"), an_open_market("market")
    answers: list[httpx.Response] = []
    is_over = asyncio.Event()

    async def read_on(stranger: httpx.AsyncClient, path: str, query: dict[str, str]) -> None:
        while not is_over.is_set():
            answers.append(await stranger.get(path, params=query))

    reading = itertools.cycle(strangers[:addresses])
    slow = [
        asyncio.create_task(read_on(next(reading), *each))
        for each in itertools.islice(itertools.cycle(SLOW), SLOW_READS)
    ]
    await asyncio.sleep(LIMITS.read_s / 2)
    for salt in ("1", "2", "3"):
        shown = await client.get("/positions", params={"user": WALLET})
        assert (shown.status_code, len(shown.json())) == (200, 2)
        placed = await alice.placed(a_buy("alice", salt=salt))
        book = await rig.client.get("/book", params={"token_id": market.token_yes})
        assert (book.status_code, len(book.json()["bids"])) == (200, 1)
        canceled = await alice.send("DELETE", "/order", {"orderID": placed["orderID"]})
        assert canceled.json()["canceled"] == [placed["orderID"]]
    is_over.set()
    await asyncio.gather(*slow)
    seen = {(answer.status_code, answer.json()["error"].partition(":")[0]) for answer in answers}
    assert {RUN_INTO_DEADLINE, EXCESS} <= seen <= {RUN_INTO_DEADLINE, EXCESS, ALL_PLACES_TAKEN}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in answers)
