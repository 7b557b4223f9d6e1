"""Typed data is hashed as the domain hashes it, and as an encoder hashes it that nobody here wrote."""

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import NOW_S, a_key, a_word, an_address

from foretell.domain.contracts.deposit_wallet import WalletBatch
from foretell.domain.contracts.safe import InnerCall, SafeTx, create_proxy_digest
from foretell.domain.creation.request import Challenge
from foretell.domain.exchange.order import OrderV2Fields, Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import OWN_PROFILE, OWN_PROFILE_V2, separators
from foretell.domain.exchange.signing.wallet_signatures import wallet_digest
from foretell.domain.values.credentials import l1_digest
from foretell.domain.values.eip712 import Eip712Domain, typed_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, ZERO_BYTES32, keccak256
from foretell.sdk.authentication import usual_l1_domain
from foretell.sdk.signing.typed_data import (
    SafeCall,
    TypedData,
    challenge_data,
    key_request,
    new_safe_data,
    order_data,
    safe_tx_data,
    wallet_batch_data,
    wallet_order_data,
)

OWNER, SAFE, EXCHANGE = an_address("owner"), an_address("safe"), an_address("exchange")
CHALLENGE = Challenge(
    "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a", OWNER, a_word("p"), a_word("n"), 1_800_000_000_000, 137
)
BATCH = WalletBatch(SAFE, (InnerCall(OWNER, b"\x01"), InnerCall(EXCHANGE, b"", 5)), 4, NOW_S + 600)
CASES: list[tuple[TypedData, bytes]] = [
    (
        key_request(usual_l1_domain(80002), OWNER, str(NOW_S), 7),
        l1_digest(80002, OWNER, str(NOW_S), 7),
    ),
    (challenge_data(CHALLENGE), CHALLENGE.digest()),
    (
        safe_tx_data(80002, SafeCall(SAFE, OWNER, b"\x01\x02", 9, 1)),
        SafeTx(SAFE, OWNER, b"\x01\x02", 9, 1).digest(80002),
    ),
    (
        new_safe_data(80002, SAFE, "Factory"),
        create_proxy_digest(SAFE, "Factory", 80002),
    ),
    (wallet_batch_data(80002, BATCH), BATCH.digest(80002)),
]


def independent(typed: TypedData) -> bytes:
    """Return the digest by eth-account, of the JSON that a remote signer gets."""
    signable = encode_typed_data(full_message=typed.json_object())
    return keccak256(b"\x19\x01" + signable.header + signable.body)


@pytest.mark.parametrize(
    ("typed", "digest"), CASES, ids=lambda case: getattr(case, "primary_type", "")
)
def test_typed_data_has_the_digest_that_the_server_checks(typed: TypedData, digest: bytes) -> None:
    assert typed.digest() == digest == independent(typed)


@given(
    amounts=st.tuples(st.integers(1, 2**63 - 1), st.integers(1, 2**63 - 1)),
    token=st.integers(0, 2**256 - 1),
    salt=st.integers(0, 2**256 - 1),
    side=st.sampled_from(Side),
)
def test_an_order_has_the_digest_that_is_its_id(
    amounts: tuple[int, int], token: int, salt: int, side: Side
) -> None:
    order = SignedOrder(
        str(salt), SAFE, OWNER, ZERO_ADDRESS, str(token), *amounts, 0, 3, 0,
        side, SignatureType.SAFE, 0, b"",
    )  # fmt: skip
    message: dict[str, str | int | bytes] = {
        "salt": salt, "maker": SAFE, "signer": OWNER, "taker": ZERO_ADDRESS, "tokenId": token,
        "makerAmount": amounts[0], "takerAmount": amounts[1], "expiration": 0, "nonce": 3,
        "feeRateBps": 0, "side": int(side), "signatureType": 2,
    }  # fmt: skip
    typed = order_data(Eip712Domain("Foretell Exchange", "1", 31337, EXCHANGE), message)
    known = separators([OWN_PROFILE], 31337, EXCHANGE)
    assert "0x" + typed.digest().hex() == known.order_id(order)
    assert typed.digest() == independent(typed)


@pytest.mark.parametrize("kind", [SignatureType.SAFE, SignatureType.CONTRACT])
def test_an_order_of_version_2_has_the_digest_that_its_wallet_checks(kind: SignatureType) -> None:
    """The owner of a deposit wallet signs the order nested in a struct that names the wallet."""
    code, signer = a_word("builder"), SAFE if kind is SignatureType.CONTRACT else OWNER
    order = SignedOrder(
        "8", SAFE, OWNER, ZERO_ADDRESS, "7", 5, 9, 0, 0, 0, Side.BUY, kind, 0, b"",
        v2=OrderV2Fields(NOW_S * 1000, ZERO_BYTES32, code),
    )  # fmt: skip
    message: dict[str, str | int | bytes] = {
        "salt": 8, "maker": SAFE, "signer": signer, "tokenId": 7, "makerAmount": 5,
        "takerAmount": 9, "side": 0, "signatureType": int(kind), "timestamp": NOW_S * 1000,
        "metadata": ZERO_BYTES32, "builder": code,
    }  # fmt: skip
    typed = order_data(Eip712Domain("Foretell Exchange", "2", 31337, EXCHANGE), message, 2)
    known = separators([OWN_PROFILE_V2], 31337, EXCHANGE)
    assert "0x" + typed.digest().hex() == known.order_id(order)
    assert typed.digest() == independent(typed)
    nested = wallet_order_data(typed, 31337, SAFE)
    separator = known.by_profile[0]
    assert nested.digest() == independent(nested)
    assert nested.digest() == wallet_digest(separator, typed.struct_hash(), SAFE, 31337)


def test_a_digest_covers_its_domain() -> None:
    typed = CASES[0][0]
    other = Eip712Domain("ClobAuthDomain", "1", 80003)
    assert typed.digest() != typed_digest(other.separator(), a_key("struct"))
