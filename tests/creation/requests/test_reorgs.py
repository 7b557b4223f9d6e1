"""Reorgs as deep as the confirmations, at every step of a creation."""

import pytest
from tests.creation.rig import CreationRig, CreatorClient, status_of

from foretell.creation.context import CreationOptions
from foretell.store.creation.markets import load_markets

pytestmark = pytest.mark.anyio

CONFIRMATIONS = 2
PASSES = 8


async def check_markets(rig: CreationRig) -> int:
    """Check that each market that trades has its condition and its tokens on the chain; return how many."""
    async with rig.database.reading() as tx:
        markets = await load_markets(tx)
    for market in markets:
        exchange = rig.sandbox.deployment.exchange
        assert await rig.sandbox.reader.is_registered(market.tokens, market.condition_id, exchange)
    return len(markets)


async def reorganize(rig: CreationRig) -> None:
    """Replace the newest blocks by empty ones, and follow the chain as it is then."""
    await rig.sandbox.rpc.send("anvil_reorg", CONFIRMATIONS, [])


@pytest.fixture
async def careful(rig: CreationRig) -> CreatorClient:
    """A creator at a worker that waits for confirmations."""
    rig.options = CreationOptions(confirmations=CONFIRMATIONS)
    await rig.restart()
    return rig.creator()


async def update(creator: CreatorClient, request_id: str) -> str:
    """Send what the worker asks for, if it does, and return the status."""
    record = await creator.record(request_id)
    if record["status"] == "metadata_update_pending":
        await creator.finalize(request_id, await creator.execute(record["metadataUpdateTxPlan"]))
    return await status_of(creator, request_id)


@pytest.mark.case("F-09")
@pytest.mark.parametrize("passes", range(8))
async def test_no_market_trades_without_its_condition_after_a_reorg_at_any_pass(
    careful: CreatorClient, passes: int
) -> None:
    """A reorg may remove the creator's transactions, the registration or the metadata's update."""
    rig = careful.rig
    request_id = await careful.prepared()
    await careful.finalize(request_id, await careful.paid(request_id))
    for _ in range(passes):
        await rig.run_once()
        await update(careful, request_id)
    await check_markets(rig)
    await reorganize(rig)
    await check_markets(rig)
    for _ in range(PASSES):
        await rig.run_once()
        await update(careful, request_id)
        await check_markets(rig)
    is_finalized = await update(careful, request_id) == "finalized"
    assert is_finalized is (passes > 0)
    assert await check_markets(rig) == is_finalized
