"""Optimistic questions that their creator asked itself, with the plan's terms or with others."""

from datetime import UTC, datetime
from typing import Any, NoReturn

import pytest
from eth_abi.abi import decode, encode
from tests.creation.rig import CreatorClient

from foretell.chain.planned_contracts import LIVENESS_S, PROPOSAL_BOND_UNITS
from foretell.chain.reader import Question
from foretell.domain.creation.asked_terms import AskedTerms
from foretell.domain.errors.chain import ChainUnavailable
from foretell.store.creation.markets import load_markets

pytestmark = pytest.mark.anyio

KINDS = ["bytes", "address", "uint256", "uint256", "uint256"]
REWARD = 5_000_000
PLANNED = {
    "reward": str(REWARD),
    "bond": str(PROPOSAL_BOND_UNITS),
    "livenessSeconds": str(LIVENESS_S),
}
OTHERS = {
    "no reward": (0, 0, 0),
    "a lower reward": (REWARD - 1, 0, 0),
    "another bond": (REWARD, PROPOSAL_BOND_UNITS + 1, 0),
    "another liveness": (REWARD, 0, LIVENESS_S + 1),
}


def optimistic(creator: CreatorClient) -> bytes:
    return creator.payload(resolutionType="alt_moov2")


async def ask(creator: CreatorClient, request_id: str, terms: tuple[int, int, int]) -> None:
    """Send a request's plan with other terms of its question."""
    approval, asked = (await creator.record(request_id))["prepared"]["txPlan"]
    data = bytes.fromhex(asked["data"][2:])
    text, token, *_ = decode(KINDS, data[4:])
    own = data[:4] + encode(KINDS, [text, token, *terms])
    allowance = bytes.fromhex(approval["data"][2:])[:36] + (10**12).to_bytes(32, "big")
    await creator.execute(
        [approval | {"data": "0x" + allowance.hex()}, asked | {"data": "0x" + own.hex()}]
    )


async def refusal(creator: CreatorClient) -> dict[str, Any]:
    challenge = (await creator.ask(raw := optimistic(creator))).json()
    answer = await creator.send(raw, creator.sign(challenge))
    assert answer.status_code == 409
    error: dict[str, Any] = answer.json()["error"]
    return error


@pytest.mark.parametrize("terms", OTHERS.values(), ids=OTHERS)
async def test_h_02_a_question_of_other_terms_is_not_adopted(
    creator: CreatorClient, terms: tuple[int, int, int]
) -> None:
    await ask(creator, await creator.prepared(optimistic(creator)), terms)

    error = await refusal(creator)

    reward, bond, liveness_s = terms
    assert error["code"] == "already_initialized"
    (duplicate,) = error["details"]["duplicates"]
    assert duplicate["terms"] == {
        "reward": str(reward),
        "bond": str(bond or PROPOSAL_BOND_UNITS),
        "livenessSeconds": str(liveness_s or LIVENESS_S),
    }
    assert duplicate["plannedTerms"] == PLANNED
    verdict = (await creator.rig.http.post("/validate", content=optimistic(creator))).json()
    assert (verdict["valid"], verdict["duplicates"]) == (False, [duplicate])


async def test_h_02_a_question_asked_while_a_request_prepares_is_not_adopted(
    creator: CreatorClient,
) -> None:
    raw = optimistic(creator)
    first = await creator.prepared(raw)
    creator.rig.clock.at_ms += 1
    second = await creator.prepare(raw)
    await ask(creator, first, (0, 0, 0))

    await creator.rig.settle()

    record = await creator.record(second)
    assert record["status"] == "failed"
    assert record["errorMessage"].startswith("already_initialized: ")
    assert "a reward of 0 and a bond of 500000000 base units" in record["errorMessage"]


@pytest.mark.parametrize("reward_units", [REWARD, REWARD + 1])
async def test_a_question_with_the_plans_terms_is_adopted(
    creator: CreatorClient, reward_units: int
) -> None:
    raw = optimistic(creator)
    await ask(creator, await creator.prepared(raw), (reward_units, 0, 0))
    creator.rig.clock.at_ms += 1

    second = await creator.prepared(raw)
    assert (await creator.record(second))["prepared"]["txPlan"] == []
    await creator.finalize(second)
    await creator.rig.settle()

    assert (await creator.record(second))["status"] == "metadata_update_pending"


async def test_a_node_that_does_not_answer_delays_no_answer_to_prepare(
    creator: CreatorClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checks on the chain belong to the background, where they are made again."""

    async def unanswered(*_: object) -> NoReturn:
        raise ChainUnavailable("eth_call", "ConnectError")

    challenge = (await creator.ask(raw := optimistic(creator))).json()
    with monkeypatch.context() as patch:
        patch.setattr(creator.rig.context.reader, "questions", unanswered)
        answer = await creator.send(raw, creator.sign(challenge))
    assert (answer.status_code, answer.json()["status"]) == (200, "prepare_in_progress")


async def test_m_03_a_question_of_the_direct_stack_states_the_payloads_end(
    creator: CreatorClient,
) -> None:
    rig = creator.rig
    ends_at_s = rig.clock.now_ms() // 1000 + 9 * 24 * 3_600
    ends_at = datetime.fromtimestamp(ends_at_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    request_id = await creator.pending_update(creator.payload(endDateIso=ends_at))
    initialized = (await creator.record(request_id))["prepared"]["txPlan"][-1]
    *_, stated_s = decode(KINDS, bytes.fromhex(initialized["data"][2:])[4:])
    assert 0 <= rig.clock.now_ms() // 1000 + stated_s - ends_at_s <= 60


@pytest.mark.parametrize(
    ("is_adopted", "terms", "status"),
    [
        (True, (REWARD, PROPOSAL_BOND_UNITS, LIVENESS_S - 1), "failed"),
        (True, (REWARD, PROPOSAL_BOND_UNITS - 1, LIVENESS_S), "failed"),
        (True, (REWARD - 1, PROPOSAL_BOND_UNITS, LIVENESS_S), "metadata_update_pending"),
        (False, (REWARD, PROPOSAL_BOND_UNITS, LIVENESS_S - 1), "metadata_update_pending"),
    ],
)
async def test_h_02_the_finalization_compares_adopted_questions_again(
    creator: CreatorClient,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_adopted: bool,
    terms: tuple[int, int, int],
    status: str,
) -> None:
    """After a reorganisation an adopted question may have other terms; one of the plan cannot.

    A reward below the operator's present one was the plan's, or costs traders nothing.
    """
    raw, rig = optimistic(creator), creator.rig
    request_id = await creator.prepared(raw)
    sent = []
    if is_adopted:
        await ask(creator, request_id, (REWARD, 0, 0))
        rig.clock.at_ms += 1
        request_id = await creator.prepared(raw)
    else:
        plan = (await creator.record(request_id))["prepared"]["txPlan"]
        sent = await creator.execute(plan)
    reader = rig.context.reader
    read_questions = reader.questions

    async def questions_after_a_reorganisation(*args: Any) -> list[Question | None]:
        return [
            each and each._replace(terms=AskedTerms(*terms)) for each in await read_questions(*args)
        ]

    monkeypatch.setattr(reader, "questions", questions_after_a_reorganisation)
    await creator.finalize(request_id, sent)
    await rig.settle()

    assert (await creator.record(request_id))["status"] == status
    async with rig.database.reading() as tx:
        assert await load_markets(tx) == []


DAY_S = 24 * 3_600


async def ask_direct(creator: CreatorClient, request_id: str, stated_s: int) -> None:
    """Send a request's plan with another stated end of its question."""
    approval, asked = (await creator.record(request_id))["prepared"]["txPlan"]
    data = bytes.fromhex(asked["data"][2:])
    *others, _ = decode(KINDS, data[4:])
    own = data[:4] + encode(KINDS, [*others, stated_s])
    await creator.execute([approval, asked | {"data": "0x" + own.hex()}])


async def planned_end_s(creator: CreatorClient, request_id: str) -> int:
    asked = (await creator.record(request_id))["prepared"]["txPlan"][-1]
    *_, stated_s = decode(KINDS, bytes.fromhex(asked["data"][2:])[4:])
    return int(stated_s)


@pytest.mark.parametrize("stated_s", [1, 30 * DAY_S])
async def test_h2_a_question_of_the_direct_stack_that_ends_long_before_its_payload_is_not_adopted(
    creator: CreatorClient, stated_s: int
) -> None:
    """Any account could flag it at once, and have it ended 30 days later, for a market of years."""
    request_id = await creator.prepared(creator.payload())
    await ask_direct(creator, request_id, stated_s)

    challenge = (await creator.ask(raw := creator.payload())).json()
    answer = await creator.send(raw, creator.sign(challenge))

    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (409, "already_initialized")
    (duplicate,) = error["details"]["duplicates"]
    assert duplicate["terms"]["livenessSeconds"] == str(stated_s)
    assert int(duplicate["plannedTerms"]["livenessSeconds"]) > 365 * DAY_S


async def test_h2_a_question_of_the_direct_stack_that_ends_as_planned_is_adopted(
    creator: CreatorClient,
) -> None:
    first = await creator.prepared(raw := creator.payload())
    await ask_direct(creator, first, await planned_end_s(creator, first) + 7 * DAY_S)
    creator.rig.clock.at_ms += 1

    second = await creator.prepared(raw)

    assert (await creator.record(second))["prepared"]["txPlan"] == []
