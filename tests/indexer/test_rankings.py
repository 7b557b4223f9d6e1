"""The sums of the index, kept by rounds."""

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN
from tests.store.live_sums import Dump, dump_sums, empty_rankings, rebuild

from foretell.store.database import Database
from foretell.store.tables import odd_trading_totals, standings, traded_markets, trading_totals

pytestmark = pytest.mark.anyio


async def some_sums(database: Database) -> Dump:
    """Write trades and positions of three wallets, and return the sums that are kept of them."""
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.quote("rain", 60, 62)
        for who, units in (("ann", 3), ("bob", 4), ("ann", 5)):
            await rows.buy(who, "rain", 2 * units * TOKEN, units * TOKEN)
            await rows.hold(who, "rain", units * TOKEN, TOKEN, realized_units=units)
        await rows.hold("carol", "rain", 0, 0, realized_units=7)
    await keep_rankings(database)
    kept = await dump_sums(database)
    assert all(kept.values())
    return kept


async def spoil(database: Database) -> Dump:
    async with database.writing() as tx:
        await tx.execute(standings.update().values(gain_units=1))
        await tx.execute(trading_totals.update().values(trades=100))
        await tx.execute(traded_markets.delete())
    return await dump_sums(database)


async def test_sums_are_rebuilt_while_readers_see_those_from_before(database: Database) -> None:
    kept = await some_sums(database)
    spoiled = await spoil(database)
    assert spoiled != kept
    async with database.reading() as reading:
        await reading.scalar(sa.select(sa.func.count()).select_from(standings))
        await rebuild(database, NOW_MS, 2)
        seen = sorted(tuple(row) for row in await reading.all(sa.select(standings)))
    assert seen == spoiled["standings"]
    assert await dump_sums(database) == kept


async def test_rebuilds_follow_each_other_and_leave_nothing_behind(database: Database) -> None:
    kept = await some_sums(database)
    generations = [(await rebuild(database, NOW_MS, 2)).generation for _ in range(3)]
    assert generations == [1, 2, 3]
    assert await dump_sums(database) == kept
    async with database.reading() as tx:
        assert not await tx.all(sa.select(trading_totals))
        assert await tx.all(sa.select(odd_trading_totals))
        assert len(await tx.all(sa.select(standings))) == len(kept["standings"])


async def test_rounds_keep_the_sums_that_were_rebuilt(database: Database) -> None:
    await some_sums(database)
    await rebuild(database, NOW_MS, 2)
    async with database.writing() as tx:
        await Rows(tx).hold("dora", "rain", 0, 0, realized_units=9, block_number=99)
    await keep_rankings(database)
    won = [row[-1] for row in (await dump_sums(database))["wins"] if row[0] == 0]
    assert sorted(won) == [7, 9]


async def test_a_round_of_wiped_standings_begins_with_the_first_block(database: Database) -> None:
    kept = await some_sums(database)
    await empty_rankings(database)
    await keep_rankings(database)
    assert await dump_sums(database) == kept
