from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import pytest
from eth_abi.abi import decode, encode
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.rigs.values import a_buy, a_word, an_address, encode_cancel_orders

from foretell.domain.contracts.calldata import (
    CANCEL_ORDER,
    CANCEL_ORDERS,
    CLAIM_TOKENS,
    INCREMENT_NONCE,
    MERGE_POSITIONS,
    Approve,
    ClientCall,
    MergePositions,
    RedeemPositions,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
    order_words,
)
from foretell.domain.contracts.neg_risk import (
    CONVERT_POSITIONS,
    MERGE_SETS,
    REDEEM_SETS,
    SPLIT_SETS,
    UNWRAP,
)
from foretell.domain.contracts.safe import InnerCall, encode_multi_send
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.errors.families import InvalidInput
from foretell.domain.errors.relayer import InvalidField
from foretell.domain.relay.allowed_calls import (
    CANCEL_BYTES_MAX,
    INDEX_SETS_MAX,
    CallRules,
    EventCall,
    EventTargets,
    ServedCall,
)
from foretell.domain.values.hexadecimal import Address, keccak256

COLLATERAL, TOKENS, EXCHANGE, MULTI_SEND, OUTSIDER = (
    an_address(name) for name in ("collateral", "tokens", "exchange", "multi send", "outsider")
)
CONDITION = a_word("condition")
RULES = CallRules(COLLATERAL, TOKENS, EXCHANGE, MULTI_SEND)
SPLIT = SplitPosition(COLLATERAL, CONDITION, 5)
MERGE = MergePositions(COLLATERAL, CONDITION, 5)
REDEEM = RedeemPositions(COLLATERAL, CONDITION)
ORDER = order_words(a_buy())

SERVED: Final[list[tuple[Address, ClientCall]]] = [
    (COLLATERAL, Approve(EXCHANGE, 5)),
    (COLLATERAL, Approve(TOKENS, 2**256 - 1)),
    (COLLATERAL, Approve(OUTSIDER, 0)),
    (COLLATERAL, Transfer(OUTSIDER, 5)),
    (TOKENS, SetApprovalForAll(EXCHANGE, is_approved=True)),
    (TOKENS, SetApprovalForAll(OUTSIDER, is_approved=False)),
    (TOKENS, SPLIT),
    (TOKENS, MERGE),
    (TOKENS, REDEEM),
    (TOKENS, RedeemPositions(COLLATERAL, CONDITION, (2,))),
    (TOKENS, RedeemPositions(COLLATERAL, CONDITION, tuple(range(1, INDEX_SETS_MAX + 1)))),
]
CANCELS: Final = [
    INCREMENT_NONCE.encode(),
    CANCEL_ORDER.encode(ORDER),
    CANCEL_ORDERS.encode([ORDER] * 20),
    encode_cancel_orders([]),
]


def call(signature: str, *arguments: object) -> bytes:
    """Return the calldata of any function."""
    types = signature[signature.index("(") + 1 : -1].split(",")
    return keccak256(signature.encode())[:4] + encode([kind for kind in types if kind], arguments)


def sets_call(**fields: Any) -> bytes:
    """Return a merge with some words changed."""
    words = {"collateral": COLLATERAL, "parent": bytes(32), "partition": [1, 2], "amount": 5}
    words |= fields
    return MERGE_POSITIONS.encode(
        words["collateral"],
        words["parent"],
        bytes.fromhex(CONDITION[2:]),
        words["partition"],
        words["amount"],
    )


HOSTILE: Final = {
    "a call of the wallet itself": (OUTSIDER, call("enableModule(address)", OUTSIDER)),
    "an outsider": (OUTSIDER, Approve(EXCHANGE, 5).encode()),
    "a bundle that is called and not delegated to": (MULTI_SEND, encode_multi_send([])),
    "an approval of an outsider": (COLLATERAL, Approve(OUTSIDER, 1).encode()),
    "a transfer of nothing": (COLLATERAL, Transfer(OUTSIDER, 0).encode()),
    "a transfer from another": (
        COLLATERAL,
        call("transferFrom(address,address,uint256)", OUTSIDER, OUTSIDER, 5),
    ),
    "a permit": (COLLATERAL, call("increaseAllowance(address,uint256)", OUTSIDER, 5)),
    "tokens sent as collateral": (TOKENS, Transfer(OUTSIDER, 5).encode()),
    "tokens approved as collateral": (TOKENS, Approve(EXCHANGE, 5).encode()),
    "a split of collateral's contract": (COLLATERAL, SPLIT.encode()),
    "an outsider as operator": (
        TOKENS,
        SetApprovalForAll(OUTSIDER, is_approved=True).encode(),
    ),
    "tokens given away": (
        TOKENS,
        call(
            "safeTransferFrom(address,address,uint256,uint256,bytes)",
            OUTSIDER,
            OUTSIDER,
            1,
            5,
            b"",
        ),
    ),
    "a condition prepared": (
        TOKENS,
        call("prepareCondition(address,bytes32,uint256)", OUTSIDER, bytes(32), 2),
    ),
    "payouts reported": (TOKENS, call("reportPayouts(bytes32,uint256[])", bytes(32), [1, 0])),
    "another collateral": (TOKENS, sets_call(collateral=OUTSIDER)),
    "a redemption in another collateral": (TOKENS, RedeemPositions(OUTSIDER, CONDITION).encode()),
    "a parent collection": (TOKENS, sets_call(parent=b"\x01" * 32)),
    "nothing merged": (TOKENS, sets_call(amount=0)),
    "nothing split": (TOKENS, SplitPosition(COLLATERAL, CONDITION, 0).encode()),
    "no index sets": (TOKENS, sets_call(partition=[])),
    "too many index sets": (TOKENS, sets_call(partition=list(range(INDEX_SETS_MAX + 1)))),
    "an index set twice": (TOKENS, RedeemPositions(COLLATERAL, CONDITION, (1, 1)).encode()),
    "orders matched": (EXCHANGE, call("matchOrders()")),
    "trading paused": (EXCHANGE, call("pauseTrading()")),
    "a new admin": (EXCHANGE, call("transferAdmin(address)", OUTSIDER)),
    "collateral's call at the exchange": (EXCHANGE, Approve(EXCHANGE, 5).encode()),
    "more orders than the exchange takes": (EXCHANGE, CANCEL_ORDERS.encode([ORDER] * 60)),
    "a nonce with something behind it": (EXCHANGE, INCREMENT_NONCE.encode() + b"\0"),
    "no calldata": (COLLATERAL, b""),
    "half a selector": (COLLATERAL, Approve(EXCHANGE, 5).encode()[:3]),
    "extra bytes": (COLLATERAL, Approve(EXCHANGE, 5).encode() + b"\0" * 32),
    "missing bytes": (COLLATERAL, Approve(EXCHANGE, 5).encode()[:-1]),
    "bits above an address": (
        COLLATERAL,
        Approve(EXCHANGE, 5).encode()[:4] + b"\x01" + Approve(EXCHANGE, 5).encode()[5:],
    ),
}


@pytest.mark.parametrize(("to", "served"), SERVED)
def test_calls_that_trading_needs_are_allowed(to: Address, served: Any) -> None:
    assert RULES.read_calls(to, 0, served.encode()) == (served,)


@pytest.mark.parametrize("calldata", CANCELS)
def test_orders_may_be_ended_at_the_exchange(calldata: bytes) -> None:
    assert len(calldata) <= CANCEL_BYTES_MAX
    assert RULES.read_calls(EXCHANGE, 0, calldata) == (None,)


def test_tokens_that_an_exchange_keeps_may_be_claimed_for_any_receiver() -> None:
    calldata = CLAIM_TOKENS.encode(7, OUTSIDER)
    assert RULES.read_calls(EXCHANGE, 0, calldata) == (None,)
    events = EventTargets(
        an_address("event exchange"), an_address("adapter"), an_address("wrapped")
    )
    rules = replace(RULES, events=events)
    assert rules.read_calls(events.exchange, 0, calldata) == (None,)


@pytest.mark.parametrize(
    ("rules", "calldata"),
    [
        (replace(RULES, calls={ServedCall.CANCEL_ORDERS}), CLAIM_TOKENS.encode(7, OUTSIDER)),
        (RULES, CLAIM_TOKENS.encode(7, OUTSIDER) + b"\0"),
        (RULES, CLAIM_TOKENS.encode(7, OUTSIDER)[:-1]),
    ],
    ids=["not served", "extra bytes", "missing bytes"],
)
def test_a_claim_that_is_not_served_or_malformed_is_refused(
    rules: CallRules, calldata: bytes
) -> None:
    with pytest.raises(MalformedCalldata):
        rules.read_calls(EXCHANGE, 0, calldata)


@pytest.mark.spec(94)
@pytest.mark.parametrize("name", HOSTILE)
def test_other_calls_are_refused(name: str) -> None:
    to, calldata = HOSTILE[name]
    with pytest.raises(InvalidInput) as refused:
        RULES.read_calls(to, 0, calldata)
    assert refused.value.details["field"] in {"to", "data"}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_bundle_hides_no_forbidden_call(name: str) -> None:
    calls = [InnerCall(TOKENS, SPLIT.encode()), InnerCall(*HOSTILE[name])]
    with pytest.raises(InvalidInput):
        RULES.read_calls(MULTI_SEND, 1, encode_multi_send(calls))


def test_a_bundle_is_read_call_by_call() -> None:
    calls = [InnerCall(to, served.encode()) for to, served in SERVED]
    calls.append(InnerCall(EXCHANGE, INCREMENT_NONCE.encode()))
    wanted = (*(served for _, served in SERVED), None)
    assert RULES.read_calls(MULTI_SEND, 1, encode_multi_send(calls)) == wanted


@pytest.mark.parametrize(
    ("to", "operation"),
    [(TOKENS, 1), (OUTSIDER, 1), (EXCHANGE, 1), (MULTI_SEND, 2)],
)
def test_only_the_bundler_is_delegated_to(to: Address, operation: int) -> None:
    with pytest.raises(InvalidField, match="where operation is 1"):
        RULES.read_calls(to, operation, encode_multi_send([InnerCall(TOKENS, SPLIT.encode())]))


@pytest.mark.case("D-10")
@pytest.mark.parametrize(
    "calls",
    [
        [],
        [InnerCall(TOKENS, SPLIT.encode(), 1)],
        [InnerCall(MULTI_SEND, encode_multi_send([InnerCall(TOKENS, SPLIT.encode())]))],
    ],
    ids=["empty", "paying", "nested"],
)
def test_a_bundle_has_plain_calls_without_value_alone(calls: Sequence[InnerCall]) -> None:
    with pytest.raises(InvalidInput):
        RULES.read_calls(MULTI_SEND, 1, encode_multi_send(calls))


@pytest.mark.parametrize(
    ("served", "to", "calldata"),
    [
        (ServedCall.TRANSFER, COLLATERAL, Transfer(OUTSIDER, 5).encode()),
        (ServedCall.SPLIT_POSITION, TOKENS, SPLIT.encode()),
        (ServedCall.CANCEL_ORDERS, EXCHANGE, INCREMENT_NONCE.encode()),
    ],
)
def test_an_operator_may_serve_less(served: ServedCall, to: Address, calldata: bytes) -> None:
    assert RULES.read_calls(to, 0, calldata)
    fewer = CallRules(COLLATERAL, TOKENS, EXCHANGE, MULTI_SEND, frozenset(ServedCall) - {served})
    with pytest.raises(MalformedCalldata, match="does not send"):
        fewer.read_calls(to, 0, calldata)


# An independent statement of the rules: selector, contract, types and a condition.
ALLOWED: Final[dict[tuple[str, str], tuple[list[str], Callable[..., bool]]]] = {
    (COLLATERAL, "095ea7b3"): (
        ["address", "uint256"],
        lambda spender, units: units == 0 or spender in {EXCHANGE, TOKENS},
    ),
    (COLLATERAL, "a9059cbb"): (["address", "uint256"], lambda _, units: units > 0),
    (TOKENS, "a22cb465"): (
        ["address", "bool"],
        lambda operator, is_approved: not is_approved or operator == EXCHANGE,
    ),
    (TOKENS, "72ce4275"): (
        ["address", "bytes32", "bytes32", "uint256[]", "uint256"],
        lambda asset, parent, _, sets, units: (
            asset == COLLATERAL and not any(parent) and 0 < len(sets) <= 16 and units > 0
        ),
    ),
    (TOKENS, "9e7212ad"): (
        ["address", "bytes32", "bytes32", "uint256[]", "uint256"],
        lambda asset, parent, _, sets, units: (
            asset == COLLATERAL and not any(parent) and 0 < len(sets) <= 16 and units > 0
        ),
    ),
    (TOKENS, "01b7037c"): (
        ["address", "bytes32", "bytes32", "uint256[]"],
        lambda asset, parent, _, sets: (
            asset == COLLATERAL and not any(parent) and 0 < len(sets) <= 16
        ),
    ),
    (EXCHANGE, INCREMENT_NONCE.selector.hex()): ([], lambda: True),
}


def is_allowed(to: Address, calldata: bytes) -> bool:
    """Return whether a call is allowed and canonically encoded."""
    types, holds = ALLOWED[to, calldata[:4].hex()]
    values = decode(types, calldata[4:])
    return encode(types, values) == calldata[4:] and holds(*values)


amounts = st.sampled_from([0, 1, 5, 2**256 - 1])
addresses = st.sampled_from([COLLATERAL, TOKENS, EXCHANGE, MULTI_SEND, OUTSIDER])
index_sets = st.lists(st.integers(0, 3), max_size=4)
parents = st.sampled_from([bytes(32), bytes(31) + b"\x01"])
GOOD_CALLS = st.one_of(
    st.builds(lambda to, units: call("approve(address,uint256)", to, units), addresses, amounts),
    st.builds(lambda to, units: call("transfer(address,uint256)", to, units), addresses, amounts),
    st.builds(
        lambda to, yes: call("setApprovalForAll(address,bool)", to, yes), addresses, st.booleans()
    ),
    st.builds(
        lambda asset, parent, sets, units: call(
            "mergePositions(address,bytes32,bytes32,uint256[],uint256)",
            asset,
            parent,
            bytes(32),
            sets,
            units,
        ),
        addresses,
        parents,
        index_sets,
        amounts,
    ),
    st.builds(
        lambda asset, parent, sets: call(
            "redeemPositions(address,bytes32,bytes32,uint256[])", asset, parent, bytes(32), sets
        ),
        addresses,
        parents,
        index_sets,
    ),
    st.just(INCREMENT_NONCE.encode()),
)


@st.composite
def mutated_calls(draw: st.DrawFn) -> bytes:
    """Return a call with some of its bytes changed, cut off, or added to."""
    calldata = bytearray(draw(GOOD_CALLS))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(0, len(calldata) - 1)))
        calldata[at : at + draw(st.integers(0, 2))] = draw(st.binary(max_size=2))
    return bytes(calldata)


@pytest.mark.case("D-10")
@settings(max_examples=settings().max_examples * 20)
@given(to=addresses, calldata=st.one_of(mutated_calls(), st.binary(max_size=200)))
@example(to=COLLATERAL, calldata=Approve(OUTSIDER, 1).encode())
def test_no_call_passes_that_is_not_allowed(to: Address, calldata: bytes) -> None:
    try:
        RULES.read_calls(to, 0, calldata)
    except InvalidInput:
        return
    assert is_allowed(to, calldata)


@pytest.mark.case("D-10")
@settings(max_examples=settings().max_examples * 4)
@given(
    calls=st.lists(st.tuples(addresses, mutated_calls()), max_size=4),
    junk=st.binary(max_size=5),
    cut=st.integers(0, 40),
)
def test_no_bundle_passes_with_a_call_that_is_not_allowed(
    calls: list[tuple[Address, bytes]], junk: bytes, cut: int
) -> None:
    bundle = encode_multi_send([InnerCall(to, calldata) for to, calldata in calls])
    bundle = bundle[: len(bundle) - cut] + junk
    try:
        RULES.read_calls(MULTI_SEND, 1, bundle)
    except InvalidInput:
        return
    assert calls
    assert all(is_allowed(to, calldata) for to, calldata in calls)


EVENTS: Final = EventTargets(
    an_address("event exchange"), an_address("event adapter"), an_address("wrapped")
)
EVENT_RULES: Final = replace(RULES, events=EVENTS)
WORD: Final = bytes.fromhex(CONDITION[2:])
EVENT_CALLS: Final = {
    "split": (EVENTS.adapter, SPLIT_SETS.encode(WORD, 5), ServedCall.SPLIT_POSITION),
    "split, the long form": (EVENTS.adapter, SPLIT.encode(), ServedCall.SPLIT_POSITION),
    "merge": (EVENTS.adapter, MERGE_SETS.encode(WORD, 5), ServedCall.MERGE_POSITIONS),
    "merge, the long form": (EVENTS.adapter, MERGE.encode(), ServedCall.MERGE_POSITIONS),
    "redeem": (EVENTS.adapter, REDEEM_SETS.encode(WORD, [5, 0]), ServedCall.REDEEM_POSITIONS),
    "convert": (
        EVENTS.adapter,
        CONVERT_POSITIONS.encode(WORD, 3, 5),
        ServedCall.CONVERT_POSITIONS,
    ),
    "unwrap": (EVENTS.wrapped_collateral, UNWRAP.encode(OUTSIDER, 5), ServedCall.UNWRAP),
}
EVENT_HOSTILE: Final = {
    "an event's market prepared": (
        EVENTS.adapter,
        call("prepareMarket(uint256,bytes)", 0, b"data"),
    ),
    "wrapped collateral given away": (EVENTS.wrapped_collateral, Transfer(OUTSIDER, 5).encode()),
    "wrapped collateral approved": (EVENTS.wrapped_collateral, Approve(TOKENS, 5).encode()),
    "a conversion at the wrapped collateral": (
        EVENTS.wrapped_collateral,
        CONVERT_POSITIONS.encode(WORD, 3, 5),
    ),
    "extra bytes": (EVENTS.adapter, SPLIT_SETS.encode(WORD, 5) + b"\0"),
    "a match": (EVENTS.exchange, call("matchOrders()")),
}


@pytest.mark.parametrize("name", EVENT_CALLS)
def test_calls_of_events_are_allowed_when_events_are_deployed(name: str) -> None:
    to, calldata, served = EVENT_CALLS[name]

    assert EVENT_RULES.read_calls(to, 0, calldata) == (EventCall(served),)
    with pytest.raises(InvalidField):
        RULES.read_calls(to, 0, calldata)


def test_orders_of_events_are_ended_at_their_exchange() -> None:
    calldata = INCREMENT_NONCE.encode()

    assert EVENT_RULES.read_calls(EVENTS.exchange, 0, calldata) == (None,)
    with pytest.raises(InvalidField):
        RULES.read_calls(EVENTS.exchange, 0, calldata)


@pytest.mark.parametrize("name", EVENT_HOSTILE)
def test_other_calls_of_the_contracts_of_events_are_refused(name: str) -> None:
    to, calldata = EVENT_HOSTILE[name]

    with pytest.raises(MalformedCalldata):
        EVENT_RULES.read_calls(to, 0, calldata)


@pytest.mark.parametrize(
    ("to", "served"),
    [
        (COLLATERAL, Approve(EVENTS.exchange, 5)),
        (COLLATERAL, Approve(EVENTS.adapter, 5)),
        (TOKENS, SetApprovalForAll(EVENTS.exchange, is_approved=True)),
        (TOKENS, SetApprovalForAll(EVENTS.adapter, is_approved=True)),
        (TOKENS, MergePositions(EVENTS.wrapped_collateral, CONDITION, 5)),
        (TOKENS, RedeemPositions(EVENTS.wrapped_collateral, CONDITION)),
    ],
)
def test_a_wallet_may_approve_the_contracts_of_events(to: Address, served: ClientCall) -> None:
    assert EVENT_RULES.read_calls(to, 0, served.encode()) == (served,)
    with pytest.raises(MalformedCalldata):
        RULES.read_calls(to, 0, served.encode())


def test_a_relayer_without_conversions_refuses_them() -> None:
    rules = replace(EVENT_RULES, calls=frozenset(ServedCall) - {ServedCall.CONVERT_POSITIONS})

    with pytest.raises(MalformedCalldata, match="convertPositions"):
        rules.read_calls(EVENTS.adapter, 0, EVENT_CALLS["convert"][1])
