"""Finalization in the background: confirmations, registration and metadata."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from tests.creation.rig import CreationRig, CreatorClient, status_of
from tests.rigs import chain_snapshots
from tests.rigs.values import NOW_MS

from foretell.creation.context import CreationOptions
from foretell.domain.creation.request import RequestTrigger
from foretell.store.creation.requests import load_request, move_request

pytestmark = pytest.mark.anyio


async def with_confirmations(rig: CreationRig, blocks: int) -> None:
    rig.options = CreationOptions(confirmations=blocks)
    await rig.restart()


@pytest.mark.case("F-09")
async def test_finalization_waits_for_confirmations(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    await with_confirmations(rig, 3)
    request_id = await creator.prepared()
    await creator.finalize(request_id, await creator.paid(request_id))

    before = await sent_by_registrar(rig)
    await rig.sandbox.mine(1)
    await rig.runner.run_once()
    too_early = await sent_by_registrar(rig) - before
    await rig.sandbox.mine(1)
    await rig.runner.run_once()

    assert (too_early, await sent_by_registrar(rig) - before) == (0, 1)
    assert await status_of(creator, request_id) == "finalize_running"
    await rig.settle()
    assert await status_of(creator, request_id) == "metadata_update_pending"


async def sent_by_registrar(rig: CreationRig) -> int:
    address = rig.context.registrar.address
    return int(await rig.sandbox.rpc.call("eth_getTransactionCount", address, "pending"), 16)


@pytest.mark.spec(63)
async def test_metadata_that_the_chain_has_already_needs_no_update(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await creator.pending_update()
    update = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.execute(update)

    rig.clock.at_ms += 1
    async with rig.database.writing() as tx:
        held = await load_request(tx, request_id)
        assert held is not None
        await move_request(tx, held, RequestTrigger.FAIL, NOW_MS, error_message="made to fail")
    again = await creator.prepared()
    started = await creator.finalize(again)
    await rig.settle()
    final = (await creator.finalize(again)).json()

    assert started.json()["status"] == "finalize_in_progress"
    assert (final["status"], final["creatorTxCount"]) == ("finalized", 0)
    assert final["registerResults"][0]["alreadyRegistered"] is True
    assert final["registerResults"][0]["txHash"] is None
    assert final["metadataUpdates"][0]["updateTxHash"] is None


async def take_back(rig: CreationRig, snapshot: str) -> None:
    """Revert the chain to a snapshot."""
    await chain_snapshots.take_back(rig.sandbox.rpc, snapshot)


@pytest.mark.case("F-09")
async def test_finalization_waits_for_transactions_that_a_reorg_removed(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await creator.prepared()
    snapshot = await rig.sandbox.rpc.send("evm_snapshot")
    txs = await creator.paid(request_id)
    await creator.finalize(request_id, txs)

    await take_back(rig, snapshot)
    for _ in range(3):
        await rig.run_once()
    assert await status_of(creator, request_id) == "finalize_running"
    rig.clock.at_ms += rig.options.finalize_deadline_ms + 1
    await rig.settle()

    record = await creator.record(request_id)
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("tx_pending: ")
    assert record["registerResults"] == []


def ids(items: Sequence[Mapping[str, Any]]) -> list[str]:
    return [item["id"] for item in items]


@pytest.mark.case("F-09")
async def test_an_adopted_question_that_a_reorg_removed_is_not_registered(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    first = await creator.prepared()
    snapshot = await rig.sandbox.rpc.send("evm_snapshot")
    await creator.paid(first)
    second = await creator.prepared()
    assert ids((await creator.record(second))["prepared"]["txPlan"]) == []
    await creator.finalize(second)

    await take_back(rig, snapshot)
    await rig.run_once()
    assert await status_of(creator, second) == "finalize_running"
    rig.clock.at_ms += rig.options.finalize_deadline_ms + 1
    await rig.settle()

    record = await creator.record(second)
    assert record["status"] == "failed"
    assert "is not on the chain" in record["errorMessage"]
