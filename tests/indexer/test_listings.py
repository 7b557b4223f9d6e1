import asyncio

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS

from foretell.indexer.listings import ListingContext, rebuild_listings, run
from foretell.indexer.rebuild import RebuildContext
from foretell.store.database import Database
from foretell.store.tables import event_totals, listing_cursors, market_totals

pytestmark = pytest.mark.anyio

SOON_S = 60.0
LOOK_S = 0.01
TABLES = (market_totals, event_totals, listing_cursors)


async def rows_of(database: Database) -> dict[str, list[tuple[object, ...]]]:
    async with database.reading() as tx:
        return {
            table.name: sorted(tuple(row) for row in await tx.all(sa.select(table)))
            for table in TABLES
        }


async def a_world(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
            await rows.match(name, 4, NOW_MS)


async def test_a_rebuild_computes_all_totals_again(database: Database) -> None:
    await a_world(database)
    await keep_listings(database)
    before = await rows_of(database)
    async with database.writing() as tx:
        await tx.execute(market_totals.update().values(day_units=99))
        await tx.execute(event_totals.delete())
        orphan = (await tx.all(sa.select(market_totals)))[0]._asdict()
        await tx.execute(market_totals.insert().values({**orphan, "market_id": 1_000}))
    assert await rebuild_listings(RebuildContext(database, lambda: NOW_MS)) == 2
    assert await rows_of(database) == before
    assert [len(rows) for rows in before.values()] == [2, 2, 1]


async def test_the_loop_keeps_the_totals_until_it_is_cancelled(database: Database) -> None:
    await a_world(database)
    running = asyncio.create_task(run(ListingContext(database, lambda: NOW_MS)))
    async with asyncio.timeout(SOON_S):
        while not (await rows_of(database))["listing_cursors"]:  # noqa: ASYNC110 - publishes no event
            await asyncio.sleep(LOOK_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert len((await rows_of(database))["event_totals"]) == 2
