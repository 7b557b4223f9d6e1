"""Requests of several markets, and of both resolution stacks, from payload to markets that trade."""

import io
from collections.abc import Sequence
from typing import Any

import pytest
from eth_abi.abi import decode, encode
from PIL import Image
from tests.creation.rig import CreationRig, CreatorClient, error_of
from tests.rigs.payloads import an_option, event_fields
from tests.rigs.pictures import a_picture

from foretell.domain.contracts.deployment import ContractName
from foretell.domain.creation.payload import ResolutionType
from foretell.domain.values.hexadecimal import checksum_address, keccak256, parse_bytes32
from foretell.domain.values.tokens import condition_id, token_pair
from foretell.store.creation.markets import MarketRow, load_markets

pytestmark = pytest.mark.anyio

ASKED = ["bytes", "address", "uint256", "uint256", "uint256"]
ADDED = ["bytes32", "bytes", "bytes32"]


async def markets_of(rig: CreationRig) -> list[MarketRow]:
    async with rig.database.reading() as tx:
        return await load_markets(tx)


def ids_in(plan: Sequence[dict[str, Any]]) -> list[str]:
    return [item["id"] for item in plan]


@pytest.mark.spec(9, 14, 46, 47)
@pytest.mark.parametrize("stack", ["dro_moov2", "alt_moov2"])
@pytest.mark.parametrize("mode", ["binary", "multi_multiple"])
async def test_binary_markets_are_created_on_both_stacks(
    creator: CreatorClient, mode: str, stack: str
) -> None:
    rig = creator.rig
    fields = {} if mode == "binary" else event_fields(mode, count=2)
    raw = creator.payload(resolutionType=stack, **fields)

    record = await creator.record(await creator.finalized(raw))

    deployment = rig.sandbox.deployment
    is_direct = stack == "dro_moov2"
    name = (
        ContractName.DIRECT_RESOLUTION_ADAPTER
        if is_direct
        else ContractName.OPTIMISTIC_RESOLUTION_ADAPTER
    )
    adapter = deployment.address(name)
    markets = await markets_of(rig)
    approval = "approve-direct-resolution-fee" if is_direct else "approve-resolution-reward"
    count = len(markets)
    assert ids_in(record["prepared"]["txPlan"]) == [
        approval,
        *(f"initialize-market-{number}" for number in range(1, count + 1)),
    ]
    assert count == (1 if mode == "binary" else 2)
    assert [market.condition_id for market in markets] == [
        condition_id(adapter, market.question_id) for market in markets
    ]
    assert {(market.exchange, market.oracle) for market in markets} == {
        (deployment.exchange, adapter)
    }
    assert {market.resolution_type for market in markets} == {ResolutionType(stack)}
    assert not any(market.is_neg_risk for market in markets)


@pytest.mark.spec(14, 18, 46, 47, 48, 49)
@pytest.mark.parametrize("stack", ["dro_moov2", "alt_moov2"])
async def test_an_event_of_one_true_outcome_trades_at_the_neg_risk_exchange(
    creator: CreatorClient, stack: str
) -> None:
    rig = creator.rig
    raw = creator.payload(resolutionType=stack, **event_fields())

    record = await creator.record(await creator.finalized(raw))

    deployment, reader = rig.sandbox.deployment, rig.sandbox.reader
    markets = await markets_of(rig)
    keys = ["town-1", "town-2", "town-3"]
    assert [result["key"] for result in record["registerResults"]] == keys
    assert {result["exchange"] for result in record["registerResults"]} == {
        checksum_address(deployment.neg_risk_exchange)
    }
    neg_risk_adapter = deployment.address(ContractName.NEG_RISK_ADAPTER)
    wrapped = deployment.address(ContractName.WRAPPED_COLLATERAL)
    assert [market.condition_id for market in markets] == [
        condition_id(neg_risk_adapter, market.question_id) for market in markets
    ]
    assert [market.tokens for market in markets] == [
        token_pair(wrapped, market.condition_id) for market in markets
    ]
    assert all(
        [
            await reader.is_registered(
                market.tokens, market.condition_id, deployment.neg_risk_exchange
            )
            for market in markets
        ]
    )
    assert len({market.neg_risk_market_id for market in markets}) == 1
    requests = [market.neg_risk_request_id for market in markets]
    adapter = markets[0].oracle
    assert all([request and await reader.question(request, adapter) for request in requests])
    assert {market.is_neg_risk for market in markets} == {True}


@pytest.mark.spec(36)
async def test_the_approval_is_the_configured_fee_of_every_question(
    creator: CreatorClient,
) -> None:
    config = (await creator.rig.http.get("/market-config")).json()

    request_id = await creator.prepared(creator.payload(**event_fields()))

    approval = (await creator.record(request_id))["prepared"]["txPlan"][0]
    total_units = 3 * int(config["directNegRiskQuestionFeeUsdc"]) * 10**6
    assert int(approval["data"][-64:], 16) == total_units


async def test_an_interrupted_event_is_continued_and_nothing_is_paid_twice(
    creator: CreatorClient,
) -> None:
    raw = creator.payload(**event_fields())
    first = await creator.prepared(raw)
    plan = (await creator.record(first))["prepared"]["txPlan"]
    await creator.execute(plan[:6])
    creator.rig.clock.at_ms += 1

    second = await creator.prepared(raw)

    rest = (await creator.record(second))["prepared"]["txPlan"]
    assert ids_in(rest) == ["prepare-question-2", "prepare-question-3", "seal-neg-risk-market"]
    await creator.finalize(second, await creator.execute(rest))
    await creator.rig.settle()
    assert (await creator.record(second))["status"] == "metadata_update_pending"


async def test_questions_added_in_another_order_fail_the_request(
    creator: CreatorClient,
) -> None:
    request_id = await creator.prepared(creator.payload(**event_fields(count=2)))
    plan = (await creator.record(request_id))["prepared"]["txPlan"]
    *first, second_last, last, seal = plan
    sent = await creator.execute([*first, last, second_last, seal])

    answer = await creator.finalize(request_id, sent)
    await creator.rig.settle()

    assert answer.json()["status"] == "finalize_in_progress"
    record = await creator.record(request_id)
    assert record["status"] == "failed"
    assert "questions were added in another order" in record["errorMessage"]


@pytest.mark.parametrize("stack", ["dro_moov2", "alt_moov2"])
async def test_m_05_the_plan_of_an_event_seals_it(creator: CreatorClient, stack: str) -> None:
    rig = creator.rig
    request_id = await creator.prepared(creator.payload(resolutionType=stack, **event_fields()))
    plan = (await creator.record(request_id))["prepared"]["txPlan"]
    assert ids_in(plan)[-1] == "seal-neg-risk-market"
    sent = await creator.execute(plan)

    await creator.finalize(request_id, sent)
    await rig.settle()

    assert (await creator.record(request_id))["status"] == "metadata_update_pending"
    adapter = rig.sandbox.deployment.address(ContractName.NEG_RISK_ADAPTER)
    event_id = parse_bytes32("0x" + plan[-1]["data"][10:])
    assert await rig.sandbox.reader.event_state(adapter, event_id) == (3, True)


async def test_m_05_an_event_with_one_more_question_opens_no_market(
    creator: CreatorClient,
) -> None:
    """Its creator asks and adds a fourth question before the seal: it could be the true one."""
    raw = creator.payload(**event_fields())
    plan = (await creator.record(await creator.prepared(raw)))["prepared"]["txPlan"]
    await creator.execute(plan[:-1])
    approval, asked, added = plan[0], plan[1], plan[5]
    text, token, *terms = decode(ASKED, bytes.fromhex(asked["data"][10:]))
    event_id, *_ = decode(ADDED, bytes.fromhex(added["data"][10:]))
    fourth = text + b" Or another?"
    request_id = keccak256(fourth + b",initializer:" + creator.address[2:].lower().encode())
    await creator.execute(
        [
            approval,
            asked | {"data": asked["data"][:10] + encode(ASKED, [fourth, token, *terms]).hex()},
            added
            | {"data": added["data"][:10] + encode(ADDED, [event_id, b"4th", request_id]).hex()},
        ]
    )
    creator.rig.clock.at_ms += 1
    second = await creator.prepared(raw)
    rest = (await creator.record(second))["prepared"]["txPlan"]
    assert ids_in(rest) == ["seal-neg-risk-market"]

    await creator.finalize(second, await creator.execute(rest))
    await creator.rig.settle()

    record = await creator.record(second)
    assert record["status"] == "failed"
    assert "its event has 4 questions, and the payload 3" in record["errorMessage"]


async def test_m_05_an_event_that_was_sealed_too_early_is_refused(creator: CreatorClient) -> None:
    raw = creator.payload(**event_fields())
    plan = (await creator.record(await creator.prepared(raw)))["prepared"]["txPlan"]
    await creator.execute([*plan[:-2], plan[-1]])
    creator.rig.clock.at_ms += 1

    second = await creator.prepare(raw)
    await creator.rig.settle()

    record = await creator.record(second)
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("already_initialized")
    assert "its event is sealed without it" in record["errorMessage"]


async def test_a_question_of_another_event_of_the_creator_is_not_asked_again(
    creator: CreatorClient,
) -> None:
    await creator.finalized(creator.payload(**event_fields()))
    shared = [an_option(1, slug="one"), an_option(9)]

    request_id = await creator.prepare(
        creator.payload(**event_fields(title="Other", slug="other", options=shared))
    )
    await creator.rig.settle()

    record = await creator.record(request_id)
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("already_initialized")


COLOUR_BY_NAME = {"red": (255, 0, 0), "green": (0, 255, 0), "blue": (0, 0, 255), "black": (0, 0, 0)}


def painted(colour: str) -> bytes:
    """Return a picture of one colour."""
    encoded = io.BytesIO()
    Image.new("RGB", (50, 50), COLOUR_BY_NAME[colour]).save(encoded, "PNG")
    return encoded.getvalue()


async def colour_of(rig: CreationRig, icon: str) -> str:
    """Return the name of the colour that a stored picture shows."""
    stored = Image.open(io.BytesIO((await rig.http.get(f"/blobs/{icon}")).content))
    width, height = stored.size
    shown = stored.convert("RGB").getpixel((width // 2, height // 2))
    assert isinstance(shown, tuple)
    return min(
        COLOUR_BY_NAME,
        key=lambda name: sum(
            abs(one - other) for one, other in zip(COLOUR_BY_NAME[name], shown, strict=True)
        ),
    )


@pytest.mark.spec(31, 32, 48)
@pytest.mark.parametrize(
    ("fields", "colours"),
    [
        ({"optionImage:town-2": ["red"], "optionImage:town-1": ["green"]}, ["green", "red"]),
        ({"optionImages": ["red", "green"]}, ["red", "green"]),
        ({"optionImages[]": ["red", "green"]}, ["red", "green"]),
        ({"optionImages[]": ["red"], "optionImage:town-1": ["green"]}, ["green", "red"]),
        ({"optionImages": ["red"], "optionImage:town-2": ["green"]}, ["red", "green"]),
        ({"optionImages": ["red"]}, ["red", "black"]),
    ],
    ids=["ids", "order", "order in brackets", "id first", "id second", "the event's"],
)
async def test_each_option_has_its_picture_by_its_id_or_by_its_place(
    creator: CreatorClient, fields: dict[str, list[str]], colours: list[str]
) -> None:
    rig = creator.rig
    raw = creator.payload(**event_fields(count=2))
    challenge = (await creator.ask(raw)).json()
    sent = [(name, painted(colour)) for name, each in fields.items() for colour in each]
    images = [("eventImage", painted("black")), *sent]

    await creator.send(raw, creator.sign(challenge), images)
    await rig.settle()
    request_id = challenge["requestId"]
    await creator.finalize(request_id, await creator.paid(request_id))
    await rig.settle()
    updates = (await creator.record(request_id))["metadataUpdateTxPlan"]
    await creator.finalize(request_id, await creator.execute(updates))

    markets = await markets_of(rig)
    assert [market.market_key for market in markets] == ["town-1", "town-2"]
    assert [await colour_of(rig, market.icon) for market in markets] == colours
    assert [item["marketKey"] for item in updates] == ["town-1", "town-2"]


@pytest.mark.spec(31)
async def test_a_picture_of_no_option_is_refused(creator: CreatorClient) -> None:
    raw = creator.payload(**event_fields())
    challenge = (await creator.ask(raw)).json()
    picture = a_picture("PNG", (60, 40))

    answer = await creator.send(
        raw, creator.sign(challenge), [("eventImage", picture), ("optionImage:town-7", picture)]
    )

    assert error_of(answer) == (400, "validation_error")


async def test_the_stored_documents_describe_the_event(creator: CreatorClient) -> None:
    record = await creator.record(await creator.finalized(creator.payload(**event_fields())))
    (market, *_) = await markets_of(creator.rig)

    blob = await creator.rig.http.get(f"/blobs/{market.metadata_id}")

    document = blob.json()
    assert record["metadataUpdates"][0]["metadataTxId"] == market.metadata_id
    assert document["neg_risk"] is document["event"]["neg_risk"] is True
    assert document["event"]["enable_neg_risk"] is True
    assert document["neg_risk_market_id"] == market.neg_risk_market_id
    assert document["neg_risk_request_id"] == market.neg_risk_request_id
