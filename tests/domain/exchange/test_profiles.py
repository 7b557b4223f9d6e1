"""Signing profiles of a deployment."""

from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import CHAIN_ID, EXCHANGE, a_key, a_signed_order, the_separators

from foretell.domain.errors.exchange import ForeignProfile
from foretell.domain.exchange.order import (
    Side,
    SignatureType,
    SignedOrder,
)
from foretell.domain.exchange.profiles import (
    OWN_PROFILE,
    OWN_PROFILE_V2,
    OWN_PROFILES,
    PROFILES_MAX,
    SANDBOX_NEG_RISK_PROFILES,
    SANDBOX_PROFILES,
    SigningProfile,
    check_profiles,
    separators,
)
from foretell.domain.exchange.signing.structs import ORDER_V1_TYPE_HASH, STRUCTS
from foretell.domain.values.hexadecimal import address_of, word_of

FIELDS = (
    ("salt", "uint256"),
    ("maker", "address"),
    ("signer", "address"),
    ("taker", "address"),
    ("tokenId", "uint256"),
    ("makerAmount", "uint256"),
    ("takerAmount", "uint256"),
    ("expiration", "uint256"),
    ("nonce", "uint256"),
    ("feeRateBps", "uint256"),
    ("side", "uint8"),
    ("signatureType", "uint8"),
)
TYPES = {"Order": [{"name": name, "type": kind} for name, kind in FIELDS]}

V1_PROFILES = [
    index for index, profile in enumerate(SANDBOX_PROFILES) if profile.struct_version == 1
]
UINTS = st.integers(0, 2**256 - 1)
UNITS = st.integers(0, 2**63 - 1)
ADDRESSES = st.binary(min_size=20, max_size=20).map(address_of)
ORDERS = st.builds(
    SignedOrder,
    salt=UINTS.map(str),
    maker=ADDRESSES,
    signer=ADDRESSES,
    taker=ADDRESSES,
    token_id=UINTS.map(str),
    maker_amount=UNITS,
    taker_amount=UNITS,
    expiration_s=UNITS,
    nonce=UNITS | UINTS,
    fee_rate_bps=UNITS,
    side=st.sampled_from(Side),
    signature_type=st.sampled_from(SignatureType),
    profile=st.sampled_from(V1_PROFILES),
    signature=st.binary(min_size=65, max_size=65),
)


def foreign_domain(profile: SigningProfile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "version": profile.version,
        "chainId": CHAIN_ID,
        "verifyingContract": profile.verifying_contract or EXCHANGE,
    }


def foreign_message(order: SignedOrder) -> dict[str, Any]:
    values = (
        int(order.salt),
        order.maker,
        order.signer,
        order.taker,
        int(order.token_id),
        order.maker_amount,
        order.taker_amount,
        order.expiration_s,
        order.nonce,
        order.fee_rate_bps,
        int(order.side),
        int(order.signature_type),
    )
    return {name: value for (name, _), value in zip(FIELDS, values, strict=True)}


def test_the_type_hash_is_that_of_the_contract() -> None:
    known = "a852566c4e14d00869b6db0220888a9090a13eccdaea03713ff0a3d27bf9767c"
    assert known == ORDER_V1_TYPE_HASH.hex()


@given(ORDERS)
def test_an_order_id_is_the_digest_of_a_generic_encoder(order: SignedOrder) -> None:
    domain = foreign_domain(SANDBOX_PROFILES[order.profile])
    encoded = encode_typed_data(domain, TYPES, foreign_message(order))
    digest = Account.sign_message(encoded, a_key("alice")).message_hash
    assert the_separators().order_id(order) == "0x" + digest.hex()


@pytest.mark.parametrize("index", V1_PROFILES)
def test_an_order_is_signed_as_eth_account_signs_it(index: int) -> None:
    order = a_signed_order(profile=index)
    signed = Account.sign_typed_data(
        a_key("alice"), foreign_domain(SANDBOX_PROFILES[index]), TYPES, foreign_message(order)
    )
    assert bytes(signed.signature) == order.signature
    assert the_separators().order_id(order) == "0x" + signed.message_hash.hex()


def test_the_sandbox_accepts_the_domains_that_ecosystem_clients_hard_code() -> None:
    """These clients sign for these contracts on chain 80002."""
    known: tuple[tuple[int, str, str, str | None], ...] = (
        (1, "Foretell Exchange", "1", None),
        (1, "Polymarket CTF Exchange", "1", "0xdfe02eb6733538f8ea35d585af8de5958ad99e40"),
        (1, "CTF Exchange", "1", "0xb5592f7ccca122558d2201e190826276f3a661cb"),
        (2, "Foretell Exchange", "2", None),
        (2, "Polymarket CTF Exchange", "2", "0xe111180000d2663c0091e4f400237545b87b996b"),
        (2, "CTF Exchange", "2", "0xaa1b8de834e16ec69c044f5300041673c968c9ef"),
    )
    assert [tuple(profile) for profile in SANDBOX_PROFILES] == list(known)
    assert SANDBOX_PROFILES[0] == OWN_PROFILE
    assert SANDBOX_PROFILES[3] == OWN_PROFILE_V2


def test_a_public_chain_accepts_only_the_own_profile() -> None:
    check_profiles(OWN_PROFILES, is_sandbox=False)
    check_profiles(SANDBOX_PROFILES, is_sandbox=True)


@pytest.mark.parametrize(
    "foreign",
    [profile for profile in SANDBOX_PROFILES if profile not in OWN_PROFILES],
    ids=lambda profile: f"{profile.name} {profile.version}",
)
def test_a_public_chain_refuses_a_foreign_profile(foreign: SigningProfile) -> None:
    with pytest.raises(ForeignProfile, match=foreign.name):
        check_profiles([OWN_PROFILE, foreign], is_sandbox=False)


def test_every_accepted_profile_names_a_supported_struct() -> None:
    profiles = {*SANDBOX_PROFILES, *SANDBOX_NEG_RISK_PROFILES}
    assert {profile.struct_version for profile in profiles} <= set(STRUCTS)


def test_a_struct_hash_is_that_of_the_struct_of_the_profile() -> None:
    order = a_signed_order(profile=1)
    hashing = separators(SANDBOX_PROFILES, CHAIN_ID, EXCHANGE)
    assert hashing.struct_hash(order) == STRUCTS[1].hash(order)
    assert hashing.order_id(order) == word_of(hashing.digest(order, 1))
    assert hashing.digest(order, 0) != hashing.digest(order, 1)


@pytest.mark.parametrize("count", [0, PROFILES_MAX + 1])
def test_a_deployment_has_a_limited_number_of_profiles(count: int) -> None:
    with pytest.raises(AssertionError):
        separators([OWN_PROFILE] * count, CHAIN_ID, EXCHANGE)
