"""Version 2 of the order struct, held against encoders that share no code with ours."""

from typing import Any

import eth_abi.abi
import msgspec
import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.orders.version_2 import OWN_V2, V2_PROFILES, a_v2_buy, a_wallet_order
from tests.rigs.values import CHAIN_ID, EXCHANGE, a_key, a_signed_order, the_separators

from foretell.domain.contracts.calldata import order_words
from foretell.domain.exchange.order import OrderV2Fields, Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import SANDBOX_PROFILES
from foretell.domain.exchange.signing.structs import ORDER_V1_TYPE_HASH, ORDER_V2_TYPE_HASH, STRUCTS
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    address_of,
    keccak256,
    word_bytes,
    word_of,
)

FIELDS = (
    ("salt", "uint256"),
    ("maker", "address"),
    ("signer", "address"),
    ("tokenId", "uint256"),
    ("makerAmount", "uint256"),
    ("takerAmount", "uint256"),
    ("side", "uint8"),
    ("signatureType", "uint8"),
    ("timestamp", "uint256"),
    ("metadata", "bytes32"),
    ("builder", "bytes32"),
)
TYPES = {"Order": [{"name": name, "type": kind} for name, kind in FIELDS]}

UINTS = st.integers(0, 2**256 - 1)
UNITS = st.integers(0, 2**63 - 1)
ADDRESSES = st.binary(min_size=20, max_size=20).map(address_of)
WORDS = st.binary(min_size=32, max_size=32).map(word_of)
ORDERS = st.builds(
    SignedOrder,
    salt=UINTS.map(str),
    maker=ADDRESSES,
    signer=ADDRESSES,
    taker=st.just(ZERO_ADDRESS),
    token_id=UINTS.map(str),
    maker_amount=UNITS,
    taker_amount=UNITS,
    expiration_s=UNITS,
    nonce=st.just(0),
    fee_rate_bps=st.just(0),
    side=st.sampled_from(Side),
    signature_type=st.sampled_from(SignatureType),
    profile=st.sampled_from(V2_PROFILES),
    signature=st.just(b""),
    v2=st.builds(OrderV2Fields, timestamp_ms=UNITS | UINTS, metadata=WORDS, builder=WORDS),
)


def foreign_digest(order: SignedOrder) -> bytes:
    profile, added = SANDBOX_PROFILES[order.profile], order.v2
    assert added is not None
    is_wallet = order.signature_type is SignatureType.CONTRACT
    values: tuple[Any, ...] = (
        int(order.salt),
        order.maker,
        order.maker if is_wallet else order.signer,
        int(order.token_id),
        order.maker_amount,
        order.taker_amount,
        int(order.side),
        int(order.signature_type),
        added.timestamp_ms,
        word_bytes(added.metadata),
        word_bytes(added.builder),
    )
    domain = {
        "name": profile.name,
        "version": profile.version,
        "chainId": CHAIN_ID,
        "verifyingContract": profile.verifying_contract or EXCHANGE,
    }
    message = {name: value for (name, _), value in zip(FIELDS, values, strict=True)}
    encoded = encode_typed_data(domain, TYPES, message)
    return bytes(Account.sign_message(encoded, a_key("alice")).message_hash)


def test_the_type_hash_of_version_2_is_that_of_the_contract() -> None:
    known = "bb86318a2138f5fa8ae32fbe8e659f8fcf13cc6ae4014a707893055433818589"
    assert known == ORDER_V2_TYPE_HASH.hex()


@given(ORDERS)
def test_the_id_of_a_version_2_order_is_the_digest_of_a_generic_encoder(order: SignedOrder) -> None:
    assert the_separators().order_id(order) == word_of(foreign_digest(order))


def test_a_number_beyond_64_bits_is_hashed_as_a_word() -> None:
    order = a_v2_buy()
    assert order.v2 is not None
    late = msgspec.structs.replace(order.v2, timestamp_ms=2**200)
    changed = msgspec.structs.replace(order, v2=late)
    assert the_separators().order_id(changed) == word_of(foreign_digest(changed))
    older = a_signed_order(nonce=2**200)
    addresses = (older.maker, older.signer, older.taker)
    numbers = (older.maker_amount, older.taker_amount, older.expiration_s, older.nonce)
    ends = (older.fee_rate_bps, int(older.side), int(older.signature_type))
    kinds = ["bytes32", "uint256", *["address"] * 3, *["uint256"] * 8]
    values = [ORDER_V1_TYPE_HASH, int(older.salt), *addresses, int(older.token_id), *numbers, *ends]
    assert STRUCTS[1].hash(older) == keccak256(eth_abi.abi.encode(kinds, values))


@pytest.mark.parametrize(
    "changed", [{"expiration_s": 1_900_000_000}, {"nonce": 9}, {"fee_rate_bps": 7}, {"profile": 5}]
)
def test_version_2_does_not_sign_the_fields_of_version_1(changed: dict[str, Any]) -> None:
    order = a_v2_buy()
    changed_order = msgspec.structs.replace(order, **changed)
    assert STRUCTS[2].hash(changed_order) == STRUCTS[2].hash(order)


def test_the_exchange_gets_the_expiration_of_version_1_alone() -> None:
    order = a_v2_buy(expiration_s=1_900_000_000)
    assert order_words(order)[7] == 0


def test_the_exchange_gets_a_contract_wallet_as_its_own_signer() -> None:
    order = a_wallet_order("alice", "wallet")
    assert order_words(order)[1] == order_words(order)[2] == order.maker


def test_an_order_of_version_1_is_encoded_with_one_byte_more() -> None:
    order = msgspec.structs.replace(a_v2_buy(profile=OWN_V2), v2=None)
    fields = msgspec.msgpack.decode(msgspec.msgpack.encode(order))
    older = msgspec.msgpack.encode(fields[:-1])
    assert len(msgspec.msgpack.encode(order)) == len(older) + 1
    assert msgspec.msgpack.decode(older, type=SignedOrder) == order
