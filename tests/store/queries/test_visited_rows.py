"""Reads that must not visit more rows when the history grows: steps of the database, and its plans."""

import sqlite3
from pathlib import Path
from typing import Final

import msgspec
import pytest
import sqlalchemy as sa
from tests.rigs.applications import an_app
from tests.rigs.read_apis import BLOBS, Reader, a_data_context
from tests.store.queries.grown import GROWTH_MAX, LARGE, Grown
from tests.store.queries.recorded_queries import postgres_plans, recorded
from tests.store.queries.test_visited_sides import READS_OF_SIDES, SOME

from foretell.bench.rigs.reads.history import (
    NOW_S,
    REFERRER,
    History,
    HistoryPlan,
    a_condition,
    a_token,
    a_wallet,
)
from foretell.bench.rigs.reads.matches import SIZE_UNITS
from foretell.bench.rigs.reads.public_trading import public_context
from foretell.data.routes import build_app
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import Side
from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.price_history import Buckets
from foretell.domain.values.hexadecimal import Address, Bytes32
from foretell.store.database import Database
from foretell.store.index.activities import (
    ActivityFilter,
    ActivityKind,
    ActivityOrder,
    ActivityPage,
    ActivityRow,
    record_activities,
)
from foretell.store.index.activity_pages import load_activities
from foretell.store.index.generations import RunningSum
from foretell.store.index.rankings.sums import Sums
from foretell.store.migrations import upgrade
from foretell.store.queries.leaderboards import RankingOrder, RankingScope, load_ranking_of
from foretell.store.scratch import analyze
from foretell.store.trading.profiles import load_named_like
from foretell.store.trading.quote_points import load_history
from foretell.trading.handlers.price_history import price_histories

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("grown")]  # both histories are made once

POINTS: Final = 200
STEPS_PER_POINT_MAX: Final = 80
ROWS: Final = 5_000
HEAVY_FROM: Final = 500
RANKED: Final = (1_000, 10_000)
RANK_GROWTH_MAX: Final = 2.5
"""A bucket of the larger ranking has more wallets; each of those before the own one is a count in both."""


READS: Final = {
    "trades of a rare amount": f"/trades?filterType=CASH&filterAmount={LARGE * 10}&limit=10",
    "all trades of a rare amount": (
        f"/trades?takerOnly=false&filterType=CASH&filterAmount={LARGE * 10}&limit=10"
    ),
    "trades of an amount that no trade has": "/trades?filterType=CASH&filterAmount=100000",
    "rare trades of a wallet": (
        f"/trades?user=WHALE&filterType=CASH&filterAmount={LARGE * 10}&limit=10"
    ),
    "trades of an amount that most trades have": "/trades?filterType=CASH&filterAmount=1&limit=10",
    "trades of a wallet of an amount": (
        "/trades?user=WHALE&filterType=CASH&filterAmount=1&limit=10&takerOnly=false"
    ),
    "trades of a market of an amount": (
        "/trades?market=MARKET&filterType=CASH&filterAmount=1&limit=10&takerOnly=false"
    ),
    "largest activity": "/activity?user=WHALE&sortBy=CASH&limit=10",
    "smallest activity": "/activity?user=WHALE&sortBy=CASH&sortDirection=ASC&limit=10",
    "trades of a rare size": f"/trades?filterType=TOKENS&filterAmount={LARGE * 20}&limit=10",
    "trades of a size that no trade has": "/trades?filterType=TOKENS&filterAmount=100000",
    "rare sizes of a wallet": (
        f"/trades?user=WHALE&filterType=TOKENS&filterAmount={LARGE * 20}&limit=10"
    ),
    "trades of a size that all trades have": "/trades?filterType=TOKENS&filterAmount=1&limit=10",
    "largest sizes of a wallet": "/activity?user=WHALE&sortBy=TOKENS&limit=10",
    "smallest sizes of a wallet": ("/activity?user=WHALE&sortBy=TOKENS&sortDirection=ASC&limit=10"),
    "trades that a maker of many took": "/trades?user=WHALE&limit=10",
    "newest trades": "/trades?limit=10",
    "trades of some markets": f"/trades?market={','.join(SOME)}&limit=10",
    "all trades of some markets": f"/trades?market={','.join(SOME)}&limit=10&takerOnly=false",
    "trades of a market of a rare amount": (
        f"/trades?market=MARKET&filterType=CASH&filterAmount={LARGE * 10}&limit=10"
    ),
    "trades of some markets of a rare size": (
        f"/trades?market={','.join(SOME)}&filterType=TOKENS&filterAmount={LARGE * 20}&limit=10"
    ),
    "trades of a wallet in a market": "/trades?user=WHALE&market=MARKET&limit=10",
    "all trades of a wallet in a market": (
        "/trades?user=WHALE&market=MARKET&limit=10&takerOnly=false"
    ),
    "activity of a wallet in some markets": f"/activity?user=WHALE&market={','.join(SOME)}&limit=2",
    "conversions of a wallet that has none": "/activity?user=WHALE&type=CONVERSION",
    "splits and merges of a wallet that has none": "/activity?user=WHALE&type=SPLIT,MERGE",
    "shares of an address that referred nobody": "/referrers?address=WHALE",
    "shares of an affiliate that referred nobody": "/affiliates?address=TYPICAL",
    **READS_OF_SIDES,
    "holders": "/holders?market=MARKET&limit=10",
    "rank": "/v1/leaderboard?user=TYPICAL&timePeriod=ALL",
    "leaderboard": "/v1/leaderboard?timePeriod=ALL&limit=10",
    "wins": "/v1/leaderboard/biggest-wins?timePeriod=ALL&limit=10",
}


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("path", READS.values(), ids=READS.keys())
async def test_a_read_takes_no_more_steps_when_the_history_is_ten_times_as_long(
    grown: tuple[Grown, Grown], path: str
) -> None:
    steps: list[int] = []
    for each in grown:
        names = each.history.names
        asked = path.replace("WHALE", names.whale).replace("TYPICAL", names.typical)
        with recorded() as queries:
            answer = await each.reader.get(asked.replace("MARKET", names.condition_id))
        assert isinstance(answer, list)
        assert each.scanned(queries) == []
        steps.append(each.steps(queries))
    assert steps[0] > 0
    assert steps[1] <= GROWTH_MAX * steps[0], steps


async def test_volumes_of_referred_wallets_take_no_more_steps_when_they_traded_ten_times_as_much(
    grown: tuple[Grown, Grown], tmp_path: Path
) -> None:
    """Fees are added up one by one, so they are taken out."""
    steps: list[int] = []
    for each in grown:
        free = Grown(tmp_path / each.path.name, each.history.fills)
        with sqlite3.connect(each.path) as connection:
            connection.execute("VACUUM INTO ?", (str(free.path),))
        with sqlite3.connect(free.path) as connection:
            connection.execute("UPDATE exchange_fills SET fee_units = 0")
        with recorded() as queries:
            [shared] = await free.reader.get(f"/referrers?address={a_wallet(REFERRER)}")
        await free.database.close()
        assert int(shared["totalVolume"]) > each.history.fills * SIZE_UNITS // 10
        assert free.scanned(queries) == []
        steps.append(free.steps(queries))
    assert 0 < steps[1] <= GROWTH_MAX * steps[0], steps


async def test_a_point_of_a_price_history_costs_the_same_however_many_trades_there_are(
    grown: tuple[Grown, Grown],
) -> None:
    steps: list[int] = []
    wanted = Buckets(NOW_S - POINTS * 86_400, NOW_S - 86_400, 86_400)
    for each in grown:
        with recorded() as queries:
            async with each.database.reading() as tx:
                points = await load_history(tx, Bytes32(each.history.names.condition_id), wanted)
        assert len(points) == POINTS
        assert each.scanned(queries) == []
        steps.append(each.steps(queries))
    assert steps[1] <= GROWTH_MAX * steps[0]
    assert steps[1] <= POINTS * STEPS_PER_POINT_MAX


async def test_a_price_history_costs_one_seek_of_the_index_for_each_point(
    grown: tuple[Grown, Grown],
) -> None:
    large, condition_id = grown[1], grown[1].history.names.condition_id
    wanted = Buckets(NOW_S - POINTS * 86_400, NOW_S - 86_400, 86_400)
    with recorded() as queries:
        async with large.database.reading() as tx:
            assert len(await load_history(tx, Bytes32(condition_id), wanted)) == POINTS
    assert len(queries) == 1
    [seek] = [line for line in large.plan(queries) if "quote_points" in line]
    assert seek.startswith("SEARCH quote_points USING PRIMARY KEY")
    assert "(condition_id=? AND minute<?)" in seek


def a_fill(number: int) -> ActivityRow:
    return ActivityRow(
        number,
        0,
        0,
        Address(a_wallet(number % 50)),
        ActivityKind.TRADE,
        Bytes32(a_condition(0)),
        AssetId(a_token(0, is_yes=True)),
        Side.BUY,
        SIZE_UNITS + number,
        number,
        is_taker=number % 50 != 1 or number < ROWS // 5,
        timestamp_s=number,
        tx_hash=Bytes32(a_condition(number)),
    )


@pytest.mark.parametrize(
    ("chosen", "page", "index"),
    [
        (
            ActivityFilter(cost_units_min=ROWS - 10),
            ActivityPage(10),
            "ix_activities_cost_units",
        ),
        (
            ActivityFilter(takers_only=True, cost_units_min=ROWS // 2),
            ActivityPage(10),
            "ix_activities_taken_cost",
        ),
        (
            ActivityFilter(wallet=Address(a_wallet(1))),
            ActivityPage(10, order=ActivityOrder.COST),
            "ix_activities_wallet_cost",
        ),
        (
            ActivityFilter(takers_only=True, size_units_min=SIZE_UNITS + ROWS - 10),
            ActivityPage(10),
            "ix_activities_size_units",
        ),
        (
            ActivityFilter(wallet=Address(a_wallet(1))),
            ActivityPage(10, order=ActivityOrder.SIZE),
            "ix_activities_wallet_size",
        ),
        (
            ActivityFilter(wallet=Address(a_wallet(1)), takers_only=True),
            ActivityPage(10),
            "ix_activities_wallet_role_timestamp_s",
        ),
    ],
    ids=["rare cost", "cost that many have", "largest cost", "rare size", "largest size", "taken"],
)
async def test_both_databases_find_activities_by_their_amounts_and_takers(
    database: Database, chosen: ActivityFilter, page: ActivityPage, index: str
) -> None:
    async with database.writing() as tx:
        await record_activities(tx, [a_fill(number) for number in range(ROWS)])
    await analyze(database)
    with recorded() as queries:
        async with database.reading() as tx:
            assert len(await load_activities(tx, chosen, page)) == page.limit
    plans: list[str] = []
    explain = "EXPLAIN QUERY PLAN" if database.is_sqlite else "EXPLAIN"

    def ask(connection: sa.Connection) -> None:
        for sql, values in queries:
            plans.extend(map(str, connection.exec_driver_sql(f"{explain} {sql}", values)))

    await database.run_sync(ask)
    assert any(index in line for line in plans), plans


@pytest.mark.parametrize("is_equal", [False, True], ids=["all amounts", "one amount"])
@pytest.mark.parametrize("order", RankingOrder)
async def test_a_rank_takes_no_more_steps_when_ten_times_as_many_wallets_are_ranked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, order: RankingOrder, *, is_equal: bool
) -> None:
    monkeypatch.setattr("foretell.store.index.rankings.parts.HEAVY_FROM", HEAVY_FROM)
    steps: list[int] = []
    for wallets in RANKED:
        grown = Grown(tmp_path / f"{wallets}.db", 2)
        await upgrade(grown.database)
        sums = Sums()
        for number in range(wallets):
            units = 1_000_000 if is_equal else 1_000 + 1_000_000 * number // wallets
            sums.add_gain(Address(a_wallet(number)), "world", units)
            sums.add_volume(Address(a_wallet(number)), "world", units)
        async with grown.database.writing() as tx:
            await sums.record(tx, RunningSum(0, Period.ALL))
        with recorded() as queries:
            async with grown.database.reading() as tx:
                scope = RankingScope(Period.ALL, "world")
                wallet = Address(a_wallet(wallets // 9))
                found = await load_ranking_of(tx, scope, order, wallet)
        await grown.database.close()
        before = sum(a_wallet(number) > wallet for number in range(wallets))
        assert found is not None
        assert found.rank == (before + 1 if is_equal else wallets - wallets // 9)
        steps.append(grown.steps(queries))
    assert 0 < steps[1] <= RANK_GROWTH_MAX * steps[0], steps


READS_OF_INDEXES: Final = {
    **READS,
    "activity": "/activity?user=WHALE&limit=10",
    "trades of a market": "/trades?market=MARKET&limit=10",
    "trades of a wallet": "/trades?user=WHALE&limit=10",
    "positions": "/positions?user=TYPICAL&limit=10",
    "closed positions": "/closed-positions?user=TYPICAL&limit=10",
    "value": "/value?user=TYPICAL",
    "volume": "/volume?user=TYPICAL",
    "traded": "/traded?user=TYPICAL",
    "live volume": "/live-volume?market=MARKET",
    "open interest": "/oi?market=MARKET",
    "ledger": "/positions/OUTCOME/ledger?user=WHALE&limit=10",
    "leaderboard of a category": "/v1/leaderboard?timePeriod=WEEK&category=SPORTS&limit=10",
    "volumes of a month": "/v1/leaderboard?timePeriod=MONTH&orderBy=VOL&limit=10",
}
GROWING: Final = (
    *("activities", "position_changes", "positions", "balances", "balance_changes"),
    *(
        "exchange_fills",
        "fills",
        "quote_points",
        "trades",
        "standings",
        "wins",
        "trading_totals",
        "traded_markets",
        "traded_volumes",
    ),
)
"""Tables that grow with the history."""


@pytest.mark.parametrize("path", READS_OF_INDEXES.values(), ids=READS_OF_INDEXES.keys())
async def test_postgres_has_an_index_for_each_read_of_a_table_that_grows(
    on_postgres: Database, path: str
) -> None:
    names = History(HistoryPlan(2, wallets=100, markets=20)).names
    reader = Reader(an_app(build_app, a_data_context(on_postgres, BLOBS, lambda: NOW_S * 1000)))
    for word, name in zip(("WHALE", "TYPICAL", "MARKET", "OUTCOME"), names, strict=False):
        path = path.replace(word, name)
    with recorded() as queries:
        await reader.get(path)
    plans = await postgres_plans(on_postgres, queries)
    assert plans
    scanned = [line for line in plans if any(f"Seq Scan on {table}" in line for table in GROWING)]
    assert scanned == []


async def test_profiles_are_found_by_the_beginning_of_their_names_along_an_index(
    on_postgres: Database, grown: tuple[Grown, Grown]
) -> None:
    with recorded() as queries:
        async with on_postgres.reading() as tx:
            await load_named_like(tx, "bob", 10)
    plans = await postgres_plans(on_postgres, queries)
    assert any("Index Scan using uq_profiles_name_key" in line for line in plans), plans
    assert any("Index Cond: ((name_key >=" in line for line in plans), plans
    assert not any("Sort" in line for line in plans)
    with recorded() as queries:
        async with grown[1].database.reading() as tx:
            await load_named_like(tx, "bob", 10)
    [seek] = grown[1].plan(queries)
    assert seek.startswith("SEARCH profiles USING INDEX")
    assert "(name_key>? AND name_key<?)" in seek


async def test_a_batch_costs_one_seek_for_each_point_of_a_market_on_both_databases(
    on_postgres: Database, grown: tuple[Grown, Grown]
) -> None:
    tokens = [a_token(0, is_yes=is_yes) for is_yes in (True, False)]
    span = {"start_ts": NOW_S - POINTS * 86_400, "end_ts": NOW_S - 86_400, "fidelity": 24 * 60}
    body = msgspec.json.encode({"markets": tokens, **span})
    for database in (on_postgres, grown[1].database):
        with recorded() as queries:
            raw = await price_histories(public_context(database, "", lambda: NOW_S * 1000), body)
        history = msgspec.json.decode(raw)["history"]
        assert [len(history[token]) for token in tokens] == [POINTS, POINTS]
        yes, no = ([point["p"] for point in history[token]] for token in tokens)
        assert [a + b for a, b in zip(yes, no, strict=True)] == pytest.approx([1.0] * POINTS)
        assert len(queries) == 2
        if database is on_postgres:
            plans = await postgres_plans(database, queries)
            assert not [line for line in plans if "Seq Scan on quote_points" in line]
            wanted = "((condition_id = ", "(minute < "
        else:
            plans = grown[1].plan(queries)
            wanted = "SEARCH quote_points USING PRIMARY KEY", "(condition_id=? AND minute<?)"
        seeks = [line for line in plans if all(part in line for part in wanted)]
        assert len(seeks) == 1, plans
