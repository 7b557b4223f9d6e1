from pathlib import Path

import pytest
from tests.creation.rig import CreationRig, CreatorClient
from tests.rigs.values import NOW_MS

from foretell.creation.context import CreationOptions
from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.creation.storages import Storage
from foretell.domain.values.hexadecimal import checksum_address
from foretell.domain.values.tokens import condition_id, token_pair
from foretell.media.blobs import BlobStore
from foretell.store.creation.markets import MarketRow, load_markets

pytestmark = pytest.mark.anyio


async def markets_of(rig: CreationRig) -> list[MarketRow]:
    async with rig.database.reading() as tx:
        return await load_markets(tx)


@pytest.mark.spec(3, 4, 48, 49, 50)
async def test_results_and_updates_are_what_the_chain_has(creator: CreatorClient) -> None:
    sandbox = creator.rig.sandbox
    record = await creator.record(await creator.finalized())

    (result,), (update,) = record["registerResults"], record["metadataUpdates"]

    assert result.keys() == {
        "key",
        "conditionId",
        "exchange",
        "tokenA",
        "tokenB",
        "alreadyRegistered",
        "txHash",
    }
    assert update.keys() == {"key", "conditionId", "metadataTxId", "metadataUri", "updateTxHash"}
    assert result["key"] == update["key"] == "binary"
    assert update["metadataUri"] == f"local://{update['metadataTxId']}"
    assert [item["marketKey"] for item in record["metadataUpdateTxPlan"]] == ["binary"]
    assert result["exchange"] == checksum_address(sandbox.deployment.exchange)
    tokens = token_pair(sandbox.deployment.collateral, result["conditionId"])
    assert (result["tokenA"], result["tokenB"]) == (str(tokens.yes), str(tokens.no))
    assert await sandbox.reader.is_registered(tokens, result["conditionId"])
    assert result["alreadyRegistered"] is False
    receipt = await sandbox.receipt(result["txHash"])
    assert receipt.is_success


async def test_a_market_trades_from_the_moment_its_request_is_finalized(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    watch = await rig.database.watch("markets")
    request_id = await creator.pending_update()
    before = await markets_of(rig)
    record = await creator.record(request_id)

    answer = await creator.finalize(
        request_id, await creator.execute(record["metadataUpdateTxPlan"])
    )

    assert (before, answer.json()["status"]) == ([], "finalized")
    assert await watch.wait(5)
    (market,) = await markets_of(rig)
    adapter = rig.sandbox.deployment.address(ContractName.DIRECT_RESOLUTION_ADAPTER)
    (update,) = record["metadataUpdates"]
    assert market.condition_id == condition_id(adapter, market.question_id)
    assert market.tokens == token_pair(rig.sandbox.deployment.collateral, market.condition_id)
    assert (market.market_key, market.slug) == ("binary", "rain-in-bergen")
    assert market.question == "Will it rain in Bergen?"
    assert (market.outcome_yes, market.outcome_no) == ("Yes", "No")
    assert market.exchange == rig.sandbox.deployment.exchange
    assert market.oracle == adapter
    assert market.resolution_type is ResolutionType.DIRECT
    assert (market.metadata_id, market.metadata_uri) == (
        update["metadataTxId"],
        update["metadataUri"],
    )
    assert (market.ticks_per_one, market.size_units_min, market.fee_rate_bps) == (
        100,
        5_000_000,
        0,
    )
    assert not market.is_neg_risk


async def test_a_market_keeps_the_address_of_its_metadata_when_the_storage_changes(
    creator: CreatorClient, tmp_path: Path
) -> None:
    """The item was stored, and its address published, under the storage before."""
    rig = creator.rig
    request_id = await creator.pending_update()
    record = await creator.record(request_id)
    rig.change(blobs=BlobStore(tmp_path / "blobs", Storage.ARWEAVE))
    await creator.finalize(request_id, await creator.execute(record["metadataUpdateTxPlan"]))
    (market,) = await markets_of(rig)
    (update,) = record["metadataUpdates"]
    assert market.metadata_uri == update["metadataUri"] == f"local://{market.metadata_id}"


async def test_the_operator_sets_the_terms_of_orders(creator: CreatorClient) -> None:
    rig = creator.rig
    rig.change(options=CreationOptions(ticks_per_one=1000, size_units_min=7, fee_rate_bps=30))

    await creator.finalized()

    (market,) = await markets_of(rig)
    assert (market.ticks_per_one, market.size_units_min, market.fee_rate_bps) == (1000, 7, 30)


async def test_markets_are_opened_one_after_the_other(creator: CreatorClient) -> None:
    rig = creator.rig
    for number in range(3):
        rig.clock.at_ms = NOW_MS + number
        await creator.finalized(
            creator.payload(slug=f"event-{number}", binaryQuestion=f"Question {number}?")
        )

    assert [market.slug for market in await markets_of(rig)] == ["event-0", "event-1", "event-2"]
