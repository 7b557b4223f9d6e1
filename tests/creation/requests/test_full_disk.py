"""Uploads of creators while the disk is nearly full: what is left of it is for orders."""

import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of, status_of

from foretell.store.creation.requests import load_images

pytestmark = pytest.mark.anyio


def leave_free(monkeypatch: pytest.MonkeyPatch, part: float) -> None:
    """Have stores leave this part of the disk."""
    monkeypatch.setattr("foretell.media.blobs.FREE_BYTES_MIN", 2**63)
    monkeypatch.setattr("foretell.media.blobs.FREE_PART_MIN", part)


def blobs_of(rig: CreationRig) -> list[str]:
    return sorted(str(path) for path in (rig.folder / "blobs").rglob("*") if path.is_file())


async def test_attack_l3_an_upload_beside_a_nearly_full_disk_is_refused_and_can_be_sent_again(
    monkeypatch: pytest.MonkeyPatch, rig: CreationRig, creator: CreatorClient
) -> None:
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)
    leave_free(monkeypatch, 1.0)
    refused = await creator.send(raw, envelope)
    assert error_of(refused) == (502, "storage_unavailable")
    assert "its disk is nearly full" in refused.text
    assert await status_of(creator, challenge["requestId"]) == "auth_pending"
    async with rig.database.reading() as tx:
        assert not await load_images(tx, challenge["requestId"])
    leave_free(monkeypatch, 0.0)
    assert (await creator.send(raw, envelope)).status_code == 200


async def test_attack_l3_a_preparation_beside_a_nearly_full_disk_waits_and_stores_nothing(
    monkeypatch: pytest.MonkeyPatch, rig: CreationRig, creator: CreatorClient
) -> None:
    request_id = await creator.prepare()
    before = blobs_of(rig)
    leave_free(monkeypatch, 1.0)
    await rig.run_once()
    assert blobs_of(rig) == before
    record = await creator.record(request_id)
    assert record["status"] == "prepare_running"
    (step,) = [each for each in record["steps"] if each["state"] == "waiting"]
    assert step["message"] == (
        "the storage is unavailable: its disk is nearly full; it is tried again, and there is nothing to do"
    )
    leave_free(monkeypatch, 0.0)
    await rig.settle(pause_ms=60_000)
    assert await status_of(creator, request_id) == "prepared"


async def test_attack_l3_markets_that_were_paid_for_open_beside_a_nearly_full_disk(
    monkeypatch: pytest.MonkeyPatch, rig: CreationRig, creator: CreatorClient
) -> None:
    request_id = await creator.prepared()
    leave_free(monkeypatch, 1.0)
    answer = await creator.finalize(request_id, await creator.paid(request_id))
    assert answer.status_code == 200, answer.text
    await rig.settle()
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    answer = await creator.finalize(request_id, await creator.execute(updates))
    assert answer.json()["status"] == "finalized"
