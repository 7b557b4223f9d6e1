"""Claims of names: slugs and conditions that a request keeps from other requests."""

import asyncio
import json

import pytest
from tests.creation.rig import CreationRig, CreatorClient, error_of

from foretell.domain.creation.request import CLAIM_LIFETIME_MS
from foretell.store.creation.claims import record_claims

FEE_UNITS = 5_000_000

pytestmark = pytest.mark.anyio


def duplicates(raw: bytes) -> set[str]:
    return set(json.loads(raw)["error"]["details"]["duplicates"][0])


async def test_a_trading_market_is_not_created_again(creator: CreatorClient) -> None:
    await creator.finalized()

    same = creator.payload()
    same_slug = creator.payload(binaryQuestion="Something else?")
    same_question = creator.payload(slug="another-name")
    refusals = []
    for raw in (same, same_slug, same_question):
        challenge = (await creator.ask(raw)).json()
        refusals.append(await creator.send(raw, creator.sign(challenge)))
        assert (await creator.record(challenge["requestId"]))["status"] == "auth_pending"

    assert {error_of(refused) for refused in refusals} == {(409, "already_initialized")}
    assert [duplicates(refused.content) for refused in refusals] == [
        {"key", "slug", "questionId", "conditionId"}
    ] * 3


@pytest.mark.case("F-06")
async def test_the_second_of_two_creators_with_one_slug_is_refused(creator: CreatorClient) -> None:
    """Its claim lasts to the millisecond, and its challenge expires before."""
    rig = creator.rig
    other = rig.creator(await rig.newcomer("other"))
    await creator.prepared()

    raw = other.payload()
    challenge = (await other.ask(raw)).json()
    envelope = other.sign(challenge)
    refused = await other.send(raw, envelope)
    rig.clock.at_ms += CLAIM_LIFETIME_MS
    still_refused = await other.send(raw, envelope)

    assert error_of(refused) == (409, "already_initialized")
    assert error_of(still_refused) == (401, "auth_expired")


async def test_a_slug_of_an_unverified_request_is_free_after_an_hour(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    first = await creator.prepared()
    rig.clock.at_ms += CLAIM_LIFETIME_MS + 1
    account = await rig.newcomer("other", 5_000_000)
    await rig.whitelist(account)

    second = await rig.creator(account).prepared()

    superseded = await creator.record(first)
    assert superseded["status"] == "failed"
    assert superseded["errorMessage"] == f"superseded: request {second} creates these markets"


async def test_a_slug_of_a_verified_request_is_kept_permanently(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    first = await creator.pending_update()
    rig.clock.at_ms += 100 * CLAIM_LIFETIME_MS
    other = rig.creator(await rig.newcomer("other"))

    raw = other.payload()
    challenge = (await other.ask(raw)).json()
    refused = await other.send(raw, other.sign(challenge))

    assert error_of(refused) == (409, "already_initialized")
    assert (await creator.record(first))["status"] == "metadata_update_pending"


@pytest.mark.case("F-07")
async def test_concurrent_creators_with_one_name_create_one_market(rig: CreationRig) -> None:
    creators = [rig.creator(await rig.newcomer(f"creator {n}", FEE_UNITS)) for n in range(5)]
    signed = []
    for each in creators:
        await rig.whitelist(each.account)
        raw = each.payload()
        signed.append((each, raw, each.sign((await each.ask(raw)).json())))

    answers = await asyncio.gather(*(each.send(raw, envelope) for each, raw, envelope in signed))
    await rig.settle()

    records = [
        await each.record(answer.json()["requestId"])
        for each, answer in zip(creators, answers, strict=True)
    ]
    failed = [record for record in records if record["status"] == "failed"]
    assert [record["status"] for record in records].count("prepared") == 1
    assert len(failed) == 4
    assert {record["errorMessage"].split(":")[0] for record in failed} == {"already_initialized"}


@pytest.mark.deviation(3)
@pytest.mark.parametrize("has_whitelist", [False, True])
async def test_a_creator_without_a_whitelist_or_the_collateral_keeps_no_name_from_others(
    rig: CreationRig, *, has_whitelist: bool
) -> None:
    stranger = await rig.newcomer("stranger", 0 if has_whitelist else FEE_UNITS)
    if has_whitelist:
        await rig.whitelist(stranger)
    waiting = await rig.creator(stranger).prepare()
    await rig.run_once()
    account = await rig.newcomer("other", FEE_UNITS)
    await rig.whitelist(account)
    other = rig.creator(account)

    prepared = await other.prepare()
    await rig.run_once()
    await rig.give(stranger.address, FEE_UNITS)
    if not has_whitelist:
        await rig.whitelist(stranger)
    await rig.settle(pause_ms=1_000)

    record = await rig.creator(stranger).record(waiting)
    assert (await other.record(prepared))["status"] == "prepared"
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("already_initialized: ")


async def test_a_second_request_of_a_creator_adopts_its_questions_and_pays_nothing_twice(
    creator: CreatorClient,
) -> None:
    reader = creator.rig.sandbox.reader
    first = await creator.prepared()
    await creator.paid(first)
    paid = await reader.collateral_units(creator.account.address)

    second = await creator.prepared()
    plan = (await creator.record(second))["prepared"]["txPlan"]
    answer = await creator.finalize(second)
    await creator.rig.settle()
    record = await creator.record(second)
    updates = await creator.execute(record["metadataUpdateTxPlan"])
    final = (await creator.finalize(second, updates)).json()

    assert (await creator.record(first))["status"] == "failed"
    assert plan == []
    assert answer.json()["status"] == "finalize_in_progress"
    assert (final["status"], final["creatorTxCount"]) == ("finalized", 1)
    assert await reader.collateral_units(creator.account.address) == paid


async def test_a_request_that_claimed_when_it_began_goes_on(rig: CreationRig) -> None:
    """Earlier versions claimed names with the signature."""
    account = await rig.newcomer("before the update", FEE_UNITS)
    await rig.whitelist(account)
    creator = rig.creator(account)
    request_id = await creator.prepare()
    slug = json.loads(creator.payload())["slug"]
    async with rig.database.writing() as tx:
        assert await record_claims(tx, request_id, [slug], (), rig.clock.at_ms)

    await rig.settle()

    assert (await creator.record(request_id))["status"] == "prepared"


async def test_a_creator_does_not_renew_a_claim_by_another_request(creator: CreatorClient) -> None:
    rig = creator.rig
    for _ in range(3):
        await creator.prepared()
        rig.clock.move(CLAIM_LIFETIME_MS // 2)
    account = await rig.newcomer("other", FEE_UNITS)
    await rig.whitelist(account)
    other = rig.creator(account)

    prepared = await other.prepared()

    assert (await other.record(prepared))["status"] == "prepared"
