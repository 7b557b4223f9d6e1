"""The sums of the index, rebuilt beside those that readers see."""

from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from rich.console import Console
from tests.rigs.read_apis import keep_rankings
from tests.rigs.rows import Rows
from tests.rigs.values import NOW_MS, TOKEN

from foretell.cli.index import run_rebuild_index
from foretell.indexer.rankings import RankingContext, rebuild_sums
from foretell.settings import Settings
from foretell.store.database import Database
from foretell.store.index.rankings.sums import empty_rankings
from foretell.store.tables import (
    rank_counts,
    standings,
    traded_markets,
    trading_total_changes,
    trading_totals,
    wins,
)

pytestmark = pytest.mark.anyio

TABLES = (standings, rank_counts, wins, traded_markets, trading_totals, trading_total_changes)


async def dump(database: Database) -> dict[str, list[Any]]:
    async with database.reading() as tx:
        return {
            table.name: sorted(tuple(row) for row in await tx.all(sa.select(table)))
            for table in TABLES
        }


async def some_sums(database: Database) -> dict[str, list[Any]]:
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
    kept = await dump(database)
    assert all(kept.values())
    return kept


async def spoil(database: Database) -> dict[str, list[Any]]:
    async with database.writing() as tx:
        await tx.execute(standings.update().values(gain_units=1))
        await tx.execute(trading_totals.update().values(trades=100))
        await tx.execute(traded_markets.delete())
    return await dump(database)


async def test_sums_are_rebuilt_while_readers_see_those_from_before(database: Database) -> None:
    kept = await some_sums(database)
    spoiled = await spoil(database)
    assert spoiled != kept
    async with database.reading() as reading:
        await reading.scalar(sa.select(sa.func.count()).select_from(standings))
        await rebuild_sums(RankingContext(database, lambda: NOW_MS, 2))
        seen = sorted(tuple(row) for row in await reading.all(sa.select(standings)))
    assert seen == spoiled["standings"]
    assert await dump(database) == kept


async def test_a_round_of_wiped_standings_begins_with_the_first_block(database: Database) -> None:
    kept = await some_sums(database)
    async with database.writing() as tx:
        await empty_rankings(tx)
    await keep_rankings(database)
    assert await dump(database) == kept


def test_the_command_rebuilds_the_sums_of_a_data_folder(tmp_path: Path) -> None:
    console = Console(record=True)
    run_rebuild_index(Settings(data=tmp_path), console)
    assert "rebuilt" in console.export_text()
