"""The kept totals of markets and events equal a computation from all rows, whatever happened between two rounds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa
from tests.rigs.read_apis import keep_listings
from tests.rigs.rows import Rows, a_game_event_row, a_market_row, an_event_row
from tests.rigs.values import NOW_MS, TOKEN, a_word
from typing_extensions import override

from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.indexer.listings import rebuild_listings
from foretell.indexer.rebuild import RebuildContext
from foretell.store.database import Database, Transaction
from foretell.store.index import listing_totals
from foretell.store.index.listing_totals import (
    MarketTotals,
    load_market_totals,
    record_market_totals,
)
from foretell.store.quoted_columns import SETTLED_MS
from foretell.store.tables import event_totals, market_totals, markets, quotes, series_totals
from foretell.store.tables.listings import AMOUNTS
from foretell.store.valuation import DAY_MS, HOUR_MS, MINUTE_MS, MONTH_MS, WEEK_MS, YEAR_MS

pytestmark = pytest.mark.anyio

NAMES = ("rain", "snow", "hail")
STEPS = 30
PAUSES_MS = (0, 1, 1_500, MINUTE_MS, 59 * MINUTE_MS, HOUR_MS, DAY_MS, WEEK_MS, MONTH_MS, YEAR_MS)


class World:
    """Markets in which something happens at each step of a clock."""

    def __init__(self, tx: Transaction, seed: int, now_ms: int, first: int) -> None:
        self._tx, self._random, self._now_ms = tx, Random(seed), now_ms
        self._rows = Rows(tx, first)

    async def step(self) -> None:
        name = self._random.choice(NAMES)
        act = self._random.choice((self._trade, self._rest, self._fail, self._quote))
        await act(name)

    async def _trade(self, name: str) -> None:
        await self._rows.match(name, self._random.randrange(1, 100), self._now_ms)
        await self._touch(name, volume_units=quotes.c.volume_units + 1)

    async def _rest(self, name: str) -> None:
        side, ticks = self._random.choice(((Side.BUY, 45), (Side.SELL, 52)))
        await self._rows.rest("ann", name, side, ticks, 10 * TOKEN)
        await self._touch(name)

    async def _quote(self, name: str) -> None:
        bid = self._random.randrange(1, 50)
        await self._rows.quoted_at(name, self._now_ms // 1000, bid, bid + 2, bid + 1)
        await self._touch(name, best_bid_ticks=bid, best_ask_ticks=bid + 2)

    async def _fail(self, name: str) -> None:
        failed_at_ms = self._now_ms - self._random.choice(PAUSES_MS)
        await self._rows.match(name, 7, failed_at_ms, TradeStatus.FAILED)
        await self._change(name, failed_units=quotes.c.failed_units + 7)

    async def _touch(self, name: str, **values: Any) -> None:
        await self._change(name, updated_at_ms=self._now_ms, **values)

    async def _change(self, name: str, **values: Any) -> None:
        is_market = quotes.c.condition_id == a_word(name)
        await self._tx.execute(quotes.update().where(is_market).values(**values))


async def open_markets(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        rain, snow = a_market_row("rain"), a_market_row("snow")
        await rows.open(an_event_row("weather", rain, snow), NOW_MS)
        await rows.open_named("hail")


async def kept(database: Database) -> dict[int, MarketTotals]:
    """Return the kept totals, but for the time of the quote."""
    async with database.reading() as tx:
        found = await tx.all(sa.select(market_totals))
    return {row.market_id: MarketTotals._make(row)._replace(seen_ms=0) for row in found}


async def computed(database: Database, now_ms: int) -> dict[int, MarketTotals]:
    async with database.reading() as tx:
        found = await load_market_totals(tx, (1, 2, 3), now_ms)
    return {each.market_id: each._replace(seen_ms=0) for each in found}


async def test_the_query_of_totals_is_built_once(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finding: each round built it, every two seconds, and held up all orders for 30 ms."""
    await open_markets(database)
    before = await computed(database, NOW_MS)

    def build(*_: object) -> None:
        raise AssertionError("it is built again")

    monkeypatch.setattr(listing_totals, "listed_price_of_yes_at", build)
    assert await computed(database, NOW_MS) == before
    assert (await computed(database, NOW_MS + DAY_MS)).keys() == before.keys()


@pytest.mark.parametrize("seed", range(3))
async def test_kept_totals_equal_those_computed_from_all_rows(
    database: Database, seed: int
) -> None:
    await open_markets(database)
    rng, now_ms = Random(seed), NOW_MS
    await keep_listings(database, now_ms)
    for number in range(STEPS):
        now_ms += rng.choice(PAUSES_MS) + rng.randrange(1000)
        async with database.writing() as tx:
            if number in {5, 21}:
                name = NAMES[number % 3]
                await Rows(tx, 5_000 + number).resolve(name, 1, 3, now_ms // 1000)
            elif number % 4:
                await World(tx, seed * STEPS + number, now_ms, 100 * (number + 1)).step()
        await keep_listings(database, now_ms)
        assert await kept(database) == await computed(database, now_ms), number


async def test_an_event_has_the_sums_of_its_markets(database: Database) -> None:
    await open_markets(database)
    async with database.writing() as tx:
        rows = Rows(tx, 50)
        await rows.match("rain", 4, NOW_MS)
        for name in ("snow", "rain") * 3:
            await rows.match(name, 2**61, NOW_MS - 2 * DAY_MS)
        await rows.quote("snow", 20, 22)
    await keep_listings(database)
    async with database.reading() as tx:
        weather, hail = await tx.all(sa.select(event_totals).order_by(event_totals.c.event_id))
    assert (weather.day_units, weather.evenness) == (4, 0)
    assert weather.week_units == 2**63 - 1, "a sum is at most what a column holds"
    assert {getattr(hail, name) for name in (*AMOUNTS, "evenness")} == {0}
    assert (hail.slug, hail.title) == ("event-hail", "About hail")


async def test_two_writers_of_an_events_markets_both_count(each_database_url: str) -> None:
    """A finding: the loop and a rebuild each counted its own market, and the last one's event stayed."""
    async with Database(each_database_url) as first, Database(each_database_url) as second:
        await open_markets(first)
        await keep_listings(first)
        async with first.writing() as tx:
            for number, name in enumerate(("rain", "snow")):
                await Rows(tx, 50 + number).match(name, 4, NOW_MS)
        async with first.writing() as tx:
            await record_market_totals(tx, await load_market_totals(tx, (1,), NOW_MS))
            other = asyncio.create_task(record(second, 2))
            await asyncio.sleep(0.3)
            assert not other.done()
        await other
        async with first.reading() as tx:
            weather = await tx.first(sa.select(event_totals).order_by(event_totals.c.event_id))
    assert weather is not None
    assert weather.day_units == 8


async def test_two_writers_of_a_series_games_both_count(each_database_url: str) -> None:
    """The same finding: each read the series before the other's game was in it."""
    async with Database(each_database_url) as first, Database(each_database_url) as second:
        async with first.writing() as tx:
            rows = Rows(tx)
            for name in ("first", "second"):
                await rows.open(a_game_event_row(name), NOW_MS)
        await keep_listings(first)
        async with first.writing() as tx:
            for name in ("first", "second"):
                await Rows(tx).quote(f"{name} btts", 40, 42, 41, volume_units=4)
            condition_ids = [a_word(f"{name} btts") for name in ("first", "second")]
            found = await tx.all(
                sa.select(markets.c.market_id).where(markets.c.condition_id.in_(condition_ids))
            )
        own, others = [row.market_id for row in found]
        async with first.writing() as tx:
            await record_market_totals(tx, await load_market_totals(tx, (own,), NOW_MS))
            other = asyncio.create_task(record(second, others))
            await asyncio.sleep(0.3)
            assert not other.done()
        await other
        async with first.reading() as tx:
            assert await tx.scalar(sa.select(series_totals.c.volume_units)) == "8"


async def record(database: Database, market_id: int) -> None:
    """Store the totals of a market."""
    async with database.writing() as tx:
        await record_market_totals(tx, await load_market_totals(tx, (market_id,), NOW_MS))


async def test_a_quote_that_changes_again_in_its_millisecond_is_seen(database: Database) -> None:
    await open_markets(database)
    await keep_listings(database, NOW_MS + 1)
    async with database.writing() as tx:
        await Rows(tx, 50).match("rain", 4, NOW_MS)
    await keep_listings(database, NOW_MS + 2)
    assert (await kept(database))[1].day_units == 4


async def test_a_quiet_market_is_not_computed_again(database: Database) -> None:
    await open_markets(database)
    later_ms = NOW_MS + SETTLED_MS
    await keep_listings(database, later_ms)
    async with database.writing() as tx:
        await tx.execute(market_totals.update().values(liquidity_units=77))
    await keep_listings(database, later_ms + 1)
    assert {each.liquidity_units for each in (await kept(database)).values()} == {77}


class Between(Database):
    """The loop's database, where a rebuild goes on before the write that ends a round."""

    def __init__(self, database: Database) -> None:
        super().__init__(database.url)
        self._beside = database
        self.writes = 0

    @override
    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[Transaction]:
        self.writes += 1
        if self.writes == 2:
            await rebuild_listings(RebuildContext(self._beside, lambda: NOW_MS))
        async with super().writing() as tx:
            yield tx


async def test_a_rebuild_between_the_totals_of_a_round_and_its_time_leaves_no_point_in_a_window(
    database: Database,
) -> None:
    """It computes as of the time before: the point that has left the window is in it once more, and nothing changes since."""
    await open_markets(database)
    async with database.writing() as tx:
        await Rows(tx, 50).match("rain", 20, NOW_MS)
    was_ms = NOW_MS + DAY_MS
    await keep_listings(database, was_ms)
    async with Between(database) as loop:
        await keep_listings(loop, was_ms + MINUTE_MS)
        assert loop.writes == 2
    assert (await kept(database))[1].day_units == 20, "the rebuild came between"
    later_ms = was_ms + 2 * MINUTE_MS
    await keep_listings(database, later_ms)
    assert (await kept(database))[1].day_units == 0
    assert await kept(database) == await computed(database, later_ms)
    async with database.reading() as tx:
        assert {row.day_units for row in await tx.all(sa.select(event_totals))} == {0}
