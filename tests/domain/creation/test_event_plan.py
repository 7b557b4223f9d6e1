"""The transaction plan of a neg-risk event."""

from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.payloads import a_payload, event_fields
from tests.rigs.values import an_address

from foretell.domain.contracts import neg_risk
from foretell.domain.creation import plan
from foretell.domain.creation.payload import Payload
from foretell.domain.creation.plan import (
    EventContracts,
    PlanContracts,
    PlanFacts,
    build_plan,
    event_market_id,
    ids_of_markets,
)
from foretell.domain.values.hexadecimal import address_bytes, word_bytes
from foretell.domain.values.tokens import condition_id, token_pair

EVENT = EventContracts(
    operator=an_address("operator"),
    neg_risk_adapter=an_address("neg-risk adapter"),
    wrapped_collateral=an_address("wrapped"),
)
CONTRACTS = PlanContracts(
    collateral=an_address("collateral"),
    adapter=an_address("event adapter"),
    market_registry=an_address("registry"),
    event=EVENT,
)
PAYLOAD = a_payload(**event_fields())
KEYS = [market.key for market in PAYLOAD.markets]
FEE = 2_000_000


def some_facts(**fields: Any) -> PlanFacts:
    return replace(PlanFacts(fee_units=FEE, allowance_units=0), **fields)


def item_ids(facts: PlanFacts) -> list[str]:
    return [item.item_id for item in build_plan(PAYLOAD, CONTRACTS, facts)]


def test_the_text_of_an_event_is_hashed_once_for_the_ids_of_all_markets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A finding: it was hashed for each, so that an event of 120 markets held up all orders for 70 ms, in each step."""
    hashed: list[Payload] = []
    event_data = plan._event_data

    def counted(payload: Payload) -> bytes:
        hashed.append(payload)
        return event_data(payload)

    monkeypatch.setattr(plan, "_event_data", counted)
    assert len(ids_of_markets(PAYLOAD, CONTRACTS)) == 3
    assert hashed == [PAYLOAD]


def test_the_ids_follow_from_the_event_and_the_place_in_it() -> None:
    event_id = event_market_id(PAYLOAD, EVENT)

    ids = ids_of_markets(PAYLOAD, CONTRACTS)

    assert word_bytes(event_id)[-1] == 0
    assert [each.question_id for each in ids] == [
        neg_risk.question_id(event_id, index) for index in range(3)
    ]
    assert [each.condition_id for each in ids] == [
        condition_id(EVENT.neg_risk_adapter, each.question_id) for each in ids
    ]
    assert [each.tokens for each in ids] == [
        token_pair(EVENT.wrapped_collateral, each.condition_id) for each in ids
    ]
    assert {each.neg_risk_market_id for each in ids} == {event_id}
    assert len({each.asked_id for each in ids}) == 3


@pytest.mark.spec(36)
def test_a_plan_asks_every_question_and_adds_it_to_the_event_in_order() -> None:
    plan = build_plan(PAYLOAD, CONTRACTS, some_facts())

    assert [(item.item_id, item.target) for item in plan] == [
        ("approve-direct-resolution-fee", CONTRACTS.collateral),
        ("initialize-market-1", CONTRACTS.adapter),
        ("initialize-market-2", CONTRACTS.adapter),
        ("initialize-market-3", CONTRACTS.adapter),
        ("prepare-neg-risk-market", EVENT.operator),
        ("prepare-question-1", EVENT.operator),
        ("prepare-question-2", EVENT.operator),
        ("prepare-question-3", EVENT.operator),
        ("seal-neg-risk-market", EVENT.operator),
    ]
    assert [item.market_key for item in plan] == [None, *KEYS, None, *KEYS, None]
    assert plan[0].calldata[4:] == encode(["address", "uint256"], [CONTRACTS.adapter, 3 * FEE])


def test_a_question_is_added_under_the_id_that_its_adapter_gave_it() -> None:
    ids = ids_of_markets(PAYLOAD, CONTRACTS)[1]

    added = build_plan(PAYLOAD, CONTRACTS, some_facts())[-3]

    assert added.calldata == keccak(b"prepareQuestion(bytes32,bytes,bytes32)")[:4] + encode(
        ["bytes32", "bytes", "bytes32"],
        [
            word_bytes(event_market_id(PAYLOAD, EVENT)),
            b"Will it rain most in town 2?",
            word_bytes(ids.asked_id),
        ],
    )


def test_m_05_the_last_call_seals_the_event() -> None:
    event_id = word_bytes(event_market_id(PAYLOAD, EVENT))

    assert build_plan(PAYLOAD, CONTRACTS, some_facts())[-1].calldata == (
        keccak(b"sealMarket(bytes32)")[:4] + event_id
    )


def test_the_event_data_and_the_creator_determine_the_market_id() -> None:
    (prepared,) = (
        item
        for item in build_plan(PAYLOAD, CONTRACTS, some_facts())
        if item.item_id == "prepare-neg-risk-market"
    )

    _, data = neg_risk.PREPARE_MARKET.decode(prepared.calldata)

    signed = data + b",initializer:" + address_bytes(PAYLOAD.creator).hex().encode()
    hashed = keccak(encode(["address", "uint256", "bytes"], [EVENT.operator, 0, signed]))
    assert event_market_id(PAYLOAD, EVENT) == "0x" + hashed[:-1].hex() + "00"


def test_another_set_of_questions_is_another_event() -> None:
    fewer = a_payload(**event_fields(count=2))

    assert event_market_id(fewer, EVENT) != event_market_id(PAYLOAD, EVENT)


@given(
    asked=st.sets(st.sampled_from(KEYS)),
    prepared_count=st.integers(0, 3),
    has_event=...,
    is_sealed=...,
)
def test_calls_with_their_effect_on_the_chain_already_are_left_out(
    *, asked: set[str], prepared_count: int, has_event: bool, is_sealed: bool
) -> None:
    prepared = KEYS[:prepared_count]
    facts = some_facts(
        allowance_units=10 * FEE,
        initialized_keys=frozenset(asked),
        has_event=has_event,
        prepared_keys=frozenset(prepared),
        is_sealed=is_sealed,
    )

    numbers = range(1, 4)
    wanted = [f"initialize-market-{n}" for n in numbers if KEYS[n - 1] not in asked]
    wanted += [] if has_event else ["prepare-neg-risk-market"]
    wanted += [f"prepare-question-{n}" for n in numbers if KEYS[n - 1] not in prepared]
    wanted += [] if is_sealed else ["seal-neg-risk-market"]
    assert item_ids(facts) == wanted


@pytest.mark.parametrize(
    ("facts", "first"),
    [
        (some_facts(), "approve-direct-resolution-fee"),
        (some_facts(fee_units=0, reward_units=1), "approve-resolution-reward"),
        (some_facts(fee_units=0), "initialize-market-1"),
    ],
)
def test_the_approval_is_named_by_its_purpose(facts: PlanFacts, first: str) -> None:
    assert item_ids(facts)[0] == first


def test_a_reward_is_part_of_the_question() -> None:
    approval, question, *_ = build_plan(PAYLOAD, CONTRACTS, some_facts(fee_units=0, reward_units=5))

    assert approval.calldata[-32:] == (15).to_bytes(32, "big")
    assert approval.description == "Approve the resolution reward of 0.000015 collateral"
    _, _, reward_units, bond_units, liveness_s = (
        question.calldata[4 + 32 * n : 36 + 32 * n] for n in range(5)
    )
    assert int.from_bytes(reward_units, "big") == 5
    assert (bond_units, liveness_s) == (bytes(32), bytes(32))
