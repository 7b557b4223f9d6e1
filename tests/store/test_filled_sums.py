"""The migrations that add sums fill them with what the indexer and the projection would have written."""

import importlib.util
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import alembic.migration
import alembic.operations
import pytest
import sqlalchemy as sa
from tests.rigs.builders.sums import a_code, kept_sums, slow_sums
from tests.rigs.payloads import ABSENT
from tests.rigs.read_apis import keep_listings, keep_rankings
from tests.rigs.rows import Rows, a_game_event_row
from tests.rigs.values import NOW_MS, TOKEN, an_address, an_asset
from tests.store.index.test_activities import a_trade

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.domain.exchange.order import Side
from foretell.domain.exchange.trade import TradeStatus
from foretell.domain.portfolio.builder_volumes import DAY_MS
from foretell.domain.values.amounts import AMOUNT_UNITS_MAX
from foretell.indexer.rebuild import RebuildContext, rebuild_builders
from foretell.store.database import Database
from foretell.store.index.activities import ActivityKind, record_activities
from foretell.store.index.activity_roles import ALL_ROLES, ROLES
from foretell.store.index.amount_classes import class_of
from foretell.store.index.balances import Balance, record_balances
from foretell.store.index.supplies import recount_supplies
from foretell.store.index.trading_totals import tables_of
from foretell.store.migrations import FOLDER
from foretell.store.quoted_columns import SETTLED_MS
from foretell.store.tables import (
    activities,
    builder_days,
    builder_totals,
    event_totals,
    failed_volumes,
    fills,
    market_totals,
    quote_points,
    quotes,
    rank_counts,
    series_totals,
    sport_tags,
    sum_generations,
    supplies,
    tags,
    traded_markets,
    traded_volumes,
    trades,
    trading_total_changes,
    trading_totals,
)

pytestmark = pytest.mark.anyio

TABLES = (traded_markets, trading_totals, trading_total_changes, quote_points, failed_volumes)


def the_migration(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FOLDER / "versions" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def fill(database: Database, name: str) -> None:
    """Run the part of a migration that fills."""

    def run(connection: sa.Connection) -> None:
        context = alembic.migration.MigrationContext.configure(connection)
        with alembic.operations.Operations.context(context):
            the_migration(name).fill()

    await database.run_sync(run)


async def dump(database: Database, tables: Sequence[sa.Table] = TABLES) -> dict[str, list[Any]]:
    async with database.reading() as tx:
        return {
            table.name: sorted(map(tuple, await tx.all(sa.select(table))), key=repr)
            for table in tables
        }


async def test_the_migration_fills_the_sums_of_older_rows(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow"):
            await rows.open_named(name)
        for who, name in (("ann", "rain"), ("bob", "rain"), ("ann", "snow"), ("ann", "rain")):
            await rows.buy(who, name, 4 * TOKEN, TOKEN)
        await rows.act("carol", "rain", ActivityKind.SPLIT, TOKEN)
        for units, minutes in ((3, 9), (4, 9), (5, 2)):
            await rows.match("rain", units, NOW_MS - minutes * 60_000)
        await rows.match("snow", 7, NOW_MS - 60_000, TradeStatus.FAILED)
        await rows.match("snow", 8, NOW_MS)
    expected = await dump(database)
    assert all(expected.values())
    async with database.writing() as tx:
        for table in TABLES[:3]:
            await tx.execute(table.delete())
        await tx.execute(quote_points.update().values(volume_units=0))
        await tx.execute(failed_volumes.delete())
    await fill(database, "v0010_sums")
    await fill(database, "v0027_failed_volumes")
    assert await dump(database) == expected
    async with database.reading() as tx:
        failed = await tx.all(sa.select(quotes.c.failed_units).order_by(quotes.c.failed_units))
    assert [row.failed_units for row in failed] == [0, 7]


async def test_the_migration_repeats_texts_and_prices_and_counts_standings(
    database: Database,
) -> None:
    tables = (market_totals, event_totals, rank_counts)
    async with database.writing() as tx:
        rows = Rows(tx)
        for name in ("rain", "snow", "hail"):
            await rows.open_named(name)
        await rows.quote("rain", 40, 42, 41)
        await rows.quote("snow", None, 42, None)
        for who, units in (("ann", -TOKEN), ("bob", 3), ("carol", 0)):
            await rows.hold(who, "rain", 0, 0, realized_units=units)
        for who in ("bob", "carol"):
            await rows.buy(who, "rain", 4 * TOKEN, TOKEN)
    await keep_rankings(database)
    await keep_listings(database)
    expected = await dump(database, tables)
    assert all(expected.values())
    async with database.writing() as tx:
        await tx.execute(rank_counts.delete())
        for table in tables[:2]:
            await tx.execute(table.update().values(slug="", title=""))
        await tx.execute(market_totals.update().values(best_bid=None, last_price=None))
    await fill(database, "v0018_orders_and_ranks")
    assert await dump(database, tables) == expected


async def test_the_migration_finds_fills_by_time_and_adds_up_tags_and_series(
    database: Database,
) -> None:
    tables = (fills, tags, series_totals)
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for name in ("first", "second"):
            await rows.open(a_game_event_row(name))
            await rows.quote(f"{name} btts", 40, 42, 41, volume_units=2**62)
        for minutes in (9, 2):
            await rows.match("rain", 5, NOW_MS - minutes * 60_000)
    await keep_listings(database)
    expected = await dump(database, tables)
    assert all(expected.values())
    async with database.writing() as tx:
        await tx.execute(fills.update().values(matched_at_ms=0, sequence=0))
        await tx.execute(tags.update().values(event_count=0))
        await tx.execute(series_totals.delete())
    await fill(database, "v0019_reads_of_long_histories")
    assert await dump(database, tables) == expected


async def test_the_migration_finds_the_tags_of_sports(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        for name in ("first", "second"):
            await rows.open(a_game_event_row(name))
        await rows.open(a_game_event_row("third", sportSlug=ABSENT))
    expected = await dump(database, (sport_tags,))
    assert len(expected["sport_tags"]) > 1
    async with database.writing() as tx:
        await tx.execute(sport_tags.delete())
    await fill(database, "v0023_tags_of_sports")
    assert await dump(database, (sport_tags,)) == expected


async def test_the_migration_has_failed_trades_taken_off_the_totals(database: Database) -> None:
    """Totals of an earlier version had them; the next round computes what has any again, and nothing else."""
    totals = market_totals, event_totals, series_totals
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.open(a_game_event_row("game"))
        for name in ("rain", "game btts"):
            await rows.quote(name, 40, 42, 41, volume_units=10)
        await rows.fail("game btts", 3)
    later_ms = NOW_MS + SETTLED_MS
    await keep_listings(database, later_ms)
    expected = await dump(database, totals)
    assert all(expected.values())
    async with database.writing() as tx:
        has_failed = market_totals.c.failed_units > 0
        older = {"volume_units": market_totals.c.volume_units + market_totals.c.failed_units}
        await tx.execute(market_totals.update().where(has_failed).values(older))
        is_game = event_totals.c.volume_units == 7
        await tx.execute(event_totals.update().where(is_game).values(volume_units=10))
        await tx.execute(series_totals.update().values(volume_units="10"))
    await keep_listings(database, later_ms)
    assert await dump(database, totals) != expected
    await fill(database, "v0024_volumes_without_failed_trades")
    await keep_listings(database, later_ms)
    assert await dump(database, totals) == expected


async def test_the_migration_adds_up_supplies_beyond_63_bits(database: Database) -> None:
    yes, no = an_asset(is_yes=True), an_asset(is_yes=False)
    async with database.writing() as tx:
        for who, units in (("ann", AMOUNT_UNITS_MAX), ("bob", AMOUNT_UNITS_MAX), ("carol", 3)):
            held = [Balance(an_address(who), asset, units, 1) for asset in (yes, COLLATERAL)]
            await record_balances(tx, held)
        await record_balances(tx, [Balance(an_address("ann"), no, 0, 1)])
        await recount_supplies(tx, [yes, no])
    expected = await dump(database, (supplies,))
    assert dict(expected["supplies"]) == {yes: str(2 * AMOUNT_UNITS_MAX + 3), no: "0"}
    async with database.writing() as tx:
        await tx.execute(supplies.delete())
    await fill(database, "v0022_kept_sums")
    assert await dump(database, (supplies,)) == expected


@pytest.mark.parametrize("live", [4, 5])
async def test_the_migration_adds_up_the_volumes_of_the_live_generation(
    database: Database, live: int
) -> None:
    """Those of a rebuild that was not finished are in neither table."""
    table = tables_of(live).volumes
    async with database.writing() as tx:
        await tx.upsert_rows(sum_generations, [("live", live, -1)])
        rows = Rows(tx)
        await rows.open_named("rain")
        for who in ("ann", "bob", "ann", "ann"):
            await rows.buy(who, "rain", 4 * TOKEN, AMOUNT_UNITS_MAX)
        await rows.buy("ann", "unlisted", 4 * TOKEN, TOKEN)
        await rows.act("ann", "rain", ActivityKind.SPLIT, TOKEN)
    tables = tables_of(live).volumes, tables_of(live + 1).volumes
    expected = await dump(database, tables)
    assert [len(rows) for rows in expected.values()] == [5, 0]
    async with database.writing() as tx:
        await tx.execute(table.delete())
    await fill(database, "v0022_kept_sums")
    assert await dump(database, tables) == expected


async def test_the_migration_finds_the_class_of_each_cost(database: Database) -> None:
    costs = [0, 1, 7, 8, 9, 10, 1_000, 2**40 - 1, 2**40, AMOUNT_UNITS_MAX - 1, AMOUNT_UNITS_MAX]
    async with database.writing() as tx:
        rows = Rows(tx)
        for units in costs:
            await rows.buy("ann", "rain", TOKEN, units)
    expected = await dump(database, (activities,))
    place = [column.name for column in activities.c].index("cost_units")
    kept = {row[place]: row[-2] for row in expected["activities"]}
    assert kept == {units: class_of(units) for units in costs}
    async with database.writing() as tx:
        await tx.execute(activities.update().values(cost_class=0))
        await tx.execute(traded_volumes.delete())
    await fill(database, "v0022_kept_sums")
    assert await dump(database, (activities,)) == expected


async def test_the_migration_finds_the_role_of_each_activity(database: Database) -> None:
    async with database.writing() as tx:
        for place, (kind, side, is_taker) in enumerate(ROLES):
            act = a_trade(place, kind=ActivityKind(kind), side=side and Side[side])
            await record_activities(tx, [act._replace(is_taker=is_taker)])
    expected = await dump(database, (activities,))
    assert [row[-1] for row in expected["activities"]] == list(ALL_ROLES)
    async with database.writing() as tx:
        await tx.execute(activities.update().values(role=0))
    await fill(database, "v0028_activities_by_role")
    assert await dump(database, (activities,)) == expected


async def test_the_migration_adds_up_the_volumes_of_builders(database: Database) -> None:
    """A builder of both orders of a trade, one of a single order, a failed trade, and sums beyond 63 bits."""
    async with database.writing() as tx:
        rows = Rows(tx)
        huge = AMOUNT_UNITS_MAX // 2
        for name, days, units in (
            ("rain", 0, huge),
            ("snow", 0, huge),
            ("hail", 1, 7),
            ("fog", 2, 9),
        ):
            await rows.open_named(name)
            await rows.match(name, units, NOW_MS - days * DAY_MS)
        await rows.match("rain", 8, NOW_MS, TradeStatus.FAILED)
        matched = sa.select(trades.c.taker_order_id, fills.c.maker_order_id).join_from(
            trades, fills, fills.c.trade_id == trades.c.trade_id
        )
        pairs = await tx.all(matched.order_by(trades.c.sequence))
        for number, pair in enumerate(pairs):
            codes = a_code(1), a_code(1 + number % 3)
            for order_id, code in zip(pair, codes, strict=True):
                brought = {"order_id": order_id, "builder": code}
                await rows.rest("bob", "rain", Side.BUY, 50, 10, **brought)
    expected = await slow_sums(database)
    assert [len(rows) for rows in expected.values()] == [5, 7, 3]
    assert expected["builder_totals"][0][1] >= 2**31
    await fill(database, "v0025_builder_volumes")
    assert await kept_sums(database) == expected
    async with database.writing() as tx:
        await tx.execute(builder_days.update().values(volume_low=1, users=9))
        await tx.execute(builder_totals.delete())
    assert await rebuild_builders(RebuildContext(database, lambda: NOW_MS)) == 3
    assert await kept_sums(database) == expected


async def test_the_migration_of_builders_adds_nothing_without_them(database: Database) -> None:
    async with database.writing() as tx:
        rows = Rows(tx)
        await rows.open_named("rain")
        await rows.match("rain", 7, NOW_MS)
    await fill(database, "v0025_builder_volumes")
    assert not any((await kept_sums(database)).values())
