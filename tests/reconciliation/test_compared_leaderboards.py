"""Leaderboards whose categories, prices, ranks or cursors are wrong are named, though their sums add up."""

from typing import Final

import pytest
import sqlalchemy as sa
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import (
    EventActs,
    RandomHistory,
    a_short_history,
    differences,
)
from tests.rigs.sandbox import Sandbox, an_indexer, catch_up

from foretell.domain.portfolio.periods import Period
from foretell.domain.portfolio.rank_buckets import bucket_of
from foretell.reconciliation import verify
from foretell.reconciliation.leaderboards.cursor_ages import CURSOR_LAG_S_MAX
from foretell.reconciliation.recounted_listings import CountedMarket
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.tables import (
    listing_cursors,
    market_totals,
    quote_points,
    quotes,
    rank_counts,
    ranking_cursors,
    ranking_marks,
    standings,
)

pytestmark = pytest.mark.anyio

Market = tuple[IndexerRig, EventActs]
WEEK_S: Final = 7 * 86_400
IN_ANOTHER_CATEGORY: Final = tuple(
    sa.update(table).where(table.c.category == "politics").values(category="poetry")
    for table in (ranking_marks, standings, rank_counts)
)
STOPPED: Final = {
    "listings": sa.update(listing_cursors).values(at_ms=listing_cursors.c.at_ms - WEEK_S * 1_000)
} | {
    (int(period), "at_s"): sa.update(ranking_cursors)
    .where(ranking_cursors.c.period == int(period))
    .values(at_s=ranking_cursors.c.at_s - WEEK_S)
    for period in Period
}


@pytest.fixture(autouse=True)
def all_differences_without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "ROUND_PAUSE_S", 0.0)
    monkeypatch.setattr("foretell.reconciliation.data_report.DIFFERENCES_NAMED_MAX", 10_000)


async def test_leaderboards_in_a_wrong_category_are_found(
    played: RandomHistory, market: Market
) -> None:
    assert await differences(played) == []
    found = await differences(played, *IN_ANOTHER_CATEGORY)
    assert {table for table, _ in found} == {"ranking_marks"}
    assert {key for _, key in found} >= {(days, market[0].condition_id) for days in Period}


async def test_leaderboards_in_a_wrong_category_are_found_on_postgresql(
    fresh_sandbox: Sandbox, market: Market, postgres_database: Database
) -> None:
    played = await a_short_history(fresh_sandbox, market, postgres_database)
    assert await differences(played) == []
    found = await differences(played, *IN_ANOTHER_CATEGORY)
    assert {table for table, _ in found} == {"ranking_marks"}
    assert {key for _, key in found} >= {(days, market[0].condition_id) for days in Period}


@pytest.mark.parametrize("period", Period)
async def test_a_mark_of_a_listed_market_that_is_missing_is_found(
    played: RandomHistory, market: Market, period: Period
) -> None:
    condition_id = market[0].condition_id
    mark = ranking_marks.c
    is_it = (mark.period == int(period), mark.condition_id == condition_id)
    found = await differences(played, sa.delete(ranking_marks).where(*is_it))
    assert ("ranking_marks", (int(period), condition_id)) in found


@pytest.mark.parametrize("period", Period)
async def test_a_wrong_price_of_an_unresolved_condition_is_found(
    played: RandomHistory, market: Market, period: Period
) -> None:
    condition_id = market[0].condition_id
    mark = ranking_marks.c
    is_it = (mark.period == int(period), mark.condition_id == condition_id)
    found = await differences(played, sa.update(ranking_marks).where(*is_it).values(price="1/3"))
    assert ("ranking_marks", (int(period), condition_id)) in found


async def test_a_mark_that_has_not_seen_the_quote_of_now_is_not_compared_with_it(
    played: RandomHistory, market: Market
) -> None:
    of_market = quotes.c.condition_id == market[0].condition_id
    other = {"best_bid_ticks": 1, "best_ask_ticks": 3}
    newer = other | {"updated_at_ms": quotes.c.updated_at_ms + 1}
    key = ("ranking_marks", (0, market[0].condition_id))
    assert key not in await differences(played, sa.update(quotes).where(of_market).values(newer))
    as_seen = quotes.c.updated_at_ms - 1
    seen = sa.update(quotes).where(of_market).values(updated_at_ms=as_seen)
    assert key in await differences(played, seen)


@pytest.mark.parametrize("period", [Period.DAY, Period.WEEK, Period.MONTH])
async def test_the_price_of_a_beginning_is_that_of_the_last_minute_before_it(
    played: RandomHistory, market: Market, period: Period
) -> None:
    condition_id = market[0].condition_id
    at_s = sa.select(ranking_cursors.c.at_s).where(ranking_cursors.c.period == int(period))
    async with played.database.reading() as tx:
        minute = await tx.scalar(at_s) // 60
    point = quote_points.c
    is_before = point.condition_id == condition_id, point.minute < minute
    other = {"best_bid_ticks": 1, "best_ask_ticks": 3}
    found = await differences(played, sa.update(quote_points).where(*is_before).values(other))
    assert ("ranking_marks", (int(period), condition_id)) in found


@pytest.mark.parametrize("key", STOPPED)
async def test_a_cursor_that_stopped_a_week_ago_is_found(played: RandomHistory, key: str) -> None:
    assert await differences(played) == []
    assert key in [found for _, found in await differences(played, STOPPED[key])]


async def test_a_sum_that_has_left_out_old_blocks_is_found(played: RandomHistory) -> None:
    await played.sandbox.rpc.send("evm_increaseTime", 2 * CURSOR_LAG_S_MAX)
    await played.sandbox.mine()
    await played.finish()
    assert await differences(played) == []
    is_all = ranking_cursors.c.period == int(Period.ALL)
    stopped = sa.update(ranking_cursors).where(is_all).values(block_number=0)
    assert ("ranking_cursors", (0, "block_number")) in await differences(played, stopped)


async def test_cursors_of_a_stopped_exchange_are_no_differences(played: RandomHistory) -> None:
    sandbox, now_ms = played.sandbox, await played.now_ms()
    later_ms = now_ms + WEEK_S * 1_000
    report = await verify_data(
        played.database, sandbox.rpc, sandbox.deployment, now_ms=lambda: later_ms
    )
    assert report.differences == []
    assert {*report.cursor_ages_s} == {
        *("listings", "rankings 0", "rankings 1", "rankings 7", "rankings 30")
    }
    assert max(report.cursor_ages_s.values()) <= 60


async def test_cursors_that_stand_still_while_blocks_are_indexed_are_found(
    played: RandomHistory,
) -> None:
    """A chain that is ahead of the clock, as after a jump of the sandbox, is no sign of that."""
    sandbox, now_ms = played.sandbox, await played.now_ms()
    await sandbox.rpc.send("evm_increaseTime", 2 * CURSOR_LAG_S_MAX)
    await sandbox.mine()
    await catch_up(an_indexer(sandbox, played.database))
    ahead = await verify_data(
        played.database, sandbox.rpc, sandbox.deployment, now_ms=lambda: now_ms
    )
    assert ahead.differences == []
    later_ms = await played.now_ms()
    report = await verify_data(
        played.database, sandbox.rpc, sandbox.deployment, now_ms=lambda: later_ms
    )
    assert [each.key for each in report.differences] == [
        *("listings", (0, "at_s"), (1, "at_s"), (7, "at_s"), (30, "at_s"))
    ]


async def test_buckets_that_are_not_in_the_order_of_amounts_are_found(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The counts are written and read with the same wrong buckets."""
    for module in ("index.rankings.counts", "queries.leaderboards"):
        monkeypatch.setattr(f"foretell.store.{module}.bucket_of", lambda units: -bucket_of(units))
    played = await a_short_history(fresh_sandbox, market, fresh_database)
    assert {table for table, _ in await differences(played)} == {"rank_counts", "ranks"}


def test_every_column_of_the_totals_of_markets_is_compared() -> None:
    assert CountedMarket._fields == tuple(column.name for column in market_totals.c)
