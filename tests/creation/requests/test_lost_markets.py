"""Ruling: a market whose creation a reorganization undoes is halted beside its record, and keeps its names."""

import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.sandbox import an_indexer, catch_up

from foretell.creation.lost_markets import compare_markets
from foretell.store.creation.halted_markets import load_halted
from foretell.store.tables import claims

pytestmark = pytest.mark.anyio


async def look(rig: CreationRig) -> list[str]:
    """Index the chain, compare the markets with it, and return the halted ones."""
    await catch_up(an_indexer(rig.sandbox, rig.database))
    await compare_markets(rig.context)
    async with rig.database.reading() as tx:
        return [each.condition_id for each in await load_halted(tx)]


async def claimed(rig: CreationRig) -> list[str]:
    async with rig.database.reading() as tx:
        return sorted(row.name for row in await tx.all(sa.select(claims.c.name)))


@pytest.mark.case("F-09")
async def test_a_creation_that_a_reorg_undoes_halts_its_market_until_it_comes_back(
    creator: CreatorClient,
) -> None:
    rig, rpc = creator.rig, creator.rig.sandbox.rpc
    request_id = await creator.prepared()
    before = await rpc.send("evm_snapshot")
    plan = (await creator.record(request_id))["prepared"]["txPlan"]
    await creator.finalize(request_id, await creator.execute(plan))
    await rig.settle()
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.finalize(request_id, await creator.execute(updates))
    record = await creator.record(request_id)
    assert (record["status"], record["errorMessage"]) == ("finalized", None)
    names = await claimed(rig)
    assert await look(rig) == []

    assert await rpc.send("evm_revert", before)
    await rig.sandbox.mine(20)
    (halted,) = await look(rig)
    assert await look(rig) == [halted]
    record = await creator.record(request_id)
    assert record["status"] == "finalized"
    assert record["errorMessage"] == (
        f"halted: a reorganization of the chain removed market {halted};"
        " it resumes when the chain has it again"
    )
    assert await claimed(rig) == names

    await creator.execute(plan)
    assert await look(rig) == []
    assert (await creator.record(request_id))["errorMessage"] is None


async def test_a_market_that_the_index_does_not_have_yet_is_not_halted(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    await creator.finalized()
    await compare_markets(rig.context)
    async with rig.database.reading() as tx:
        assert await load_halted(tx) == []
