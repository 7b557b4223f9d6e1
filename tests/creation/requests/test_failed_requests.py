"""Requests that failed: what remains of them, and until when."""

import asyncio

import pytest
import sqlalchemy as sa
from tests.creation.rig import CreationRig, CreatorClient, error_of

from foretell.creation.worker import (
    FAILED_KEPT_MS,
    PAYLOADS_DROPPED_MAX,
    PLANNED_FAILED_KEPT_MS,
    clean_failed,
    run,
)
from foretell.domain.creation.request import CHALLENGE_LIFETIME_MS, RequestStatus
from foretell.store.tables import request_images, requests

pytestmark = pytest.mark.anyio

DEADLINE_S = 30.0


async def failed(rig: CreationRig, creator: CreatorClient) -> tuple[str, bytes, dict[str, object]]:
    """Have a request fail because its creator has no whitelist; return its id, payload and envelope."""
    raw = creator.payload(slug="never")
    challenge = (await creator.ask(raw)).json()
    envelope = creator.sign(challenge)
    assert (await creator.send(raw, envelope)).status_code == 200
    rig.clock.move(rig.options.prepare_deadline_ms + 1)
    await rig.settle(pause_ms=1_000)
    return challenge["requestId"], raw, envelope


async def stored_bytes(rig: CreationRig) -> int:
    """Return the bytes of all payloads and images that wait."""
    async with rig.database.reading() as tx:
        return sum(
            [
                await tx.scalar(sa.select(sa.func.coalesce(sa.func.sum(sa.func.length(column)), 0)))
                for column in (requests.c.payload, request_images.c.content)
            ]
        )


async def left_by_an_earlier_version(rig: CreationRig, request_id: str, copies: int = 1) -> None:
    """Give a failed request its payload and an image again, and others like it."""
    async with rig.database.writing() as tx:
        row = await tx.first(sa.select(requests).where(requests.c.request_id == request_id))
        assert row is not None
        for number in range(copies):
            name = f"{request_id} {number}"
            values = {**row._mapping, "request_id": name, "payload": b"{}"}
            await tx.execute(requests.insert().values(values))
            image = {"request_id": name, "field": "eventImage", "content": b"1"}
            await tx.execute(request_images.insert().values(image))


async def test_attack_h5_nothing_but_a_small_row_stays_of_a_creator_without_a_whitelist(
    rig: CreationRig,
) -> None:
    creator = rig.creator(await rig.newcomer("stranger"))
    request_id, raw, envelope = await failed(rig, creator)

    record = await creator.record(request_id)
    again = await creator.send(raw, envelope)
    other = await creator.send(raw + b" ", envelope)

    assert await stored_bytes(rig) == 0
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("creator_not_whitelisted: ")
    assert record["steps"][1]["state"] == "failed"
    assert (again.status_code, again.json()["status"]) == (200, "failed")
    assert error_of(other) == (409, "invalid_state")


async def test_attack_h5_nothing_stays_of_a_request_that_another_replaced(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    first = await creator.prepared()
    rig.clock.move(1)
    await creator.prepared(creator.payload(title="Another title"))

    async with rig.database.reading() as tx:
        is_it = requests.c.request_id == first
        row = await tx.first(sa.select(requests).where(is_it))

    assert row is not None
    assert (row.status, row.payload) == (RequestStatus.FAILED, None)
    assert (await creator.record(first))["prepared"]["txPlan"]


async def test_attack_h5_the_worker_cleans_what_an_earlier_version_left(rig: CreationRig) -> None:
    request_id, _, _ = await failed(rig, rig.creator(await rig.newcomer("stranger")))
    await left_by_an_earlier_version(rig, request_id)
    before = await stored_bytes(rig)
    working = asyncio.create_task(run(rig.context))

    async with asyncio.timeout(DEADLINE_S):
        while await stored_bytes(rig):  # noqa: ASYNC110 - the condition has no event to wait for
            await asyncio.sleep(0.02)
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)

    assert before == 3


async def test_guard_old_payloads_are_dropped_in_parts(rig: CreationRig) -> None:
    request_id, _, _ = await failed(rig, rig.creator(await rig.newcomer("stranger")))
    await left_by_an_earlier_version(rig, request_id, PAYLOADS_DROPPED_MAX + 1)

    goes_on = [await clean_failed(rig.context)]
    left = await stored_bytes(rig)
    goes_on += [await clean_failed(rig.context) for _ in range(2)]

    assert left == 3
    assert await stored_bytes(rig) == 0
    assert goes_on == [True, True, False]


async def test_attack_h5_a_request_that_failed_without_a_plan_is_forgotten_after_a_week(
    rig: CreationRig,
) -> None:
    creator = rig.creator(await rig.newcomer("stranger"))
    request_id, _, _ = await failed(rig, creator)
    rig.clock.move(FAILED_KEPT_MS - 60_000)
    assert not await clean_failed(rig.context)
    kept = await creator.record(request_id)
    rig.clock.move(CHALLENGE_LIFETIME_MS + 120_000)

    assert await clean_failed(rig.context)

    assert kept["status"] == "failed"
    gone = await rig.http.get("/pending", params={"requestId": request_id})
    assert error_of(gone) == (404, "request_not_found")


async def test_a_request_that_failed_with_a_plan_is_shown_for_a_month(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    first = await creator.prepared()
    rig.clock.move(1)
    second = await creator.prepared()
    rig.clock.move(PLANNED_FAILED_KEPT_MS - 60_000)
    assert not await clean_failed(rig.context)
    kept = await creator.record(first)
    rig.clock.move(120_000)

    assert await clean_failed(rig.context)
    assert not await clean_failed(rig.context)

    assert kept["status"] == "failed"
    gone = await rig.http.get("/pending", params={"requestId": first})
    assert error_of(gone) == (404, "request_not_found")
    assert (await creator.record(second))["status"] == "prepared"
