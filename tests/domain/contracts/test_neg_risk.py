import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.contracts.neg_risk import QUESTIONS_EVER_MAX, market_id, question_id
from foretell.domain.values.hexadecimal import Address, keccak256, parse_bytes32

OPERATOR = Address("0x71523d0f655b41e805cec45b17163f528b59b820")
CREATOR = Address("0x" + "ab" * 20)
MARKET = parse_bytes32("0x" + "12" * 31 + "00")


@given(fee_bips=st.integers(0, 10_000), metadata=st.binary(max_size=100))
def test_a_market_id_is_the_hash_of_the_adapters_encoding(fee_bips: int, metadata: bytes) -> None:
    text = metadata + b",initializer:" + b"ab" * 20
    encoded = encode(["address", "uint256", "bytes"], [OPERATOR, fee_bips, text])
    market = market_id(OPERATOR, fee_bips, metadata, CREATOR)
    assert market == "0x" + keccak256(encoded)[:31].hex() + "00"


@pytest.mark.parametrize(("index", "last"), [(0, "00"), (7, "07"), (254, "fe")])
def test_a_question_id_is_its_markets_with_the_index_at_the_end(index: int, last: str) -> None:
    assert question_id(MARKET, index) == "0x" + "12" * 31 + last


@pytest.mark.parametrize("index", [-1, QUESTIONS_EVER_MAX])
def test_a_market_has_no_question_beyond_its_last(index: int) -> None:
    with pytest.raises(AssertionError):
        question_id(MARKET, index)
