"""Pages of markets and events must not visit more rows when there are more markets: steps of the database, and its plans."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.applications import an_app
from tests.rigs.postgres import PostgresServer
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.store.queries.recorded_queries import postgres_plans, recorded, sqlite_steps

from foretell.bench.rigs.reads.history import NOW_S, History, HistoryPlan, a_condition, a_token
from foretell.data.routes import build_app as build_data_app
from foretell.discovery.context import DiscoveryContext
from foretell.discovery.routes import build_app
from foretell.domain.values.hexadecimal import Bytes32
from foretell.store.database import Database
from foretell.store.index.conditions import PayoutReport, record_payouts
from foretell.store.migrations import upgrade
from foretell.store.page_cost import RANDOM_PAGE_COST
from foretell.store.scratch import analyze
from foretell.store.tables import quotes

pytestmark = pytest.mark.anyio

MARKETS: Final = (100, 1_000)
OPEN: Final = 20
"""Markets that are not resolved; those with the most volume are, and have no bids."""
FILLS: Final = 4_000
GROWTH_MAX: Final = 1.5
KEPT: Final = (
    *("volume", "volume24hr", "volume1wk", "volume1mo", "volume1yr", "liquidity", "competitive"),
    *("createdAt", "updatedAt", "id", "slug", "title"),
)
PRICES: Final = ("bestBid", "lastTradePrice")
READS: Final = (
    {
        f"{api} by {order}, {direction}": f"/{api}?limit=10&order={order}&ascending={direction}"
        for api in ("markets", "events")
        for order in (*KEPT, *(PRICES if api == "markets" else ()))
        for direction in ("false", "true")
    }
    | {
        f"open {api} by {order}": f"/{api}?limit=10&order={order}&closed=false"
        for api in ("markets", "events")
        for order in ("slug", "title", *(PRICES if api == "markets" else ()))
    }
    | {
        "markets after the last best bid": f"/markets?limit=10&offset={OPEN}&order=bestBid",
        "newest markets": "/markets?limit=10",
        "newest events": "/events?limit=10",
        "sports": "/sports",
        "open markets by volume": "/markets?limit=10&order=volume24hr&closed=false",
        "open events by volume": "/events?limit=10&order=volume24hr&closed=false",
        "open events by all volume": "/events?limit=10&order=volume&closed=false",
        "open markets by all volume": "/markets?limit=10&order=volume&closed=false",
        "open events by their end": "/events?limit=10&order=endDate&ascending=true&closed=false",
        "open markets by their end": "/markets?limit=10&order=endDate&ascending=true&closed=false",
        "events by their closing": "/events?limit=10&order=closedTime&closed=true",
        "markets by their closing": "/markets?limit=10&order=closedTime&closed=true",
        "events by their end": "/events?limit=10&order=endDate",
        "one market": "/markets?condition_ids=MARKET",
        "one market by its slug": "/markets/slug/market-7",
        "one event": "/events/slug/event-7",
        "markets by ids": "/markets?id=7,8",
        "markets by slugs in an order": "/markets?slug=market-7,market-8&order=title",
        "markets by tokens": f"/markets?clob_token_ids={a_token(7, is_yes=True)},{a_token(8, is_yes=False)}",
        "markets of an event": "/markets?event_id=7&order=volume",
        "markets of an event's slug": "/markets?event_slug=event-7",
        "events by ids": "/events?id=7,8&order=volume",
        "events by slugs": "/events?slug=event-7,event-8",
    }
)
TABLES: Final = (
    *("event_tags", "series", "sport_tags", "sports_events"),
    *("activities", "balances", "positions", "trades", "fills", "orders", "quote_points", "quotes"),
    *("markets", "events", "market_totals", "event_totals", "payouts", "locked_collateral"),
)


def a_payout(number: int) -> PayoutReport:
    condition_id = Bytes32(a_condition(number))
    return PayoutReport(1, number, 0, condition_id, 1, 0, condition_id, NOW_S - number)


async def filled(database: Database, markets: int) -> Database:
    await upgrade(database)
    history = History(HistoryPlan(FILLS, wallets=1_000, markets=markets))
    await history.write(database)
    async with database.writing() as tx:
        closed = range(markets - OPEN)
        await record_payouts(tx, [a_payout(number) for number in closed])
        is_closed = quotes.c.condition_id.in_([a_condition(number) for number in closed])
        await tx.execute(quotes.update().where(is_closed).values(best_bid_ticks=None))
    await history.write_sums(database)
    await analyze(database)
    return database


def a_reader(database: Database) -> Reader:
    return Reader(an_app(build_app, DiscoveryContext(database, BLOBS)))


async def queries_of(database: Database, path: str) -> list[tuple[str, Any]]:
    """Return the queries of a request that has an answer with rows."""
    names = History(HistoryPlan(2, wallets=1_000, markets=MARKETS[0])).names
    with recorded() as queries:
        assert await a_reader(database).get(path.replace("MARKET", names.condition_id))
    return queries


@pytest.fixture(scope="module")
async def grown(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Sequence[Database]]:
    folder = tmp_path_factory.mktemp("listed")
    both = [
        await filled(Database(f"sqlite+aiosqlite:///{folder / f'{count}.db'}"), count)
        for count in MARKETS
    ]
    yield both
    for each in both:
        await each.close()


@pytest.fixture(scope="module")
async def on_postgres(postgres: PostgresServer) -> AsyncIterator[Database]:
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        yield await filled(database, MARKETS[1])


def steps_of(database: Database, queries: Sequence[tuple[str, Any]]) -> tuple[int, list[str]]:
    """Return how many steps SQLite takes for queries, and the lines of their plans that read a whole table."""
    path = sa.make_url(database.url).database
    assert path is not None
    with closing(sqlite3.connect(Path(path))) as connection:
        lines = [
            row[3]
            for sql, values in queries
            for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values)
        ]
    whole = [line for line in lines if line.startswith("SCAN") and "INDEX" not in line]
    return sqlite_steps(Path(path), queries), [line for line in whole if line.split()[1] in TABLES]


@pytest.mark.parametrize("path", READS.values(), ids=READS.keys())
async def test_a_page_takes_no_more_steps_when_there_are_ten_times_as_many_markets(
    grown: Sequence[Database], path: str
) -> None:
    found = [steps_of(each, await queries_of(each, path)) for each in grown]
    assert [whole for _, whole in found] == [[], []]
    (few, _), (many, _) = found
    assert 0 < many <= GROWTH_MAX * few, found


@pytest.mark.parametrize("path", READS.values(), ids=READS.keys())
async def test_postgres_has_an_index_for_each_page(on_postgres: Database, path: str) -> None:
    plans = await postgres_plans(on_postgres, await queries_of(on_postgres, path))
    assert plans
    assert [line for line in plans if any(f"Seq Scan on {table}" in line for table in TABLES)] == []


async def test_postgres_walks_along_the_totals(on_postgres: Database) -> None:
    """Without a hint: a page of the largest is read from the end of an index, not sorted."""
    queries = await queries_of(on_postgres, "/markets?limit=10&order=volume24hr")
    plans = await postgres_plans(on_postgres, queries[:1], may_scan=True)
    assert any("ix_market_totals_day_units_market_id" in line for line in plans), plans
    assert not any("Sort" in line for line in plans), plans


async def test_postgres_reckons_with_pages_in_memory(on_postgres: Database) -> None:
    async with on_postgres.reading() as tx, on_postgres.public_reading() as public:
        for each in (tx, public):
            assert float(await each.scalar(sa.text("SHOW random_page_cost"))) == RANDOM_PAGE_COST


async def test_postgres_finds_a_wallets_newest_activity_by_the_wallet(
    on_postgres: Database,
) -> None:
    names = History(HistoryPlan(2, wallets=1_000, markets=MARKETS[1])).names
    app = an_app(build_data_app, a_data_context(on_postgres, BLOBS, lambda: NOW_S * 1000))
    with recorded() as queries:
        assert await Reader(app).get("/activity", user=names.whale, limit=100)
    plans = await postgres_plans(on_postgres, queries[:1], may_scan=True)
    assert any("ix_activities_wallet_timestamp_s" in line for line in plans), plans
