import pytest
from eth_abi.abi import encode
from tests.contracts.evm import reverts
from tests.contracts.neg_risk.rig import NegRisk
from tests.contracts.resolution import PRICE_NO, PRICE_YES
from tests.contracts.signing import UNIT, ZERO_WORD

from foretell.domain.contracts.neg_risk import MERGE_SETS, SPLIT_SETS
from foretell.domain.values.hexadecimal import keccak256

LONG_SPLIT = "splitPosition(address,bytes32,bytes32,uint256[],uint256)"
LONG_MERGE = "mergePositions(address,bytes32,bytes32,uint256[],uint256)"
SHORT_SPLIT = "splitPosition(bytes32,uint256)"
SHORT_MERGE = "mergePositions(bytes32,uint256)"


@pytest.fixture
def event(neg_risk: NegRisk) -> NegRisk:
    neg_risk.open_event(2)
    return neg_risk


@pytest.fixture
def holder(event: NegRisk) -> str:
    return event.holder("holder", 100 * UNIT)


def arguments(event: NegRisk, name: str, units: int) -> tuple[object, ...]:
    """Return the arguments of the long or the short form."""
    short = (event.condition(0), units)
    long = (event.world.collateral.address, ZERO_WORD, event.condition(0), [1, 2], units)
    return {LONG_SPLIT: long, LONG_MERGE: long}.get(name, short)


@pytest.mark.parametrize("name", [LONG_SPLIT, SHORT_SPLIT])
def test_split_position_splits_collateral_into_both_positions(
    event: NegRisk, holder: str, name: str
) -> None:
    receipt = event.adapter.send(name, *arguments(event, name, 3 * UNIT), sender=holder)
    assert event.held(holder, 0) == (3 * UNIT, 3 * UNIT)
    assert (event.collateral_of(holder), event.locked) == (97 * UNIT, 3 * UNIT)
    assert event.adapter.logs(receipt, "PositionSplit(address,bytes32,uint256)") == [
        {"stakeholder": holder, "conditionId": event.condition(0), "amount": 3 * UNIT}
    ]


@pytest.mark.parametrize("name", [LONG_MERGE, SHORT_MERGE])
def test_merge_positions_merges_both_positions(event: NegRisk, holder: str, name: str) -> None:
    event.split(holder, 0, 3 * UNIT)
    receipt = event.adapter.send(name, *arguments(event, name, 2 * UNIT), sender=holder)
    assert event.held(holder, 0) == (UNIT, UNIT)
    assert (event.collateral_of(holder), event.locked) == (99 * UNIT, UNIT)
    assert event.adapter.logs(receipt, "PositionsMerge(address,bytes32,uint256)") == [
        {"stakeholder": holder, "conditionId": event.condition(0), "amount": 2 * UNIT}
    ]


@pytest.mark.parametrize("suffix", [b"\0", b"ref0", bytes(100)])
def test_l_09_the_short_forms_accept_data_after_their_arguments(
    event: NegRisk, holder: str, suffix: bytes
) -> None:
    evm, adapter = event.world.evm, event.adapter
    for name, units in ((SHORT_SPLIT, 3 * UNIT), (SHORT_MERGE, UNIT)):
        data = adapter.calldata(name, event.condition(0), units)
        evm.transact(holder, adapter.address, data + suffix)
    assert event.held(holder, 0) == (2 * UNIT, 2 * UNIT)


def test_the_short_forms_have_the_selectors_of_the_package(event: NegRisk, holder: str) -> None:
    evm, adapter = event.world.evm, event.adapter.address
    evm.transact(holder, adapter, SPLIT_SETS.encode(event.condition(0), UNIT))
    evm.transact(holder, adapter, MERGE_SETS.encode(event.condition(0), UNIT))
    assert event.collateral_of(holder) == 100 * UNIT


@pytest.mark.parametrize(
    "calldata",
    [
        SPLIT_SETS.selector + bytes(63),
        keccak256(b"splitPosition(bytes32)")[:4] + bytes(64),
        b"",
    ],
)
def test_a_call_of_no_function_is_refused(event: NegRisk, holder: str, calldata: bytes) -> None:
    with reverts("UnknownCall"):
        event.world.evm.transact(holder, event.adapter.address, calldata)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({0: "0x" + "11" * 20}, "UnexpectedCollateralToken"),
        ({1: b"\1" * 32}, "InvalidParent"),
        ({2: b"\1" * 32}, "InvalidCondition"),
        ({3: [2, 1]}, "InvalidPartition"),
        ({3: [1]}, "InvalidPartition"),
    ],
)
@pytest.mark.parametrize("name", [LONG_SPLIT, LONG_MERGE])
def test_a_long_form_with_other_arguments_is_refused(
    event: NegRisk, holder: str, name: str, changed: dict[int, object], error: str
) -> None:
    plain = arguments(event, name, UNIT)
    with reverts(error):
        event.adapter.send(
            name, *(changed.get(place, value) for place, value in enumerate(plain)), sender=holder
        )


@pytest.mark.parametrize("name", [SHORT_SPLIT, SHORT_MERGE])
def test_a_condition_of_another_oracle_is_refused(event: NegRisk, holder: str, name: str) -> None:
    condition = bytes.fromhex(event.world.condition[2:])
    with reverts("InvalidCondition"):
        event.adapter.send(name, condition, UNIT, sender=holder)
    with reverts("InvalidCondition"):
        event.adapter.send("redeemPositions", condition, [1, 1], sender=holder)


@pytest.mark.parametrize(("price", "payout"), [(PRICE_YES, 3), (PRICE_NO, 2)])
def test_redeem_positions_pays_the_winning_side(
    event: NegRisk, holder: str, price: int, payout: int
) -> None:
    event.split(holder, 0, 10)
    event.answer(0, price)
    receipt = event.adapter.send("redeemPositions", event.condition(0), [3, 2], sender=holder)
    assert event.held(holder, 0) == (7, 8)
    assert event.collateral_of(holder) == 100 * UNIT - 10 + payout
    signature = "PayoutRedemption(address,bytes32,uint256[],uint256)"
    assert event.adapter.logs(receipt, signature) == [
        {
            "redeemer": holder,
            "conditionId": event.condition(0),
            "amounts": (3, 2),
            "payout": payout,
        }
    ]


def test_redeem_positions_needs_an_answer(event: NegRisk, holder: str) -> None:
    event.split(holder, 0, 10)
    with reverts("result for condition not received yet"):
        event.adapter.send("redeemPositions", event.condition(0), [3, 2], sender=holder)


@pytest.mark.parametrize("amounts", [[], [1]])
def test_redeem_positions_needs_both_amounts(
    event: NegRisk, holder: str, amounts: list[int]
) -> None:
    with reverts("MismatchedArrayLengths"):
        event.adapter.send("redeemPositions", event.condition(0), amounts, sender=holder)


def test_positions_redeemed_at_conditional_tokens_are_unwrapped_by_their_holder(
    event: NegRisk, holder: str
) -> None:
    event.split(holder, 0, 10)
    event.answer(0, PRICE_YES)
    wrapped = event.wrapped
    event.world.ctf.send(
        "redeemPositions", wrapped.address, ZERO_WORD, event.condition(0), [1, 2], sender=holder
    )
    assert wrapped.call("balanceOf", holder) == 10
    wrapped.send("unwrap", holder, 10, sender=holder)
    assert (event.collateral_of(holder), event.locked) == (100 * UNIT, 0)


def test_the_adapter_refuses_positions_sent_to_it(event: NegRisk, holder: str) -> None:
    event.split(holder, 0, 10)
    yes, no = event.tokens(0)
    ctf, adapter = event.world.ctf, event.adapter.address
    with reverts("UnexpectedTransfer"):
        ctf.send("safeTransferFrom", holder, adapter, yes, 1, b"", sender=holder)
    with reverts("UnexpectedTransfer"):
        ctf.send("safeBatchTransferFrom", holder, adapter, [yes, no], [1, 1], b"", sender=holder)


def test_tokens_of_another_contract_are_not_received(event: NegRisk, holder: str) -> None:
    call = keccak256(b"onERC1155Received(address,address,uint256,uint256,bytes)")[:4]
    words = encode(
        ["address", "address", "uint256", "uint256", "bytes"], [holder, holder, 1, 1, b""]
    )
    with reverts("NotConditionalTokens"):
        event.world.evm.transact(holder, event.adapter.address, call + words)


@pytest.mark.parametrize(
    ("interface", "supported"), [("01ffc9a7", True), ("4e2312e0", True), ("ffffffff", False)]
)
def test_supports_interface(
    neg_risk: NegRisk,
    interface: str,
    supported: bool,  # noqa: FBT001 - the column of a table
) -> None:
    assert neg_risk.adapter.call("supportsInterface", bytes.fromhex(interface)) is supported


def test_its_constructor_arguments_can_be_read(event: NegRisk, holder: str) -> None:
    adapter, world = event.adapter, event.world
    assert adapter.call("col") == world.collateral.address
    assert adapter.call("ctf") == world.ctf.address
    assert adapter.call("vault") == event.vault
    assert adapter.call("FEE_DENOMINATOR") == 10_000
    assert event.wrapped.call("owner") == adapter.address
    event.split(holder, 0, 5)
    assert adapter.call("balanceOf", holder, event.tokens(0).yes) == 5
