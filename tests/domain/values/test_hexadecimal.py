"""Addresses, words and byte strings."""

import pytest
from eth_utils.address import to_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.errors.families import MalformedHex
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    address_bytes,
    address_of,
    checksum_address,
    keccak256,
    parse_address,
    parse_bytes,
    parse_bytes32,
    word_bytes,
    word_of,
)

# The examples of EIP-55.
CHECKSUMMED = (
    "0x52908400098527886E0F7030069857D2E4169EE7",
    "0x8617E340B3D01FA5F11F306F4090FD50E238070D",
    "0xde709f2102306220921060314715629080e2fb77",
    "0x27b1fdb04752bbc536007a920d24acb045561c26",
    "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359",
    "0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB",
    "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb",
)

NOT_HEX_OF_ANY_LENGTH = (
    None,
    0,
    b"0x",
    ["0x"],
    "",
    "0",
    "0x0",
    "0xg0",
    "00",
    " 0x00",
    "0x00 ",
    "0x00\n",
    "0x0_0",
    "0x-1",
    "0x\u0660\u0660",
)


@pytest.mark.parametrize("text", CHECKSUMMED)
def test_the_checksum_is_that_of_eip_55(text: str) -> None:
    assert checksum_address(parse_address(text)) == text


@given(st.binary(min_size=20, max_size=20))
def test_the_checksum_is_that_of_another_implementation(raw: bytes) -> None:
    assert checksum_address(address_of(raw)) == to_checksum_address(raw)


def test_keccak_is_not_the_standardized_sha3() -> None:
    empty = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    assert keccak256(b"").hex() == empty


@pytest.mark.spec(3)
@given(st.binary(min_size=20, max_size=20))
def test_an_address_is_the_same_in_every_case(raw: bytes) -> None:
    address = address_of(raw)
    assert parse_address("0X" + raw.hex().upper()) == address == parse_address(address)
    assert address == address.lower()
    assert address_bytes(address) == raw


@pytest.mark.spec(3)
@given(st.binary(min_size=32, max_size=32))
def test_a_word_is_the_same_in_every_case(raw: bytes) -> None:
    word = word_of(raw)
    assert parse_bytes32("0X" + raw.hex().upper()) == word == parse_bytes32(word)
    assert word_bytes(word) == raw


@given(st.binary(max_size=8))
def test_bytes_are_parsed_from_their_hex(raw: bytes) -> None:
    assert parse_bytes("0x" + raw.hex(), "data", 8) == raw


def test_the_zeros_are_an_address_and_a_word() -> None:
    assert parse_address("0x" + "00" * 20) == ZERO_ADDRESS
    assert parse_bytes32("0x" + "00" * 32) == ZERO_BYTES32


@pytest.mark.parametrize(
    "text",
    [
        *NOT_HEX_OF_ANY_LENGTH,
        "0x" + "0" * 39,
        "0x" + "0" * 41,
        "0x" + "0" * 64,
        "0" * 42,
        "0x" + "0" * 39 + "g",
        "0x" + "0" * 40 + "\n",
        "0x" + "\u0661" * 40,
    ],
    ids=repr,
)
def test_a_malformed_address_is_refused_with_the_name_of_the_field(text: object) -> None:
    with pytest.raises(MalformedHex) as refusal:
        parse_address(text, "maker")
    assert refusal.value.details["field"] == "maker"


@pytest.mark.parametrize(
    "text",
    [
        *NOT_HEX_OF_ANY_LENGTH,
        "0x" + "0" * 40,
        "0x" + "0" * 63,
        "0x" + "0" * 65,
        "0" * 66,
        "0x" + "0" * 64 + "\n",
    ],
    ids=repr,
)
def test_a_malformed_word_is_refused_with_the_name_of_the_field(text: object) -> None:
    with pytest.raises(MalformedHex) as refusal:
        parse_bytes32(text, "salt")
    assert refusal.value.details["field"] == "salt"


@pytest.mark.parametrize("text", [*NOT_HEX_OF_ANY_LENGTH, "0x" + "00" * 9, "0x000"], ids=repr)
def test_malformed_or_too_many_bytes_are_refused(text: object) -> None:
    with pytest.raises(MalformedHex, match="at most 8 bytes"):
        parse_bytes(text, "data", 8)


@pytest.mark.parametrize("length", [0, 19, 21, 32])
def test_an_address_is_made_of_twenty_bytes_only(length: int) -> None:
    with pytest.raises(AssertionError):
        address_of(bytes(length))


@pytest.mark.parametrize("length", [0, 20, 31, 33])
def test_a_word_is_made_of_thirty_two_bytes_only(length: int) -> None:
    with pytest.raises(AssertionError):
        word_of(bytes(length))
