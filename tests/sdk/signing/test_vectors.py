"""The published vectors of signatures: made by an encoder that nobody here wrote, and met by the SDK."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from foretell.domain.exchange.signing.wallet_signatures import wallet_signature
from foretell.domain.values.eip712 import Eip712Domain
from foretell.domain.values.hexadecimal import keccak256, parse_address
from foretell.sdk.signing.signers import KeySigner
from foretell.sdk.signing.typed_data import TypedData, order_data, wallet_order_data

pytestmark = pytest.mark.anyio

FILE = Path(__file__).parents[3] / "docs" / "reference" / "signing-vectors.json"
VECTORS: dict[str, Any] = json.loads(FILE.read_text())
CASES: list[dict[str, Any]] = VECTORS["orders"]
NUMBERS = {
    "salt", "tokenId", "makerAmount", "takerAmount", "expiration", "nonce", "feeRateBps", "side",
    "signatureType", "timestamp",
}  # fmt: skip
CONTRACT = 3


def name_of(case: Mapping[str, Any]) -> str:
    return f"{case['wallet']}-{case['structVersion']}-{case['domain']['verifyingContract'][:6]}"


def order_of(case: Mapping[str, Any]) -> TypedData:
    given = case["domain"]
    contract = parse_address(given["verifyingContract"])
    domain = Eip712Domain(given["name"], given["version"], given["chainId"], contract)
    message = {
        name: int(value) if name in NUMBERS else value for name, value in case["message"].items()
    }
    return order_data(domain, message, case["structVersion"])


def signed_of(case: Mapping[str, Any]) -> TypedData:
    """Return what the signer signs: the order, or for a deposit wallet the struct around it."""
    order = order_of(case)
    if case["message"]["signatureType"] != CONTRACT:
        return order
    chain_id = case["domain"]["chainId"]
    return wallet_order_data(order, chain_id, parse_address(case["message"]["maker"]))


def test_every_wallet_signs_every_struct_that_it_can_at_both_exchanges() -> None:
    found = {(case["wallet"], case["structVersion"], case["negRisk"]) for case in CASES}
    both = {(kind, version) for kind in ("eoa", "safe", "proxy wallet") for version in (1, 2)}
    wanted = both | {("deposit wallet", 2)}
    assert found == {(*each, is_event) for each in wanted for is_event in (False, True)}


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_an_independent_encoder_makes_the_vector(case: dict[str, Any]) -> None:
    order = encode_typed_data(full_message=order_of(case).json_object())
    assert case["orderHash"] == "0x" + keccak256(b"\x19\x01" + order.header + order.body).hex()
    signable = encode_typed_data(full_message=signed_of(case).json_object())
    signature = Account.sign_message(signable, VECTORS["privateKey"]).signature
    assert case["ownerSignature"] == "0x" + bytes(signature).hex()


@pytest.mark.parametrize("case", CASES, ids=name_of)
async def test_the_sdk_makes_the_vector(case: dict[str, Any]) -> None:
    order, signed = order_of(case), signed_of(case)
    own = await KeySigner.from_hex(VECTORS["privateKey"]).sign_typed(signed)
    assert case["ownerSignature"] == "0x" + own.hex()
    assert case["orderHash"] == "0x" + order.digest().hex()
    whole = own
    if case["message"]["signatureType"] == CONTRACT:
        whole = wallet_signature(own, order.domain.separator(), order.struct_hash())
    assert case["signature"] == "0x" + whole.hex()
