from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretell.domain.contracts.calldata import OrderFill
from foretell.domain.contracts.packed_match import (
    MATCH_PACKED,
    SUPPORTS_INTERFACE,
    encode_match_packed,
)
from foretell.domain.exchange.order import OrderV2Fields, Side, SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, Address, Bytes32

ACCOUNT = Address("0x" + "aa" * 20)
SAFE = Address("0x" + "bb" * 20)
TOKEN = 2**255 + 7
ORDER = SignedOrder(
    salt="9",
    maker=ACCOUNT,
    signer=ACCOUNT,
    taker=ZERO_ADDRESS,
    token_id=str(TOKEN),
    maker_amount=40,
    taker_amount=100,
    expiration_s=0x0102,
    nonce=0,
    fee_rate_bps=0,
    side=Side.BUY,
    signature_type=SignatureType.EOA,
    profile=0,
    signature=b"\x11" * 32 + b"\x22" * 32 + b"\x1b",
)
V2 = OrderV2Fields(0x0304, ZERO_BYTES32, ZERO_BYTES32)


def an_order(**changed: Any) -> SignedOrder:
    return msgspec.structs.replace(ORDER, **changed)


def records(*fills: OrderFill) -> bytes:
    calldata = encode_match_packed(fills[0], fills[1:])
    assert calldata is not None
    (packed,) = MATCH_PACKED.decode(calldata)
    assert packed[:32] == TOKEN.to_bytes(32)
    return bytes(packed[32:])


def test_a_record_has_five_words() -> None:
    assert (
        records(OrderFill(ORDER, 7, 3)).hex()
        == (
            "aa" * 20 + "0000000000000102" + "0000" + "0000"  # account, time, flags, no rate
            "0000000000000000000000000000000000000000000000000000000000000009"  # salt
            "00000000000000280000000000000064"  # amounts
            "00000000000000070000000000000003"  # fill, fee
             + "11" * 32 + "22" * 32
        )
    )


def test_the_account_of_a_safe_order_is_its_signer() -> None:
    order = an_order(maker=SAFE, signature_type=SignatureType.SAFE)
    assert records(OrderFill(order, 7))[:32].hex() == "aa" * 20 + "0000000000000102" + "00200000"


@pytest.mark.parametrize(
    ("changed", "flags"),
    [
        ({"side": Side.SELL}, 0x08),
        ({"profile": 7}, 0x07),
        ({"signature": b"\x11" * 64 + b"\x1c"}, 0x40),
        ({"nonce": 5}, 0x80),
    ],
)
def test_flags_have_side_profile_recovery_and_extra_words(
    changed: dict[str, Any], flags: int
) -> None:
    assert records(OrderFill(an_order(**changed), 7))[28:30] == flags.to_bytes(2)


def test_a_fee_rate_is_in_the_first_word_and_a_nonce_is_one_more() -> None:
    packed = records(OrderFill(an_order(nonce=5, fee_rate_bps=6), 7), OrderFill(ORDER, 8))
    assert packed[28:32].hex() == "0080" + "0006"
    assert packed[160:192] == (5).to_bytes(32)
    assert packed[192:] == records(OrderFill(ORDER, 8))


def test_version_2_has_a_timestamp_in_place_of_the_expiration() -> None:
    v2 = OrderV2Fields(0x0304, ZERO_BYTES32, ZERO_BYTES32)
    packed = records(OrderFill(an_order(v2=v2, profile=3), 7))
    assert packed[:32].hex() == "aa" * 20 + "0000000000000304" + "00030000"
    assert len(packed) == 160


@pytest.mark.parametrize(("metadata", "builder"), [("00", "cc"), ("dd", "00"), ("dd", "cc")])
def test_metadata_and_a_builder_are_two_more_words(metadata: str, builder: str) -> None:
    v2 = OrderV2Fields(0, Bytes32("0x" + metadata * 32), Bytes32("0x" + builder * 32))
    packed = records(OrderFill(an_order(v2=v2), 7), OrderFill(ORDER, 8))
    assert packed[28:30] == (0x80).to_bytes(2)
    assert packed[160:224].hex() == metadata * 32 + builder * 32
    assert packed[224:] == records(OrderFill(ORDER, 8))


@pytest.mark.parametrize("length", [0, 1, 32, 65, 512])
def test_the_signature_of_a_contract_follows_its_record_in_whole_words(length: int) -> None:
    """The account is the contract itself, also when a key of its owner signed."""
    signature = b"\x33" * length
    order = an_order(
        maker=SAFE, signature_type=SignatureType.CONTRACT, signature=signature, v2=V2, profile=3
    )
    packed = records(OrderFill(order, 7), OrderFill(ORDER, 8))
    head = "bb" * 20 + "0000000000000304" + "0033" + length.to_bytes(2).hex()
    assert packed[:32].hex() == head
    assert packed[96:160] == bytes(64)
    padding = -length % 32
    assert packed[160:] == signature + bytes(padding) + records(OrderFill(ORDER, 8))


@pytest.mark.parametrize(
    "changed",
    [
        {"maker": SAFE},
        {"signature_type": SignatureType.PROXY},
        {"signature_type": SignatureType.CONTRACT},
        {"signature_type": SignatureType.CONTRACT, "v2": V2, "signature": b"s" * 513},
        {"taker": SAFE},
        {"signature": b"\x11" * 64},
        {"signature": b"\x11" * 66},
        {"profile": 8},
        {"expiration_s": 2**64},
        {"v2": OrderV2Fields(2**64, ZERO_BYTES32, ZERO_BYTES32)},
        {"maker_amount": 2**64},
        {"taker_amount": 2**64},
        {"fee_rate_bps": 2**16},
    ],
)
def test_an_order_that_a_record_cannot_say_is_not_packed(changed: dict[str, Any]) -> None:
    odd, plain = OrderFill(an_order(**changed), 7), OrderFill(ORDER, 7)
    assert encode_match_packed(odd, [plain]) is None
    assert encode_match_packed(plain, [plain, odd]) is None


@given(making=st.integers(0, 2**64 - 1), fee=st.integers(0, 2**64 - 1))
def test_a_fill_and_a_fee_have_a_quarter_of_a_word_each(making: int, fee: int) -> None:
    packed = records(OrderFill(ORDER, making, fee))
    assert (packed[80:88], packed[88:96]) == (making.to_bytes(8), fee.to_bytes(8))


def test_an_exchange_is_asked_for_the_selector() -> None:
    assert SUPPORTS_INTERFACE.selector.hex() == "01ffc9a7"
    assert len(MATCH_PACKED.selector) == 4
