"""Sums that are rebuilt while an indexer follows a chain that grows and reorganizes, against the chain's logs."""

from typing import Final

import pytest
from tests.indexer.rig import IndexerRig
from tests.reconciliation.history import EventActs, RandomHistory
from tests.rigs.sandbox import Sandbox
from typing_extensions import override

from foretell.domain.exchange.ledger import AssetId
from foretell.indexer.rebuild import Pacing, RebuildContext, rebuild_sums, rebuild_supplies
from foretell.reconciliation.verify import verify_data
from foretell.store.database import Database
from foretell.store.index.supplies import record_supplies
from foretell.store.tables import standings, supplies, trading_totals

pytestmark = pytest.mark.anyio

Market = tuple[IndexerRig, EventActs]

STEPS: Final = 12
ROWS_MAX: Final = 3
STEPS_BETWEEN: Final = 15
ACTS: Final = 6
SUPERFLUOUS: Final = AssetId("7")
"""A token that no wallet has held."""


class Meanwhile(Pacing):
    """Pauses in some of which the chain grows, is indexed, reorganizes, and is indexed again."""

    def __init__(self, history: RandomHistory) -> None:
        super().__init__()
        self._history = history
        self._steps = self._acts = self.unwound_blocks = 0

    @override
    async def pause(self) -> None:
        self._steps += 1
        if self._steps % STEPS_BETWEEN or self._acts == ACTS:
            return
        self._acts += 1
        before = self._history.unwound_blocks
        await self._history.grow()
        await self._history.reorganize()
        await self._history.look()
        self.unwound_blocks += self._history.unwound_blocks - before


async def test_sums_rebuilt_beside_an_indexer_are_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, fresh_database: Database
) -> None:
    await rebuild_beside(fresh_sandbox, market, fresh_database, 1)


async def test_sums_rebuilt_beside_an_indexer_on_postgresql_are_what_the_chain_says(
    fresh_sandbox: Sandbox, market: Market, postgres_database: Database
) -> None:
    await rebuild_beside(fresh_sandbox, market, postgres_database, 1)


async def rebuild_beside(sandbox: Sandbox, market: Market, database: Database, seed: int) -> None:
    """Rebuild spoiled sums, by another connection, between whose steps a random history goes on."""
    history = RandomHistory(sandbox, *market, database, seed)
    await history.play(STEPS)
    await spoil(database)
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert {each.table for each in report.differences} >= {"standings", "trading_totals"}
    meanwhile = Meanwhile(history)
    now_ms = await history.now_ms()
    async with Database(database.url) as other:
        await rebuild_sums(RebuildContext(other, lambda: now_ms, ROWS_MAX, pacing=meanwhile))
    assert meanwhile.unwound_blocks > 0
    await history.finish()
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def test_supplies_rebuilt_beside_an_indexer_are_what_the_chain_says(
    fresh_sandbox: Sandbox,
    market: Market,
    fresh_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await rebuild_supplies_beside(fresh_sandbox, market, fresh_database, monkeypatch)


async def test_supplies_rebuilt_beside_an_indexer_on_postgresql_are_what_the_chain_says(
    fresh_sandbox: Sandbox,
    market: Market,
    postgres_database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await rebuild_supplies_beside(fresh_sandbox, market, postgres_database, monkeypatch)


async def rebuild_supplies_beside(
    sandbox: Sandbox, market: Market, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rebuild wrong supplies, to which the indexer adds, and which it unwinds, after each step of one token."""
    monkeypatch.setattr("foretell.indexer.rebuild.TOKENS_PER_STEP_MAX", 1)
    monkeypatch.setattr(f"{__name__}.STEPS_BETWEEN", 1)
    history = RandomHistory(sandbox, *market, database, 1)
    await history.play(STEPS)
    async with database.writing() as tx:
        await tx.execute(supplies.update().values(units=supplies.c.units.concat("1")))
        await record_supplies(tx, {SUPERFLUOUS: 5})
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert report.differing == {"supplies"}
    meanwhile = Meanwhile(history)
    async with Database(database.url) as other:
        context = RebuildContext(other, lambda: 0, pacing=meanwhile)
        assert await rebuild_supplies(context) > ACTS
    assert meanwhile.unwound_blocks > 0
    await history.finish()
    report = await verify_data(database, sandbox.rpc, sandbox.deployment)
    assert [str(each) for each in report.differences] == []


async def spoil(database: Database) -> None:
    """Change what only a rebuild mends."""
    async with database.writing() as tx:
        await tx.execute(standings.update().values(gain_units=standings.c.gain_units + 1))
        await tx.execute(trading_totals.update().values(trades=trading_totals.c.trades + 1))
