"""The treasury's feed of collateral, where the tables were taken back and the same block comes again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.engine.rig import EngineRig, an_engine_rig
from tests.rigs.values import TOKEN

from foretell.domain.exchange.ledger import COLLATERAL
from foretell.store.database import Database
from foretell.store.index.unwind import unwind

pytestmark = pytest.mark.anyio


@pytest.fixture
async def rig(fresh_database: Database, tmp_path: Path) -> AsyncIterator[EngineRig]:
    """Two shards, and alice with a hundred tokens of collateral."""
    async with an_engine_rig(tmp_path, fresh_database) as rig:
        yield rig


async def test_guard_collateral_that_does_not_come_again_with_its_block_is_not_granted(
    rig: EngineRig,
) -> None:
    await rig.index([("alice", COLLATERAL, 500 * TOKEN)])
    assert await rig.run_once()
    assert rig.free_tokens() == 500
    async with rig.database.writing() as tx:
        await unwind(tx, 1)
    rig.blocks = 1
    await rig.index([("carol", COLLATERAL, TOKEN)])
    assert await rig.run_once()
    assert [rig.free_tokens(name) for name in ("alice", "carol")] == [100, 1]


async def test_a_block_that_was_compared_is_not_observed_again(rig: EngineRig) -> None:
    await rig.index([("alice", COLLATERAL, 500 * TOKEN)])
    assert await rig.run_once()
    sequence = rig.treasury.engine.synced_sequence
    assert await rig.run_once()
    assert rig.treasury.engine.synced_sequence == sequence
