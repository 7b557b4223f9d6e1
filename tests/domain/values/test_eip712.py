"""EIP-712 hashing and signer recovery, compared with eth-account."""

from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_defunct, encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_key, an_address

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.eip712 import (
    CURVE_ORDER,
    LOW_S_MAX,
    Eip712Domain,
    address_of_key,
    address_word,
    normalize_signature,
    personal_digest,
    recover_signer,
    sign_digest,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import Address, address_of, keccak256

DIGESTS = st.binary(min_size=32, max_size=32)
KEYS = st.integers(1, CURVE_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))
ADDRESSES = st.binary(min_size=20, max_size=20).map(address_of)
DOMAINS = st.builds(
    Eip712Domain,
    st.none() | st.text(max_size=40),
    st.none() | st.text(max_size=5),
    st.none() | st.integers(0, 2**256 - 1),
    st.none() | ADDRESSES,
).filter(lambda domain: any(field is not None for field in domain))

DIGEST = keccak256(b"something to sign")
SIGNATURE = sign_digest(DIGEST, a_key("alice"))
R, S, V = SIGNATURE[:32], int.from_bytes(SIGNATURE[32:64], "big"), SIGNATURE[64]


def foreign_domain(domain: Eip712Domain) -> dict[str, Any]:
    names = ("name", "version", "chainId", "verifyingContract")
    return {name: value for name, value in zip(names, domain, strict=True) if value is not None}


@given(DOMAINS)
def test_a_domain_separator_is_the_one_of_a_generic_encoder(domain: Eip712Domain) -> None:
    types = {"Mail": [{"name": "text", "type": "string"}]}
    encoded = encode_typed_data(foreign_domain(domain), types, {"text": ""})
    assert domain.separator() == encoded.header


@given(st.text(), st.integers(0, 2**256 - 1), ADDRESSES)
def test_a_digest_is_the_one_of_a_generic_encoder(text: str, number: int, sender: Address) -> None:
    kinds = {"text": "string", "number": "uint256", "sender": "address"}
    types = {"Mail": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    message = {"text": text, "number": number, "sender": sender}
    signed = Account.sign_typed_data(a_key("alice"), {"name": "x"}, types, message)
    kind = text_word("Mail(string text,uint256 number,address sender)")
    words = kind + text_word(text) + uint_word(number) + address_word(sender)
    digest = typed_digest(Eip712Domain(name="x").separator(), keccak256(words))
    assert digest == signed.message_hash


@given(DIGESTS)
def test_a_personal_digest_is_that_of_eip_191(word: bytes) -> None:
    signed = Account.sign_message(encode_defunct(word), a_key("alice"))
    assert personal_digest(word) == signed.message_hash


@given(DIGESTS, KEYS)
def test_a_signature_equals_that_of_eth_account(digest: bytes, key: bytes) -> None:
    assert sign_digest(digest, key) == bytes(Account.unsafe_sign_hash(digest, key).signature)


@given(DIGESTS, KEYS)
def test_the_signer_is_recovered(digest: bytes, key: bytes) -> None:
    signature = sign_digest(digest, key)
    assert normalize_signature(signature) == signature
    assert recover_signer(digest, signature) == address_of_key(key)
    assert address_of_key(key) == Account.from_key(key).address.lower()


@given(DIGESTS)
def test_a_signature_of_another_digest_recovers_another_address(digest: bytes) -> None:
    assert (recover_signer(digest, SIGNATURE) == an_address("alice")) == (digest == DIGEST)


@pytest.mark.case("C-03")
@pytest.mark.parametrize(("given", "taken"), [(0, 27), (1, 28), (27, 27), (28, 28)])
def test_both_forms_of_v_are_accepted_and_normalized(given: int, taken: int) -> None:
    assert normalize_signature(SIGNATURE[:64] + bytes([given])) == SIGNATURE[:64] + bytes([taken])


@pytest.mark.parametrize("v", [v for v in range(256) if v not in {0, 1, 27, 28}])
def test_every_other_v_is_refused(v: int) -> None:
    with pytest.raises(MalformedSignature, match="v 27 or 28"):
        normalize_signature(SIGNATURE[:64] + bytes([v]))


@pytest.mark.case("C-03")
@pytest.mark.parametrize("length", [0, 1, 64, 66, 97, 130])
def test_a_signature_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(MalformedSignature, match=f"65 bytes, not {length}"):
        normalize_signature((SIGNATURE * 2)[:length])


@pytest.mark.case("C-03")
@given(DIGESTS, KEYS)
def test_the_equivalent_signature_with_high_s_is_refused(digest: bytes, key: bytes) -> None:
    """It recovers the same signer, so it would give an order two signatures."""
    signature = sign_digest(digest, key)
    twin_s = CURVE_ORDER - int.from_bytes(signature[32:64], "big")
    twin = signature[:32] + twin_s.to_bytes(32, "big") + bytes([55 - signature[64]])
    assert recover_signer(digest, twin) == address_of_key(key)
    with pytest.raises(MalformedSignature, match="lower half"):
        normalize_signature(twin)


@pytest.mark.parametrize("s", [0, LOW_S_MAX + 1, CURVE_ORDER - 1, CURVE_ORDER, 2**256 - 1])
def test_s_is_neither_zero_nor_in_the_upper_half(s: int) -> None:
    with pytest.raises(MalformedSignature, match="lower half"):
        normalize_signature(R + s.to_bytes(32, "big") + bytes([V]))


@pytest.mark.parametrize("s", [1, LOW_S_MAX])
def test_s_may_be_any_value_up_to_half_of_the_order(s: int) -> None:
    signature = R + s.to_bytes(32, "big") + bytes([V])
    assert normalize_signature(signature) == signature


@pytest.mark.parametrize("r", [0, 5, CURVE_ORDER, 2**256 - 1])
def test_an_r_that_is_no_point_of_the_curve_is_refused(r: int) -> None:
    signature = normalize_signature(r.to_bytes(32, "big") + SIGNATURE[32:])
    with pytest.raises(MalformedSignature, match="point on the curve"):
        recover_signer(DIGEST, signature)


@pytest.mark.parametrize("v", [0, 1, 26, 31, 255])
def test_a_v_that_is_not_normalized_recovers_no_signer(v: int) -> None:
    with pytest.raises(MalformedSignature, match="point on the curve"):
        recover_signer(DIGEST, SIGNATURE[:64] + bytes([v]))


@pytest.mark.case("C-04")
@given(st.binary(min_size=65, max_size=65))
def test_random_bytes_are_refused_or_recover_another_address(signature: bytes) -> None:
    try:
        signer = recover_signer(DIGEST, normalize_signature(signature))
    except MalformedSignature:
        return
    assert signer not in {an_address("alice"), address_of(bytes(20))}
