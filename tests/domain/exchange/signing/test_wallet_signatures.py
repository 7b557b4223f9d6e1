"""Signatures of contract wallets, as the ecosystem's clients build them."""

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from tests.rigs.orders.version_2 import V2_PROFILES, a_wallet_order
from tests.rigs.values import CHAIN_ID, EXCHANGE, a_key, an_address, the_separators

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.exchange.profiles import SANDBOX_PROFILES
from foretell.domain.exchange.signing.structs import STRUCTS
from foretell.domain.exchange.signing.wallet_signatures import (
    WALLET_SIGNATURE_BYTES,
    named_contents,
    named_separator,
    normalize_wallet_signature,
    owner_signature,
    wallet_digest,
)
from foretell.domain.values.eip712 import CURVE_ORDER, recover_signer
from foretell.domain.values.hexadecimal import Address

ORDER_FIELDS = (
    "uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,"
    "uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,"
    "bytes32 builder"
)
NESTED_FIELDS = (
    "Order contents,string name,string version,uint256 chainId,address verifyingContract,"
    "bytes32 salt"
)


def typed_fields(text: str) -> list[dict[str, str]]:
    return [dict(zip(("type", "name"), each.split(" "), strict=True)) for each in text.split(",")]


@pytest.mark.parametrize("profile", V2_PROFILES)
def test_the_owner_signs_the_order_nested_in_the_wallet_s_domain(profile: int) -> None:
    order = a_wallet_order("alice", "wallet", profile=profile)
    accepted, known = the_separators(), SANDBOX_PROFILES[profile]
    assert order.v2 is not None
    contents = {
        "salt": int(order.salt),
        "maker": order.maker,
        "signer": order.maker,
        "tokenId": int(order.token_id),
        "makerAmount": order.maker_amount,
        "takerAmount": order.taker_amount,
        "side": int(order.side),
        "signatureType": 3,
        "timestamp": order.v2.timestamp_ms,
        "metadata": bytes(32),
        "builder": bytes(32),
    }
    encoded = encode_typed_data(
        {
            "name": known.name,
            "version": known.version,
            "chainId": CHAIN_ID,
            "verifyingContract": known.verifying_contract or EXCHANGE,
        },
        {"TypedDataSign": typed_fields(NESTED_FIELDS), "Order": typed_fields(ORDER_FIELDS)},
        {
            "contents": contents,
            "name": "DepositWallet",
            "version": "1",
            "chainId": CHAIN_ID,
            "verifyingContract": order.maker,
            "salt": bytes(32),
        },
    )
    signed = Account.sign_message(encoded, a_key("alice"))
    digest = wallet_digest(
        accepted.by_profile[profile], STRUCTS[2].hash(order), order.maker, CHAIN_ID
    )
    assert bytes(signed.message_hash) == digest
    assert bytes(signed.signature) == owner_signature(order.signature)
    assert named_separator(order.signature) == accepted.by_profile[profile]
    assert named_contents(order.signature) == STRUCTS[2].hash(order)
    assert len(order.signature) == WALLET_SIGNATURE_BYTES == 317


def test_a_signature_for_one_wallet_is_none_for_another_of_the_same_owner() -> None:
    order = a_wallet_order("alice", "wallet")
    other = wallet_digest(
        named_separator(order.signature),
        named_contents(order.signature),
        Address("0x" + "12" * 20),
        CHAIN_ID,
    )
    assert recover_signer(other, owner_signature(order.signature)) != an_address("alice")


def test_a_v_of_0_or_1_inside_is_normalized() -> None:
    signature = a_wallet_order("alice", "wallet").signature
    low = signature[:64] + bytes([signature[64] - 27]) + signature[65:]
    assert normalize_wallet_signature(low) == normalize_wallet_signature(signature) == signature


def test_the_malleable_twin_inside_is_refused() -> None:
    signature = a_wallet_order("alice", "wallet").signature
    high_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + high_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    with pytest.raises(MalformedSignature, match="lower half"):
        normalize_wallet_signature(twin + signature[65:])


@pytest.mark.parametrize("change", [slice(0, 316), slice(0, 65), slice(0, 0)])
def test_a_signature_of_another_length_is_refused(change: slice) -> None:
    with pytest.raises(MalformedSignature, match="317 bytes"):
        normalize_wallet_signature(a_wallet_order("alice", "wallet").signature[change])


@pytest.mark.parametrize("at", [129, 314, 315, 316])
def test_a_signature_of_another_type_is_refused(at: int) -> None:
    signature = bytearray(a_wallet_order("alice", "wallet").signature)
    signature[at] ^= 1
    with pytest.raises(MalformedSignature, match="type of a version 2 order"):
        normalize_wallet_signature(bytes(signature))
