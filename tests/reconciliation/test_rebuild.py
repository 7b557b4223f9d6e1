"""Sums that are rebuilt while an indexer follows a chain that grows and reorganizes, against the chain's logs."""

import asyncio
from typing import Final

import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import EventActs, RandomHistory
from tests.rigs.sandbox import Sandbox

from foretell.indexer.rebuild import RebuildContext, rebuild_sums
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.tables import standings, trading_totals

pytestmark = pytest.mark.anyio

Market = tuple[IndexerRig, EventActs]

STEPS: Final = 12
ROWS_MAX: Final = 3
REBUILT_MIN: Final = 2


async def test_sums_rebuilt_beside_an_indexer_are_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database
) -> None:
    await rebuild_beside(fresh_sandbox, market, fresh_database, 1)


async def test_sums_rebuilt_beside_an_indexer_on_postgresql_are_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, postgres_database: Database
) -> None:
    await rebuild_beside(fresh_sandbox, market, postgres_database, 2)


async def rebuild_beside(sandbox: Sandbox, market: Market, database: Database, seed: int) -> None:
    """Rebuild spoiled sums, by another connection, while a random history goes on."""
    history = RandomHistory(sandbox, *market, database, seed)
    await history.play(STEPS)
    await spoil(database)
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert {each.table for each in report.differences} >= {"standings", "trading_totals"}
    unwound_blocks = history.unwound_blocks
    async with Database(database.url) as other, asyncio.TaskGroup() as tasks:
        rebuilding = [tasks.create_task(rebuild(other, history))]
        while len(rebuilding) < REBUILT_MIN or not rebuilding[-1].done():
            if rebuilding[-1].done():
                rebuilding.append(tasks.create_task(rebuild(other, history)))
            await history.grow()
            await history.reorganize()
            await history.look()
    assert history.unwound_blocks > unwound_blocks
    await history.finish()
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def rebuild(database: Database, history: RandomHistory) -> None:
    header = await history.sandbox.reader.header("latest")
    assert header is not None
    now_ms = header.timestamp_s * 1000
    await rebuild_sums(RebuildContext(database, lambda: now_ms, ROWS_MAX))


async def spoil(database: Database) -> None:
    """Change what only a rebuild mends."""
    async with database.writing() as tx:
        await tx.execute(standings.update().values(gain_units=standings.c.gain_units + 1))
        await tx.execute(trading_totals.update().values(trades=trading_totals.c.trades + 1))
