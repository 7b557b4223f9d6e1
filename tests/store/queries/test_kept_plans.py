"""Reads whose plan PostgreSQL keeps, however many rows it has counted: planning each read again takes longer than it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest
import sqlalchemy as sa
from tests.rigs.postgres import PostgresServer
from tests.store.queries.recorded_queries import recorded

from foretell.bench.rigs.reads.history import REFERRER, History, HistoryPlan, a_wallet
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.portfolio.periods import Period
from foretell.domain.values.hexadecimal import Address
from foretell.edge.builders.keys import builder_code
from foretell.store.database import Database
from foretell.store.queries.catalog import load_events_of_series
from foretell.store.queries.catalog_filters import MarketFilter, load_market_ids
from foretell.store.queries.leaderboards import WINS_SKIPPED_MAX, RankingScope, load_wins
from foretell.store.queries.ledger import load_acts_at, load_position_history
from foretell.store.queries.referrals import ReferralFilter, load_received_shares
from foretell.store.queries.sorted_pages import ListPage, SortField
from foretell.store.scratch import analyze
from foretell.store.tables import positions, wins

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

READS: Final = 12
PLANS_FIRST: Final = 5
"""So often PostgreSQL plans a statement with its values before it compares that with a plan for any values."""
WINS: Final = 5_000
MARKETS: Final = 5_000
KEPT: Final = sa.text(
    "SELECT generic_plans, custom_plans FROM pg_prepared_statements WHERE statement LIKE :part"
)


@pytest.fixture(scope="module")
async def many_wins(on_postgres: Database) -> Database:
    """The history, with as many wins as a longer one has."""
    condition_id = History(HistoryPlan(2, wallets=100, markets=20)).names.condition_id
    async with on_postgres.writing() as tx:
        rows: list[tuple[Any, ...]] = [(f"0x{number:040x}", str(number)) for number in range(WINS)]
        await tx.upsert_rows(
            positions, [(*row, condition_id, 0, 0, 10, 5, 5, 1, 1) for row in rows]
        )
        await tx.upsert_rows(
            wins, [(int(Period.ALL), *row, "politics", 5 + place) for place, row in enumerate(rows)]
        )
    await analyze(on_postgres)
    return on_postgres


@pytest.mark.parametrize("category", [None, "politics"])
@pytest.mark.parametrize("offset", [0, WINS_SKIPPED_MAX])
async def test_postgres_keeps_the_plan_of_the_largest_wins(
    many_wins: Database, category: str | None, offset: int
) -> None:
    scope = RankingScope(Period.ALL, category)
    async with Database(many_wins.url) as database, database.reading() as tx:
        for _ in range(READS):
            assert len(await load_wins(tx, scope, limit=20, offset=offset)) == 20
        [kept] = await tx.all(KEPT, {"part": "%FROM wins%"})
    assert tuple(kept) == (READS - PLANS_FIRST, PLANS_FIRST)


@pytest.fixture
async def many_markets(postgres: PostgresServer) -> AsyncIterator[Database]:
    """A history with so many markets that a plan for any page looks dear."""
    await asyncio.to_thread(postgres.empty_database)
    async with Database(postgres.database_url) as database:
        history = History(HistoryPlan(2_000, wallets=1_000, markets=MARKETS))
        await history.write(database)
        await history.write_sums(database)
        await analyze(database)
        yield database


async def test_postgres_keeps_the_plan_of_markets_in_the_order_of_their_prices(
    many_markets: Database,
) -> None:
    """A finding: a first page was planned again for each read, which took a fifth of its time."""
    async with many_markets.reading() as tx:
        for is_ascending in (False, True):
            page = ListPage(20, fields=(SortField.LAST_PRICE,), is_ascending=is_ascending)
            for _ in range(READS):
                assert len(await load_market_ids(tx, MarketFilter(), page)) == 20
        kept = await tx.all(KEPT, {"part": "SELECT%last_price%UNION ALL%"})
    assert [tuple(each) for each in kept] == [(READS - PLANS_FIRST, PLANS_FIRST)] * 2


async def test_postgres_keeps_the_plan_of_the_shares_of_one_who_is_no_builder(
    on_postgres: Database,
) -> None:
    """A finding: orders of builders made each read of anybody's shares plan all of it again."""
    receiver = Address(a_wallet(REFERRER))
    wanted = ReferralFilter(receiver, builder_code(receiver))
    async with Database(on_postgres.url) as database, database.reading() as tx:
        for _ in range(READS):
            assert len(await load_received_shares(tx, wanted, 100, 0)) == 1
        [kept] = await tx.all(KEPT, {"part": "%FROM referred_wallets%"})
    assert tuple(kept) == (READS - PLANS_FIRST, PLANS_FIRST)


async def test_a_plan_for_any_wallet_finds_the_activities_of_a_ledger_by_their_times(
    many_markets: Database,
) -> None:
    """A finding: most wallets have few activities, so PostgreSQL walked all of a wallet that has many."""
    history = History(HistoryPlan(2, wallets=1_000, markets=MARKETS))
    whale, token = Address(history.names.whale), AssetId(history.names.token_id)
    async with many_markets.reading() as tx:
        _, changes = await load_position_history(tx, whale, token, -1, 10)
        with recorded() as queries:
            found = await load_acts_at(tx, whale, token, changes, 100)
    assert any(found.acts.values())
    plan = await plan_for_any_values(many_markets, *queries)
    scans = sorted(line.split("Index Scan")[1] for line in plan if "Index Scan" in line)
    assert len(scans) == 3, plan
    assert scans[0].startswith(" using ix_activities_wallet_timestamp_s on activities"), plan
    assert all(each.startswith(" using uq_conditions_condition_id on") for each in scans[1:]), plan


async def test_a_plan_for_any_series_finds_its_newest_events_in_their_order(
    many_markets: Database,
) -> None:
    """A finding: those of all series were passed over, the newest first."""
    async with many_markets.reading() as tx:
        with recorded() as queries:
            assert len(await load_events_of_series(tx, 7, 2)) == 2
    plan = await plan_for_any_values(many_markets, *queries)
    assert any("using ix_sports_events_series_id_event_id" in line for line in plan), plan


async def plan_for_any_values(database: Database, query: tuple[str, Any]) -> list[str]:
    """Return the lines of the plan that PostgreSQL keeps for a query, whatever its values are."""
    sql, values = query
    lines: list[str] = []

    def ask(connection: sa.Connection) -> None:
        nothing = ", ".join("NULL" for _ in values)
        connection.exec_driver_sql(f"PREPARE kept AS {sql}")
        connection.exec_driver_sql("SET LOCAL plan_cache_mode = force_generic_plan")
        rows = connection.exec_driver_sql(f"EXPLAIN EXECUTE kept ({nothing})")
        lines.extend(str(row[0]) for row in rows)
        connection.exec_driver_sql("DEALLOCATE kept")

    await database.run_sync(ask)
    return lines
