import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st
from tests.contracts.evm import own_artifact

from foretell.domain.contracts.batches import (
    MATCH_FAILED_TOPIC,
    MATCHES_MAX,
    SETTLE,
    encode_settle,
    failed_places,
    matches_of,
    parse_match_failed,
)
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.values.hexadecimal import Address, keccak256

EXCHANGE = Address("0x" + "ab" * 20)
SIGNATURE = b"MatchFailed(address,uint256,bytes)"


def test_the_matches_of_a_batch_are_read_from_its_calldata() -> None:
    matches = (b"one", b"", b"three" * 30)
    calldata = encode_settle(EXCHANGE, matches, [1, 2, 3])
    assert matches_of(calldata) == matches
    assert SETTLE.decode(calldata) == (EXCHANGE, matches, (1, 2, 3))


@given(
    matches=st.lists(st.binary(max_size=100), max_size=MATCHES_MAX),
    gas=st.integers(0, 2**256 - 1),
)
def test_a_batch_is_encoded_as_the_abi_says(matches: list[bytes], gas: int) -> None:
    limits = [gas] * len(matches)
    wanted = encode(("address", "bytes[]", "uint256[]"), (EXCHANGE, matches, limits))
    assert encode_settle(EXCHANGE, matches, limits) == SETTLE.selector + wanted


def test_it_is_the_call_of_the_contract() -> None:
    inputs = next(part for part in own_artifact("BatchSettler").abi if part["name"] == "settle")
    kinds = ",".join(each["type"] for each in inputs["inputs"])
    assert SETTLE.selector == keccak256(f"settle({kinds})".encode())[:4]


@pytest.mark.parametrize(
    ("bits", "count", "places"),
    [(0, 3, set()), (0b101, 3, {0, 2}), ((1 << MATCHES_MAX) - 1, MATCHES_MAX, set(range(20)))],
)
def test_the_result_has_a_bit_for_each_failed_match(
    bits: int, count: int, places: set[int]
) -> None:
    assert failed_places(encode(["uint256"], [bits]), count) == places


@pytest.mark.parametrize("result", [b"", encode(["uint256"], [0b1000])])
def test_the_result_of_something_else_is_refused(result: bytes) -> None:
    with pytest.raises(MalformedCalldata):
        failed_places(result, 3)


def test_the_log_of_a_failed_match_has_its_place_and_its_revert() -> None:
    assert "0x" + keccak256(SIGNATURE).hex() == MATCH_FAILED_TOPIC
    words = encode(["uint256", "bytes"], [7, b"\1\2\3\4"])
    assert parse_match_failed([MATCH_FAILED_TOPIC.upper().replace("X", "x")], words) == (
        7,
        b"\1\2\3\4",
    )
    assert parse_match_failed([], words) is None
    assert parse_match_failed(["0x" + "00" * 32], words) is None
    with pytest.raises(MalformedCalldata):
        parse_match_failed([MATCH_FAILED_TOPIC], words[:40])
