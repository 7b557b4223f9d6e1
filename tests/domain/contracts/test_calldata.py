import pytest
from eth_abi.abi import decode
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.contracts import calldata as calls
from foretell.domain.contracts.calldata import (
    Approve,
    ClientCall,
    MergePositions,
    OrderFill,
    QuestionTerms,
    RedeemPositions,
    Resolution,
    SetApprovalForAll,
    SplitPosition,
    Transfer,
    decode_call,
)
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi import ContractFunction
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32, address_of, word_of
from foretell.domain.values.tokens import TokenPair

COLLATERAL = Address("0x" + "c0" * 20)
SPENDER = Address("0x" + "5e" * 20)
CONDITION = Bytes32("0x" + "1d" * 32)


@pytest.mark.parametrize(
    ("function", "selector"),
    [
        # Those of deployed contracts and of third-party clients.
        (calls.APPROVE, "095ea7b3"),
        (calls.TRANSFER, "a9059cbb"),
        (calls.SET_APPROVAL_FOR_ALL, "a22cb465"),
        (calls.SAFE_TRANSFER_FROM, "f242432a"),
        (calls.SPLIT_POSITION, "72ce4275"),
        (calls.MERGE_POSITIONS, "9e7212ad"),
        (calls.REDEEM_POSITIONS, "01b7037c"),
        (calls.INITIALIZE, "185d1646"),
        (calls.REGISTER_TOKEN, "68c7450f"),
        (calls.INCREMENT_NONCE, "627cdcb9"),
        (calls.CREATE_PROXY, "a1884d2c"),
        (calls.EXEC_TRANSACTION, "6a761202"),
        (calls.MULTI_SEND, "8d80ff0a"),
    ],
)
def test_a_selector_is_that_of_deployed_contracts_and_clients(
    function: ContractFunction, selector: str
) -> None:
    assert function.selector.hex() == selector


addresses = st.binary(min_size=20, max_size=20).map(address_of)
conditions = st.binary(min_size=32, max_size=32).map(word_of)
amounts = st.integers(0, 2**256 - 1)
index_sets = st.lists(st.integers(0, 3), max_size=3).map(tuple)
client_calls: st.SearchStrategy[ClientCall] = st.one_of(
    st.builds(Approve, addresses, amounts),
    st.builds(Transfer, addresses, amounts),
    st.builds(SetApprovalForAll, addresses, st.booleans()),
    st.builds(SplitPosition, addresses, conditions, amounts, index_sets),
    st.builds(MergePositions, addresses, conditions, amounts, index_sets),
    st.builds(RedeemPositions, addresses, conditions, index_sets),
)


@given(client_calls)
def test_a_clients_call_is_decoded_as_it_was_encoded(call: ClientCall) -> None:
    assert decode_call(call.encode()) == call


@pytest.mark.case("D-10")
@given(client_calls, st.data())
def test_a_call_with_bytes_cut_off_or_added_is_refused(
    call: ClientCall, data: st.DataObject
) -> None:
    calldata = call.encode()
    cut = data.draw(st.integers(1, len(calldata)))
    with pytest.raises(MalformedCalldata):
        decode_call(calldata[:-cut])
    with pytest.raises(MalformedCalldata):
        decode_call(calldata + data.draw(st.binary(min_size=1, max_size=64)))


def test_a_function_that_is_not_served_is_refused() -> None:
    with pytest.raises(MalformedCalldata, match="a function that is served here"):
        decode_call(calls.MULTI_SEND.encode(b""))


@pytest.mark.parametrize(
    "calldata",
    [
        calls.MERGE_POSITIONS.encode(COLLATERAL, bytes([1]) * 32, bytes(32), (1, 2), 5),
        calls.SPLIT_POSITION.encode(COLLATERAL, bytes([1]) * 32, bytes(32), (1, 2), 5),
        calls.REDEEM_POSITIONS.encode(COLLATERAL, bytes([1]) * 32, bytes(32), (1, 2)),
    ],
)
def test_a_parent_collection_is_refused(calldata: bytes) -> None:
    with pytest.raises(MalformedCalldata, match="without a parent collection"):
        decode_call(calldata)


def test_a_redeem_call_is_encoded_as_in_clients() -> None:
    expected = (
        "01b7037c"
        + ("00" * 12 + "c0" * 20)
        + "00" * 32
        + "1d" * 32
        + f"{0x80:064x}"
        + f"{2:064x}"
        + f"{1:064x}"
        + f"{2:064x}"
    )
    assert RedeemPositions(COLLATERAL, CONDITION).encode().hex() == expected


def an_order(side: Side = Side.BUY) -> SignedOrder:
    return SignedOrder(
        salt=str(2**200),
        maker=Address("0x" + "aa" * 20),
        signer=Address("0x" + "bb" * 20),
        taker=Address("0x" + "00" * 20),
        token_id=str(2**255 + 7),
        maker_amount=40,
        taker_amount=100,
        expiration_s=9,
        nonce=3,
        fee_rate_bps=2,
        side=side,
        signature_type=SignatureType.SAFE,
        profile=1,
        signature=b"\x11" * 65,
    )


ORDER_VALUES = (
    2**200,
    "0x" + "aa" * 20,
    "0x" + "bb" * 20,
    "0x" + "00" * 20,
    2**255 + 7,
    40,
    100,
    9,
    3,
    2,
    0,
    bytes(32),
    bytes(32),
)


def test_a_match_names_each_order_with_its_fill_and_fee() -> None:
    maker = an_order(Side.SELL)
    calldata = calls.encode_match_orders(
        OrderFill(an_order(), 40, 1), [OrderFill(maker, 70, 2), OrderFill(maker, 30)]
    )
    taker_values, maker_values, *amounts = calls.MATCH_ORDERS.decode(calldata)
    assert taker_values == (*ORDER_VALUES, 0, 2, 1, b"\x11" * 65)
    assert maker_values == ((*ORDER_VALUES, 1, 2, 1, b"\x11" * 65),) * 2
    assert amounts == [40, (70, 30), 1, (2, 0)]


def test_an_order_is_validated_as_it_was_signed() -> None:
    calldata = calls.encode_validate_order(an_order())
    assert calls.VALIDATE_ORDER.decode(calldata) == ((*ORDER_VALUES, 0, 2, 1, b"\x11" * 65),)


def test_a_question_is_asked_with_its_text_and_terms() -> None:
    calldata = QuestionTerms(b"q: title", COLLATERAL, 1, 2, 3).encode()
    assert calls.INITIALIZE.decode(calldata) == (b"q: title", COLLATERAL, 1, 2, 3)
    assert QuestionTerms(b"q", COLLATERAL).encode() == calls.INITIALIZE.encode(
        b"q", COLLATERAL, 0, 0, 0
    )


def test_an_answer_names_the_question_as_it_was_asked() -> None:
    calldata = Resolution(SPENDER, CONDITION, 77, b"text", calls.PRICE_YES).encode()
    kinds = ["address", "bytes32", "bytes32", "uint256", "bytes", "int256"]
    adapter, question, identifier, *rest = decode(kinds, calldata[4:])
    assert (adapter, question.hex()) == (SPENDER, "1d" * 32)
    assert identifier.hex() == "5945535f4f525f4e4f5f51554552590000000000000000000000000000000000"
    assert rest == [77, b"text", 10**18]


def test_tokens_and_metadata_are_named_by_their_condition() -> None:
    assert calls.REGISTER_TOKEN.decode(calls.encode_register_token(TokenPair(5, 6), CONDITION)) == (
        5,
        6,
        bytes.fromhex("1d" * 32),
    )
    assert calls.SET_METADATA.decode(calls.encode_set_metadata(CONDITION, "abc")) == (
        bytes.fromhex("1d" * 32),
        "abc",
    )
