from dataclasses import replace
from typing import Any

import pytest
from tests.rigs.values import CHAIN_ID, NOW_MS, a_word, an_address

from foretell.domain.creation.plan import PlanItem, PlanTx
from foretell.domain.creation.request import (
    CHALLENGE_LIFETIME_MS,
    Challenge,
    RequestStatus,
    RequestTrigger,
)
from foretell.domain.errors.families import IllegalTransition
from foretell.store.creation.challenges import record_challenge
from foretell.store.creation.requests import (
    CreationRequest,
    drop_images,
    load_images,
    load_latest,
    load_request,
    load_running,
    move_request,
    record_image_ids,
    record_images,
    record_txs,
    record_verified,
)
from foretell.store.database import Database

pytestmark = pytest.mark.anyio

ITEM = PlanItem("initialize-market-1", an_address("adapter"), b"\x01", "Initialize", "binary")
EXPIRES_AT_MS = NOW_MS + CHALLENGE_LIFETIME_MS


def a_challenge(request_id: str = "request", **fields: Any) -> Challenge:
    challenge = Challenge(
        request_id=request_id,
        creator=an_address("creator"),
        payload_hash=a_word("payload"),
        nonce=a_word("nonce"),
        expires_at_ms=EXPIRES_AT_MS,
        chain_id=CHAIN_ID,
    )
    return replace(challenge, **fields)


async def given(database: Database, *challenges: Challenge, now_ms: int = NOW_MS) -> None:
    async with database.writing() as tx:
        for challenge in challenges:
            await record_challenge(tx, challenge, "client", now_ms)


async def loaded(database: Database, request_id: str = "request") -> CreationRequest:
    async with database.reading() as tx:
        request = await load_request(tx, request_id)
    assert request is not None
    return request


async def move(
    database: Database, trigger: str, request_id: str = "request", **changes: Any
) -> bool:
    request = await loaded(database, request_id)
    async with database.writing() as tx:
        return await move_request(tx, request, RequestTrigger(trigger), NOW_MS + 5, **changes)


@pytest.mark.spec(56)
async def test_a_challenge_is_stored_and_can_be_resumed(database: Database) -> None:
    challenge = a_challenge()
    await given(database, challenge)

    assert await loaded(database) == CreationRequest(
        challenge=challenge,
        status=RequestStatus.AUTH_PENDING,
        created_at_ms=NOW_MS,
        updated_at_ms=NOW_MS,
        entered_at_ms=NOW_MS,
        error_message=None,
        payload=None,
        signature=None,
        images_hash=None,
        image_ids={},
        plan=None,
        register_results=(),
        metadata_updates=(),
        metadata_plan=(),
        txs=(),
    )


async def test_an_unknown_request_is_none(database: Database) -> None:
    async with database.reading() as tx:
        assert await load_request(tx, "request") is None
        assert await load_latest(tx, an_address("creator"), None, NOW_MS) is None
        assert await load_running(tx) == []


async def test_a_move_stores_its_changes(database: Database) -> None:
    await given(database, a_challenge())

    assert await move(database, "prepare", payload=b"{}", signature="0x12")
    assert await move(database, "plan_built", plan=[ITEM])

    request = await loaded(database)
    assert request.status is RequestStatus.PREPARED
    assert (request.payload, request.signature, request.plan) == (b"{}", "0x12", (ITEM,))
    assert request.updated_at_ms == request.entered_at_ms == NOW_MS + 5
    assert request.created_at_ms == NOW_MS


async def test_a_move_from_an_outdated_status_does_nothing(
    database: Database,
) -> None:
    await given(database, a_challenge())
    stale = await loaded(database)
    assert await move(database, "fail", error_message="over")

    async with database.writing() as tx:
        assert not await move_request(tx, stale, RequestTrigger.PREPARE, NOW_MS, payload=b"{}")

    request = await loaded(database)
    assert (request.status, request.error_message) == (RequestStatus.FAILED, "over")
    assert request.payload is None


async def test_a_move_that_the_table_does_not_list_is_refused(database: Database) -> None:
    await given(database, a_challenge())

    with pytest.raises(IllegalTransition):
        await move(database, "finalize")


async def test_a_move_wakes_the_watches_on_requests(database: Database) -> None:
    await given(database, a_challenge())
    watch = await database.watch("requests")

    await move(database, "prepare")

    assert await watch.wait(5)


@pytest.mark.spec(59)
async def test_hashes_are_stored_and_replaced_by_item(database: Database) -> None:
    await given(database, a_challenge())
    request = await loaded(database)
    first = [PlanTx("b", a_word("1")), PlanTx("a", a_word("2"))]
    async with database.writing() as tx:
        assert await record_txs(tx, request, first, NOW_MS + 1)
        await record_verified(tx, "request", ["a"])
    async with database.writing() as tx:
        assert await record_txs(tx, request, [PlanTx("b", a_word("3"))], NOW_MS + 2)
        assert await record_txs(tx, request, [], NOW_MS + 3)

    request = await loaded(database)

    assert [(each.item_id, each.tx_hash, each.is_verified) for each in request.txs] == [
        ("a", a_word("2"), True),
        ("b", a_word("3"), False),
    ]
    assert request.hash_by_id == {"a": a_word("2"), "b": a_word("3")}
    assert request.updated_at_ms == NOW_MS + 2


async def test_hashes_for_a_request_that_moved_on_are_not_stored(database: Database) -> None:
    await given(database, a_challenge())
    stale = await loaded(database)
    await move(database, "prepare")

    async with database.writing() as tx:
        assert not await record_txs(tx, stale, [PlanTx("a", a_word("1"))], NOW_MS)

    assert (await loaded(database)).txs == ()


async def test_images_are_stored_until_they_are_dropped(database: Database) -> None:
    await given(database, a_challenge())
    async with database.writing() as tx:
        await record_images(tx, "request", {"eventImage": b"\x00\xff", "optionImage:a": b"2"})
    async with database.reading() as tx:
        kept = await load_images(tx, "request")
    async with database.writing() as tx:
        await record_image_ids(tx, "request", {"eventImage": "id"}, NOW_MS + 1)
        await drop_images(tx, "request")

    assert kept == {"eventImage": b"\x00\xff", "optionImage:a": b"2"}
    assert (await loaded(database)).image_ids == {"eventImage": "id"}
    async with database.reading() as tx:
        assert await load_images(tx, "request") == {}


async def test_running_requests_are_found_the_longest_waiting_first(database: Database) -> None:
    for index in range(4):
        await given(database, a_challenge(f"request-{index}"), now_ms=NOW_MS + index)
    for index in (2, 0, 1):
        request = await loaded(database, f"request-{index}")
        async with database.writing() as tx:
            await move_request(tx, request, RequestTrigger.PREPARE, NOW_MS + 10 - index)
    await move(database, "plan_built", "request-1")

    async with database.reading() as tx:
        running = await load_running(tx)
    assert [each.request_id for each in running] == ["request-2", "request-0"]


async def latest(
    database: Database, chain_id: int | None = None, now_ms: int = NOW_MS
) -> str | None:
    async with database.reading() as tx:
        request = await load_latest(tx, an_address("creator"), chain_id, now_ms)
    return None if request is None else request.request_id


@pytest.mark.spec(74)
async def test_the_newest_signed_request_comes_before_any_unsigned(database: Database) -> None:
    for index, name in enumerate(["old", "signed", "unsigned", "newest unsigned"]):
        await given(database, a_challenge(name), now_ms=NOW_MS + index)
    assert await latest(database) == "newest unsigned"

    await move(database, "prepare", "old")
    await move(database, "prepare", "signed")

    assert await latest(database) == "signed"


@pytest.mark.spec(74)
@pytest.mark.parametrize(
    ("triggers", "is_found"),
    [
        (["prepare"], True),
        (["prepare", "plan_built"], True),
        (["prepare", "plan_built", "finalize"], True),
        (["prepare", "plan_built", "finalize", "updates_needed"], True),
        (["prepare", "plan_built", "finalize", "complete"], False),
        (["prepare", "fail"], False),
    ],
)
async def test_an_ended_request_is_not_resumed_and_a_signed_one_never_expires(
    database: Database, triggers: list[str], *, is_found: bool
) -> None:
    await given(database, a_challenge())
    for trigger in triggers:
        await move(database, trigger)

    found = await latest(database, now_ms=EXPIRES_AT_MS + 3_600_000)

    assert found == ("request" if is_found else None)


async def test_an_unsigned_request_is_resumed_until_it_expires(database: Database) -> None:
    await given(database, a_challenge())

    assert await latest(database, now_ms=EXPIRES_AT_MS) == "request"
    assert await latest(database, now_ms=EXPIRES_AT_MS + 1) is None


@pytest.mark.spec(73)
async def test_the_latest_request_is_that_of_the_chain_and_the_creator(database: Database) -> None:
    await given(
        database,
        a_challenge("here"),
        a_challenge("there", chain_id=137),
        a_challenge("other", creator=an_address("other")),
    )

    assert await latest(database, chain_id=CHAIN_ID) == "here"
    assert await latest(database, chain_id=137) == "there"
    assert await latest(database, chain_id=1) is None
