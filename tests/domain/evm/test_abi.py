import contextlib

import pytest
from eth_abi.abi import encode
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.abi import contract_function, revert_reason
from foretell.domain.evm.abi_values import types_of

TRANSFER = contract_function("transfer(address,uint256)", "(bool)")
NESTED = contract_function("f((uint256,bytes)[],(uint8,bytes32),string,uint256[])")
RECEIVER = "0x" + "ab" * 20


def test_a_signature_is_read_into_its_types() -> None:
    assert TRANSFER.name == "transfer"
    assert TRANSFER.inputs == ("address", "uint256")
    assert TRANSFER.outputs == ("bool",)
    assert TRANSFER.selector.hex() == "a9059cbb"
    assert NESTED.inputs == ("(uint256,bytes)[]", "(uint8,bytes32)", "string", "uint256[]")
    assert contract_function("pause()").inputs == ()


def test_tuples_within_tuples_stay_whole() -> None:
    assert types_of("((a,(b,c))[],d)") == ("(a,(b,c))[]", "d")


def test_a_call_is_encoded_as_in_the_abi_specification() -> None:
    expected = "a9059cbb" + "00" * 12 + "ab" * 20 + "00" * 31 + "01"
    assert TRANSFER.encode(RECEIVER, 1).hex() == expected


@given(
    st.lists(st.tuples(st.integers(0, 2**256 - 1), st.binary(max_size=70)), max_size=4),
    st.tuples(st.integers(0, 255), st.binary(min_size=32, max_size=32)),
    st.text(max_size=40),
    st.lists(st.integers(0, 2**256 - 1), max_size=4),
)
def test_encoded_arguments_are_decoded(
    pairs: list[tuple[int, bytes]], pair: tuple[int, bytes], text: str, numbers: list[int]
) -> None:
    arguments = (tuple(pairs), pair, text, tuple(numbers))
    assert NESTED.decode(NESTED.encode(*arguments)) == arguments


@given(st.binary(max_size=300))
def test_bytes_are_read_as_a_call_or_refused(raw: bytes) -> None:
    calldata = NESTED.selector + raw
    with contextlib.suppress(MalformedCalldata):
        assert NESTED.encode(*NESTED.decode(calldata)) == calldata


GOOD = TRANSFER.encode(RECEIVER, 1)
STRING = contract_function("s(bytes)")


@pytest.mark.parametrize(
    "calldata",
    [
        b"",
        GOOD[:3],
        b"\x00" + GOOD[1:],
        GOOD[:-1],
        GOOD + b"\x00",
        GOOD + bytes(32),
        GOOD[:4] + b"\x01" + GOOD[5:],
    ],
)
def test_calldata_other_than_exactly_the_call_is_refused(calldata: bytes) -> None:
    with pytest.raises(MalformedCalldata, match=r"transfer\(address,uint256\)"):
        TRANSFER.decode(calldata)


@pytest.mark.parametrize(
    "words",
    [
        # An offset that skips a word; a length past the end; bits after the last byte; a bomb.
        (64).to_bytes(32, "big") + bytes(32) + (1).to_bytes(32, "big") + b"a".ljust(32, b"\0"),
        (32).to_bytes(32, "big") + (33).to_bytes(32, "big") + bytes(32),
        (32).to_bytes(32, "big") + (1).to_bytes(32, "big") + b"ab".ljust(32, b"\0"),
        (32).to_bytes(32, "big") + (2**255).to_bytes(32, "big"),
        (2**255).to_bytes(32, "big"),
    ],
)
def test_bytes_spelt_in_another_way_are_refused(words: bytes) -> None:
    with pytest.raises(MalformedCalldata):
        STRING.decode(STRING.selector + words)


def test_an_answer_is_read_or_refused() -> None:
    assert TRANSFER.decode_result((1).to_bytes(32, "big")) == (True,)
    with pytest.raises(MalformedCalldata):
        TRANSFER.decode_result((2).to_bytes(32, "big"))
    with pytest.raises(MalformedCalldata):
        TRANSFER.decode_result(b"")


@pytest.mark.parametrize(
    ("revert", "reason"),
    [
        ("08c379a0" + encode(["string"], ["GS013"]).hex(), "GS013"),
        ("08c379a0" + "00" * 5, None),
        ("4e487b71" + encode(["uint256"], [0x11]).hex(), "panic 0x11"),
        ("01020304", "NotOwner"),
        ("01020305", None),
        ("", None),
    ],
)
def test_a_revert_has_its_reason(revert: str, reason: str | None) -> None:
    assert revert_reason(bytes.fromhex(revert), {b"\x01\x02\x03\x04": "NotOwner"}) == reason
