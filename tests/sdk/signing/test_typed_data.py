"""Typed data is hashed as the domain hashes it, and as an encoder hashes it that nobody here wrote."""

import pytest
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import NOW_S, a_key, a_word, an_address

from foretell.domain.contracts.safe import SafeTx, create_proxy_digest
from foretell.domain.creation.request import Challenge
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.exchange.profiles import OWN_PROFILE, separators
from foretell.domain.values.credentials import l1_digest
from foretell.domain.values.eip712 import Eip712Domain, typed_digest
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, keccak256
from foretell.sdk.authentication import usual_l1_domain
from foretell.sdk.signing.typed_data import (
    SafeCall,
    TypedData,
    challenge_data,
    key_request,
    new_safe_data,
    order_data,
    safe_tx_data,
)

OWNER, SAFE, EXCHANGE = an_address("owner"), an_address("safe"), an_address("exchange")
CHALLENGE = Challenge(
    "9f3a0e52-5d8a-4a2c-8f53-4e9f7c1d2b3a", OWNER, a_word("p"), a_word("n"), 1_800_000_000_000, 137
)
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


def test_a_digest_covers_its_domain() -> None:
    typed = CASES[0][0]
    other = Eip712Domain("ClobAuthDomain", "1", 80003)
    assert typed.digest() != typed_digest(other.separator(), a_key("struct"))
