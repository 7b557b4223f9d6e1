from typing import Any

import httpx
import pytest
from tests.creation.rig import CreationRig, CreatorClient, details_of, error_of

pytestmark = pytest.mark.anyio

SCALARS = {
    "requestId": str,
    "payloadHash": str,
    "status": str,
    "creator": str,
    "chainId": int,
    "expiresAt": int,
    "updatedAt": int,
    "errorMessage": str | None,
}
LISTS = {"txs", "registerResults", "metadataUpdates", "metadataUpdateTxPlan", "steps"}


async def pending(rig: CreationRig, **query: object) -> httpx.Response:
    return await rig.http.get("/pending", params={name: str(v) for name, v in query.items()})


async def found(rig: CreationRig, **query: object) -> str | None:
    answer = await pending(rig, **query)
    assert answer.status_code == 200, answer.text
    request = answer.json()["request"]
    return None if request is None else str(request["requestId"])


@pytest.mark.spec(73)
async def test_an_id_or_a_creator_is_needed(rig: CreationRig) -> None:
    answer = await pending(rig)
    only_chain = await pending(rig, chainId=80002)

    assert error_of(answer) == error_of(only_chain) == (400, "validation_error")
    assert details_of(answer)[0][0] == "creator"


@pytest.mark.spec(73)
@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"creator": "0x12"}, "creator"),
        ({"creator": "0x" + "12" * 20, "chainId": "x"}, "chainId"),
        ({"creator": "0x" + "12" * 20, "chainId": "0"}, "chainId"),
        ({"creator": "0x" + "12" * 20, "chainId": "-1"}, "chainId"),
        ({"requestId": "x" * 65}, "requestId"),
        ({"creator": "0x" + "12" * 20, "chain": "80002", "strict": "true"}, "chain"),
        ({"requestId": "x", "request_id": "x", "strict": "1"}, "request_id"),
        ({"creator": "0x" + "12" * 20, "strict": "maybe"}, "strict"),
    ],
)
async def test_a_malformed_query_is_refused_by_field(
    rig: CreationRig, query: dict[str, str], field: str
) -> None:
    answer = await pending(rig, **query)

    assert error_of(answer) == (400, "validation_error")
    assert details_of(answer)[0][0] == field


async def test_an_unknown_parameter_is_ignored_unless_the_client_wants_strictness(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    request_id = await creator.prepare()
    known = {"requestId": request_id, "creator": creator.address, "chainId": 80002}

    assert await found(rig, requestId=request_id, page="2") == request_id
    assert await found(rig, **known, strict="true") == request_id


@pytest.mark.spec(73)
async def test_id_creator_and_chain_must_agree(creator: CreatorClient) -> None:
    rig = creator.rig
    request_id = await creator.prepare()

    assert await found(rig, requestId=request_id) == request_id
    assert await found(rig, requestId=request_id, creator=creator.address) == request_id
    assert await found(rig, requestId=request_id, creator=creator.address.lower()) == request_id
    assert await found(rig, requestId=request_id, chainId=80002) == request_id
    refusals = [
        await pending(rig, requestId=request_id, creator="0x" + "12" * 20),
        await pending(rig, requestId=request_id, chainId=1),
        await pending(rig, requestId="00000000-0000-4000-8000-000000000000"),
        await pending(rig, requestId="x" * 64),
    ]
    assert {error_of(refused) for refused in refusals} == {(404, "request_not_found")}


@pytest.mark.spec(73, 74)
async def test_without_an_id_the_latest_request_that_can_continue_is_found(
    creator: CreatorClient,
) -> None:
    rig = creator.rig

    assert (await pending(rig, creator=creator.address)).json() == {"request": None}
    first = await creator.prepared()
    rig.clock.at_ms += 1
    unsigned = (await creator.ask(b"{}")).json()["requestId"]
    assert await found(rig, creator=creator.address) == first
    assert await found(rig, creator=creator.address, chainId=80002) == first
    assert await found(rig, creator=creator.address, chainId=137) is None
    assert await found(rig, requestId=unsigned) == unsigned
    rig.clock.at_ms += 1
    second = await creator.prepare(creator.payload(slug="other", binaryQuestion="Other?"))
    assert await found(rig, creator=creator.address) == second


@pytest.mark.spec(74)
async def test_a_prepared_request_is_found_after_an_hour_and_after_a_restart(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    creator.rig.clock.at_ms += 3_600_000
    await creator.rig.restart()

    assert await found(creator.rig, creator=creator.address) == request_id


@pytest.mark.spec(74)
async def test_a_finalized_or_failed_request_is_found_only_by_its_id(
    creator: CreatorClient,
) -> None:
    finalized = await creator.finalized()
    rig = creator.rig

    assert await found(rig, creator=creator.address) is None
    assert await found(rig, requestId=finalized) == finalized


@pytest.mark.spec(123)
async def test_any_client_may_read_a_request_and_sees_only_its_public_fields(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared()
    other = httpx.AsyncClient(
        transport=httpx.ASGITransport(creator.rig.app),  # type: ignore[arg-type]  # scopes
        base_url="http://worker",
    )

    answer = await other.get("/pending", params={"creator": creator.address})

    record = answer.json()["request"]
    assert record["requestId"] == request_id
    assert record["prepared"]["txPlan"]
    assert "signature" not in answer.text
    assert "nonce" not in record
    await other.aclose()


def check_record(record: dict[str, Any], status: str, *, is_prepared: bool) -> None:
    """Check that a record has exactly the published keys with the published types."""
    assert record["status"] == status
    assert record.keys() == {*SCALARS, *LISTS} | ({"prepared"} if is_prepared else set())
    for name, kind in SCALARS.items():
        assert isinstance(record[name], kind), name
    for name in LISTS:
        assert isinstance(record[name], list), name


@pytest.mark.spec(3, 43, 44, 45, 54)
async def test_the_record_has_its_schema_in_each_of_the_seven_statuses(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    raw = creator.payload()
    challenge = (await creator.ask(raw)).json()
    request_id = challenge["requestId"]

    check_record(await creator.record(request_id), "auth_pending", is_prepared=False)
    await creator.send(raw, creator.sign(challenge))
    check_record(await creator.record(request_id), "prepare_running", is_prepared=False)
    await rig.settle()
    check_record(await creator.record(request_id), "prepared", is_prepared=True)
    await creator.finalize(request_id, await creator.paid(request_id))
    check_record(await creator.record(request_id), "finalize_running", is_prepared=True)
    await rig.settle()
    record = await creator.record(request_id)
    check_record(record, "metadata_update_pending", is_prepared=True)
    await creator.finalize(request_id, await creator.execute(record["metadataUpdateTxPlan"]))
    check_record(await creator.record(request_id), "finalized", is_prepared=True)


@pytest.mark.spec(43, 45, 64)
async def test_the_record_has_its_schema_when_it_failed(creator: CreatorClient) -> None:
    rig = creator.rig
    other = rig.creator(await rig.newcomer("without a whitelist"))
    request_id = await other.prepare()
    rig.clock.at_ms += rig.options.prepare_deadline_ms + 1
    await rig.settle()

    record = await other.record(request_id)

    check_record(record, "failed", is_prepared=False)
    assert record["errorMessage"].startswith("creator_not_whitelisted: ")
