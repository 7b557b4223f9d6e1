import re
from dataclasses import replace
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.payloads import RULES_TEXT, a_payload
from tests.rigs.values import a_word, an_address

from foretell.domain.creation.payload import MarketDraft, Payload
from foretell.domain.creation.plan import (
    END_S_MAX,
    MetadataName,
    PlanContracts,
    PlanFacts,
    PlanItem,
    PlanTx,
    SeenTx,
    build_metadata_plan,
    build_plan,
    check_known,
    check_txs,
    check_unchanged,
    ids_of_markets,
    stated_end_s,
)
from foretell.domain.errors.creation import TxInvalid, TxPending
from foretell.domain.errors.families import InvalidFields
from foretell.domain.values.hexadecimal import Address, Bytes32, address_bytes, word_bytes

CONTRACTS = PlanContracts(
    collateral=an_address("collateral"),
    adapter=an_address("adapter"),
    market_registry=an_address("registry"),
)
FEE = 5_000_000
CREATOR = an_address("creator")


def a_payload_of(count: int) -> Payload:
    """Return a payload of several markets."""
    payload = a_payload()
    markets = tuple(
        replace(payload.markets[0], key=f"option-{n}", slug=f"rain-{n}", question=f"Rain {n}?")
        for n in range(1, count + 1)
    )
    return replace(payload, markets=markets)


def some_facts(**fields: Any) -> PlanFacts:
    return replace(PlanFacts(fee_units=FEE, allowance_units=0), **fields)


def question_text(market: MarketDraft) -> str:
    return (
        f"q: title: {market.question}, description: {RULES_TEXT} res_data: p1: 0, p2: 1, p3: 0.5."
        " Where p1 corresponds to No, p2 to Yes, p3 to unknown"
    )


def test_the_ids_are_those_that_the_contracts_derive() -> None:
    payload = a_payload()
    (market,) = payload.markets
    text = question_text(market) + ",initializer:" + CREATOR[2:]
    question_id = keccak(text.encode())

    (ids,) = ids_of_markets(payload, CONTRACTS)

    assert ids.question_id == "0x" + question_id.hex()
    assert word_bytes(ids.condition_id) == keccak(
        address_bytes(CONTRACTS.adapter) + question_id + (2).to_bytes(32, "big")
    )
    assert ids.key == "binary"
    assert ids.tokens.yes != ids.tokens.no


@pytest.mark.spec(46, 47)
def test_a_plan_approves_the_fee_and_asks_the_question() -> None:
    payload = a_payload()
    (market,) = payload.markets

    approval, question = build_plan(payload, CONTRACTS, some_facts())

    assert (approval.market_key, question.market_key) == (None, market.key)
    assert (approval.item_id, approval.target) == (
        "approve-direct-resolution-fee",
        CONTRACTS.collateral,
    )
    assert approval.calldata == bytes.fromhex("095ea7b3") + encode(
        ["address", "uint256"], [CONTRACTS.adapter, FEE]
    )
    assert (question.item_id, question.target) == ("initialize-market-1", CONTRACTS.adapter)
    assert question.market_key == "binary"
    assert question.calldata == bytes.fromhex("185d1646") + encode(
        ["bytes", "address", "uint256", "uint256", "uint256"],
        [question_text(market).encode(), CONTRACTS.collateral, 0, 0, 0],
    )


def test_m_03_a_question_of_the_direct_stack_states_the_payloads_end() -> None:
    _, question = build_plan(a_payload(), CONTRACTS, some_facts(end_s=3_600))
    assert int.from_bytes(question.calldata[4:][128:160]) == 3_600


@pytest.mark.parametrize(
    ("ends_at_ms", "end_s"),
    [(11_000, 1), (12_001, 3), (10_000, 1), (9_000, 1), (10**15, END_S_MAX)],
)
def test_m_03_a_stated_end_is_in_the_future_and_within_ten_years(
    ends_at_ms: int, end_s: int
) -> None:
    assert stated_end_s(ends_at_ms, now_ms=10_000) == end_s


@given(st.integers(1, 5), st.sets(st.integers(1, 5)), st.integers(0, 30_000_000))
def test_the_approval_is_the_fee_of_the_questions_still_to_ask(
    count: int, asked: set[int], allowance_units: int
) -> None:
    keys = frozenset(f"option-{n}" for n in asked)

    plan = build_plan(
        a_payload_of(count),
        CONTRACTS,
        some_facts(initialized_keys=keys, allowance_units=allowance_units),
    )

    left = [n for n in range(1, count + 1) if n not in asked]
    questions = [f"initialize-market-{n}" for n in left]
    total = FEE * len(left)
    approvals = [] if total <= allowance_units else ["approve-direct-resolution-fee"]
    assert [item.item_id for item in plan] == approvals + questions
    assert [int(item.calldata[-32:].hex(), 16) for item in plan[: len(approvals)]] == [total] * len(
        approvals
    )


def test_nothing_is_planned_when_the_chain_has_every_market() -> None:
    assert (
        build_plan(a_payload(), CONTRACTS, some_facts(initialized_keys=frozenset({"binary"}))) == ()
    )


def a_name(number: int, on_chain: str = "") -> MetadataName:
    market = replace(a_payload().markets[0], key=f"option-{number}", slug=f"rain-{number}")
    return MetadataName(market, a_word(f"condition {number}"), f"id-{number}", on_chain)


@pytest.mark.spec(46)
def test_each_market_s_metadata_is_named_in_the_registry() -> None:
    (item,) = build_metadata_plan([a_name(1)], CONTRACTS)

    assert item.item_id == "update-metadata-1"
    assert item.target == CONTRACTS.market_registry
    assert item.market_key == "option-1"
    assert item.calldata == keccak(b"setMetadata(bytes32,string)")[:4] + encode(
        ["bytes32", "string"], [word_bytes(a_word("condition 1")), "id-1"]
    )


@pytest.mark.spec(63)
def test_metadata_that_the_chain_names_already_is_left_out_and_numbers_stay() -> None:
    names = [a_name(1, "id-1"), a_name(2, "id-old"), a_name(3, "id-3"), a_name(4)]

    plan = build_metadata_plan(names, CONTRACTS)

    assert [item.item_id for item in plan] == ["update-metadata-2", "update-metadata-4"]
    assert build_metadata_plan(names[:1], CONTRACTS) == ()


@pytest.mark.spec(3, 46, 47)
def test_items_have_ids_addresses_values_and_calldata_of_the_published_form() -> None:
    plan = (
        *build_plan(a_payload_of(3), CONTRACTS, some_facts()),
        *build_metadata_plan([a_name(1), a_name(2)], CONTRACTS),
    )

    ids = [item.item_id for item in plan]
    assert len(set(ids)) == len(ids)
    form = r"approve-direct-resolution-fee|(initialize-market|update-metadata)-[1-9]\d*"
    assert all(re.fullmatch(form, id_) for id_ in ids)
    assert all(re.fullmatch(r"0x[0-9a-f]{40}", item.target) for item in plan)
    assert all(item.calldata for item in plan)
    assert {item.value_wei for item in plan} == {0}
    assert all(item.description for item in plan)


PLAN = (
    PlanItem("first", an_address("target"), b"\x01", "First"),
    PlanItem("second", an_address("target"), b"\x02", "Second", value_wei=3),
)
HASHES = {"first": a_word("hash 1"), "second": a_word("hash 2")}


def a_seen_tx(item: PlanItem, **fields: Any) -> SeenTx:
    seen = SeenTx(
        CREATOR, item.target, item.value_wei, item.calldata, is_success=True, block_number=7
    )
    return replace(seen, **fields)


def seen_by_hash(**first_fields: Any) -> dict[Bytes32, SeenTx]:
    return {
        HASHES["first"]: a_seen_tx(PLAN[0], **first_fields),
        HASHES["second"]: a_seen_tx(PLAN[1]),
    }


def test_transactions_exactly_as_planned_pass() -> None:
    check_txs(PLAN, HASHES, seen_by_hash(), CREATOR)
    check_txs((), {}, {}, CREATOR)


@pytest.mark.spec(60, 78)
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"sender": an_address("outsider")},
            f"sender is {an_address('outsider')}, and the creator is {CREATOR}",
        ),
        (
            {"target": an_address("other")},
            f"target is {an_address('other')}, and the plan's is {an_address('target')}",
        ),
        ({"target": None}, f"target is None, and the plan's is {an_address('target')}"),
        ({"calldata": b"\x01\x00"}, "calldata differs from the plan's"),
        ({"value_wei": 1}, "value is 1, and the plan's is 0"),
        ({"is_success": False}, "the transaction reverted"),
        ({"calldata": b"", "is_success": None, "block_number": None}, "calldata differs"),
    ],
)
def test_each_difference_from_the_plan_is_reported_with_its_item(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(TxInvalid) as refused:
        check_txs(PLAN, HASHES, seen_by_hash(**fields), CREATOR)

    (entry,) = refused.value.details["txs"]
    assert (entry["id"], entry["hash"]) == ("first", HASHES["first"])
    assert entry["reason"].startswith(reason)


def test_every_item_that_differs_is_reported() -> None:
    swapped = {HASHES["first"]: a_seen_tx(PLAN[1]), HASHES["second"]: a_seen_tx(PLAN[0])}

    with pytest.raises(TxInvalid, match=r"first: calldata differs.*; second: calldata differs"):
        check_txs(PLAN, HASHES, swapped, CREATOR)


def test_one_hash_cannot_confirm_two_items() -> None:
    hashes = {"first": a_word("hash 1"), "second": a_word("hash 1")}

    with pytest.raises(TxInvalid) as refused:
        check_txs(PLAN, hashes, seen_by_hash(), CREATOR)

    reasons = [entry["reason"] for entry in refused.value.details["txs"]]
    assert reasons == [
        "the hash was confirmed for second too",
        "the hash was confirmed for first too",
    ]


def test_an_item_without_a_hash_is_reported() -> None:
    with pytest.raises(TxInvalid) as refused:
        check_txs(PLAN, {"first": HASHES["first"]}, seen_by_hash(), CREATOR)

    assert refused.value.details["txs"] == [
        {"id": "second", "hash": None, "reason": "no hash was confirmed for it"}
    ]


@pytest.mark.parametrize("seen", [{}, {HASHES["first"]: a_seen_tx(PLAN[0], is_success=None)}])
def test_a_transaction_that_is_in_no_block_is_waited_for(seen: dict[Bytes32, SeenTx]) -> None:
    others = {HASHES["second"]: a_seen_tx(PLAN[1])}

    with pytest.raises(TxPending) as refused:
        check_txs(PLAN, HASHES, others | seen, CREATOR)

    assert refused.value.details["txs"] == [{"id": "first", "hash": HASHES["first"]}]


def test_invalid_transactions_are_reported_before_pending_ones() -> None:
    with pytest.raises(TxInvalid):
        check_txs(PLAN, HASHES, {HASHES["first"]: a_seen_tx(PLAN[0], value_wei=9)}, CREATOR)


@pytest.mark.spec(76)
def test_only_hashes_of_items_of_the_plan_are_accepted() -> None:
    check_known([PlanTx("second", a_word("x")), PlanTx("first", a_word("x"))], PLAN)

    with pytest.raises(InvalidFields) as refused:
        check_known(
            [
                PlanTx("first", a_word("x")),
                PlanTx("third", a_word("y")),
                PlanTx("first", a_word("z")),
            ],
            PLAN,
        )

    assert refused.value.details["problems"] == [
        {"field": "txs/1/id", "message": "must be the id of an item of the plan"},
        {"field": "txs/2/id", "message": "must appear only once"},
    ]


@pytest.mark.spec(77)
def test_a_hash_that_was_verified_is_sent_again_and_never_replaced() -> None:
    check_unchanged([PlanTx("first", HASHES["first"]), PlanTx("third", a_word("x"))], HASHES)

    with pytest.raises(InvalidFields) as refused:
        check_unchanged([PlanTx("first", HASHES["first"]), PlanTx("second", a_word("x"))], HASHES)

    assert refused.value.details["problems"] == [
        {"field": "txs/1/hash", "message": f"must be {HASHES['second']}, which was verified"}
    ]


@given(
    st.sampled_from(["sender", "target", "calldata", "value_wei"]),
    st.binary(min_size=20, max_size=20),
)
def test_no_other_transaction_passes_for_the_item(name: str, noise: bytes) -> None:
    values: dict[str, Any] = {
        "sender": Address("0x" + noise.hex()),
        "target": Address("0x" + noise.hex()),
        "calldata": noise,
        "value_wei": int.from_bytes(noise, "big") + 1,
    }

    with pytest.raises(TxInvalid):
        check_txs(PLAN, HASHES, seen_by_hash(**{name: values[name]}), CREATOR)
