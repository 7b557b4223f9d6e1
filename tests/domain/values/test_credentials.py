"""API credentials and the two levels of signatures."""

import base64
import hashlib
import hmac
import json
import string
import uuid
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from hypothesis import given
from hypothesis import strategies as st
from py_clob_client.signer import Signer
from py_clob_client.signing.eip712 import sign_clob_auth_message
from py_clob_client.signing.hmac import build_hmac_signature
from tests.rigs.values import CHAIN_ID, NOW_S, a_key, an_address

from foretell.domain.errors.families import MalformedAmount
from foretell.domain.errors.http import (
    ClockSkew,
    L1SignatureMismatch,
    L2SignatureMismatch,
    NonceNotMonotonic,
    SignedBeforeRevocation,
)
from foretell.domain.values.credentials import (
    L1_MESSAGE,
    L1_TYPE_HASH,
    NONCE_MAX,
    SKEW_FUTURE_S,
    SKEW_PAST_S,
    Credentials,
    KeyIndex,
    L2Signer,
    check_l1,
    check_nonce_order,
    check_signed_after,
    check_timestamp,
    derive_credentials,
    l1_digest,
    l2_message,
    next_generation,
    parse_nonce,
)
from foretell.domain.values.eip712 import CURVE_ORDER, normalize_signature, sign_digest
from foretell.domain.values.hexadecimal import Address, parse_address

MASTER_KEY = bytes(range(32))
INDEX = KeyIndex(CHAIN_ID, an_address("alice"), 0)

# The key and the signature from the tests of ecosystem clients.
KNOWN_KEY = bytes.fromhex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
KNOWN_ADDRESS = parse_address("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")
KNOWN_SIGNATURE = bytes.fromhex(
    "f62319a987514da40e57e2f4d7529f7bac38f0355bd88bb5adbb3768d80de6c1"
    "682518e0af677d5260366425f4361e7b70c25ae232aff0ab2331e2b164a1aedc1b"
)
KNOWN_SECRET = "A" * 43 + "="
KNOWN_REQUEST = ("1000000", "test-sign", "/orders", b'{"hash": "0x123"}')
KNOWN_HMAC = "ZwAdJKvoYRlEKDkNMwd5BuwNNtg93kNaR_oU2HrfVvc="

SECRETS = st.binary(min_size=32, max_size=32)
INDEXES = st.builds(
    KeyIndex,
    st.integers(1, 10**6),
    st.sampled_from(["alice", "bob"]).map(an_address),
    st.integers(0, NONCE_MAX),
    st.integers(0, 10),
)


def hkdf_expand(key: bytes, purpose: bytes) -> bytes:
    """Return the first block of RFC 5869, section 2.3."""
    return hmac.new(key, purpose + b"\x01", hashlib.sha256).digest()


@pytest.mark.spec(51)
@given(INDEXES)
def test_a_set_has_the_form_that_clients_expect(index: KeyIndex) -> None:
    credentials = derive_credentials(MASTER_KEY, index)
    key_id = uuid.UUID(credentials.key_id)
    assert (key_id.version, key_id.variant) == (4, uuid.RFC_4122)
    assert str(key_id) == credentials.key_id
    assert len(credentials.secret) == 44
    assert len(base64.urlsafe_b64decode(credentials.secret)) == 32
    assert len(credentials.passphrase) == 64
    assert set(credentials.passphrase) <= set(string.hexdigits.lower())


@given(INDEXES)
def test_the_parts_of_a_set_are_expanded_from_the_master_key(index: KeyIndex) -> None:
    name = f"{index.chain_id}|{index.address}|{index.nonce}|{index.generation}"
    secret = hkdf_expand(MASTER_KEY, f"foretell credentials|secret|{name}".encode())
    passphrase = hkdf_expand(MASTER_KEY, f"foretell credentials|passphrase|{name}".encode())
    credentials = derive_credentials(MASTER_KEY, index)
    assert base64.urlsafe_b64decode(credentials.secret) == secret
    assert credentials.passphrase == passphrase.hex()


@pytest.mark.spec(120)
def test_an_index_always_has_the_same_set() -> None:
    """Old sets must stay valid: this one was derived once and recorded here."""
    assert derive_credentials(MASTER_KEY, INDEX) == Credentials(
        key_id="f4f1018d-074e-4854-8d7e-b33ca1127a5b",
        secret="VDg7z3-Bi3kqst34GJqCQ8wNtdIaRIF0F9iEP8RGbB4=",
        passphrase="fdedcb33dfe810b40c06645479fb5d52e81ea4e7fa510551341febadbe0b0aad",
    )


@pytest.mark.parametrize(
    "other",
    [
        INDEX._replace(chain_id=137),
        INDEX._replace(address=an_address("bob")),
        INDEX._replace(nonce=1),
        INDEX._replace(generation=1),
    ],
)
def test_another_index_has_another_set(other: KeyIndex) -> None:
    one, two = derive_credentials(MASTER_KEY, INDEX), derive_credentials(MASTER_KEY, other)
    assert not set(one) & set(two)


def test_another_master_key_gives_another_set() -> None:
    one, two = derive_credentials(MASTER_KEY, INDEX), derive_credentials(bytes(32), INDEX)
    assert not set(one) & set(two)


@pytest.mark.parametrize("length", [0, 16, 31, 33])
def test_a_master_key_of_another_length_is_an_assertion_error(length: int) -> None:
    with pytest.raises(AssertionError):
        derive_credentials(bytes(length), INDEX)


def test_the_type_of_the_l1_message_is_the_one_that_clients_sign() -> None:
    known = "52578c5c725a28a84fedc8c22aa47947822942f35b4dc350db028e45320e035c"
    assert known == L1_TYPE_HASH.hex()


@pytest.mark.spec(112)
def test_the_known_l1_signature_is_accepted() -> None:
    check_l1(CHAIN_ID, KNOWN_ADDRESS, "10000000", 23, KNOWN_SIGNATURE)
    assert sign_digest(l1_digest(CHAIN_ID, KNOWN_ADDRESS, "10000000", 23), KNOWN_KEY) == (
        KNOWN_SIGNATURE
    )


@given(st.integers(0, 10**18), st.integers(0, NONCE_MAX), st.integers(1, 2**53))
def test_an_l1_digest_is_the_one_of_a_generic_encoder(
    timestamp: int, nonce: int, chain_id: int
) -> None:
    kinds = {"address": "address", "timestamp": "string", "nonce": "uint256", "message": "string"}
    types = {"ClobAuth": [{"name": name, "type": kind} for name, kind in kinds.items()]}
    domain = {"name": "ClobAuthDomain", "version": "1", "chainId": chain_id}
    address = an_address("alice")
    message = {
        "address": address,
        "timestamp": str(timestamp),
        "nonce": nonce,
        "message": L1_MESSAGE,
    }
    encoded = encode_typed_data(domain, types, message)
    digest = Account.sign_message(encoded, a_key("alice")).message_hash
    assert l1_digest(chain_id, address, str(timestamp), nonce) == digest


@given(st.integers(0, 10**12), st.integers(0, 2**64))
def test_an_l1_signature_of_a_client_is_accepted(timestamp: int, nonce: int) -> None:
    signer = Signer("0x" + a_key("alice").hex(), CHAIN_ID)
    signature = bytes.fromhex(sign_clob_auth_message(signer, timestamp, nonce)[2:])
    check_l1(CHAIN_ID, an_address("alice"), str(timestamp), nonce, normalize_signature(signature))


@pytest.mark.spec(113)
@pytest.mark.parametrize(
    ("chain_id", "address", "timestamp", "nonce"),
    [
        (137, KNOWN_ADDRESS, "10000000", 23),
        (CHAIN_ID, an_address("alice"), "10000000", 23),
        (CHAIN_ID, KNOWN_ADDRESS, "10000001", 23),
        (CHAIN_ID, KNOWN_ADDRESS, "010000000", 23),
        (CHAIN_ID, KNOWN_ADDRESS, "10000000", 24),
    ],
    ids=["chain", "address", "timestamp", "spelling", "nonce"],
)
def test_an_l1_signature_is_bound_to_every_value(
    chain_id: int, address: Address, timestamp: str, nonce: int
) -> None:
    with pytest.raises(L1SignatureMismatch, match=address):
        check_l1(chain_id, address, timestamp, nonce, KNOWN_SIGNATURE)


@pytest.mark.parametrize("r", [0, 5, CURVE_ORDER])
def test_an_impossible_l1_signature_is_refused(r: int) -> None:
    signature = r.to_bytes(32, "big") + KNOWN_SIGNATURE[32:]
    with pytest.raises(L1SignatureMismatch):
        check_l1(CHAIN_ID, KNOWN_ADDRESS, "10000000", 23, signature)


@pytest.mark.parametrize(
    ("text", "nonce"), [("0", 0), ("007", 7), (str(2**256 - 1), 2**256 - 1), ("0" * 78, 0)]
)
def test_a_nonce_is_a_decimal_of_at_most_256_bits(text: str, nonce: int) -> None:
    assert parse_nonce(text) == nonce


@pytest.mark.parametrize(
    "text",
    ["", " 1", "1\n", "-1", "+1", "1.0", "1e3", "0x1", "\u0661", str(2**256), "0" * 79],
    ids=repr,
)
def test_a_malformed_nonce_is_refused(text: str) -> None:
    with pytest.raises(MalformedAmount, match="nonce"):
        parse_nonce(text)


@pytest.mark.spec(115)
@pytest.mark.parametrize("off_by_s", [-SKEW_PAST_S, -1, 0, 1, SKEW_FUTURE_S])
def test_a_timestamp_within_the_window_is_accepted(off_by_s: int) -> None:
    check_timestamp(str(NOW_S + off_by_s), NOW_S)


@pytest.mark.case("C-09")
@pytest.mark.spec(115)
@pytest.mark.parametrize("off_by_s", [-(10**6), -SKEW_PAST_S - 1, SKEW_FUTURE_S + 1, 10**6])
def test_a_timestamp_outside_the_window_is_refused(off_by_s: int) -> None:
    with pytest.raises(ClockSkew) as refusal:
        check_timestamp(str(NOW_S + off_by_s), NOW_S)
    assert refusal.value.details["server_time_s"] == NOW_S
    assert refusal.value.message.startswith(
        f"the timestamp is '{NOW_S + off_by_s}', and the server's clock is {NOW_S}: "
    )


@pytest.mark.case("C-09")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        f"{NOW_S}000",
        f"{NOW_S}.0",
        f"{NOW_S}.5",
        f" {NOW_S}",
        f"{NOW_S}\n",
        f"-{NOW_S}",
        f"+{NOW_S}",
        f"{NOW_S:x}",
        "1e9",
        "\u0661\u0668",
        "9" * 19,
        "9" * 10_000,
    ],
    ids=range(14),
)
def test_a_timestamp_that_is_not_in_whole_seconds_is_refused(text: str) -> None:
    with pytest.raises(ClockSkew) as refusal:
        check_timestamp(text, NOW_S)
    assert len(str(refusal.value)) < 200


def test_the_known_l2_signature_is_made_and_accepted() -> None:
    signer = L2Signer(KNOWN_SECRET)
    assert signer.sign(*KNOWN_REQUEST) == KNOWN_HMAC
    signer.check(KNOWN_HMAC, *KNOWN_REQUEST)


@given(SECRETS, st.binary(max_size=300))
def test_a_digest_is_the_hmac_of_the_standard_library(secret: bytes, message: bytes) -> None:
    signer = L2Signer(base64.urlsafe_b64encode(secret).decode())
    assert signer.digest(message) == hmac.digest(secret, message, "sha256")
    assert signer.digest(message) == hmac.digest(secret, message, "sha256"), "and it can be reused"


@given(SECRETS, st.text(max_size=100))
def test_an_l2_signature_of_a_client_is_accepted(secret: bytes, body: str) -> None:
    """The client replaces apostrophes by quotation marks before it signs, but not in the body."""
    text = base64.urlsafe_b64encode(secret).decode()
    signed = build_hmac_signature(text, str(NOW_S), "POST", "/order", body)
    raw = body.encode(errors="surrogatepass")
    L2Signer(text).check(signed, str(NOW_S), "POST", "/order", raw)


@pytest.mark.parametrize(
    "signed_body",
    [b"""{"a":"it's"}""", b"""{"a":"it"s"}"""],
    ids=["as sent", "apostrophes replaced"],
)
def test_a_body_signed_with_or_without_apostrophes_is_accepted(signed_body: bytes) -> None:
    signer = L2Signer(KNOWN_SECRET)
    signature = signer.sign("1", "POST", "/order", signed_body)
    signer.check(signature, "1", "POST", "/order", b"""{"a":"it's"}""")


@pytest.mark.parametrize(
    ("signed", "sent"),
    [
        (b"""{"a":"it's"}""", b"""{"a":"it"s"}"""),
        (b"''", b"'\""),
        (b"'\"", b"''"),
        (b"", b"'"),
        (b'{"a":1}', b'{"a":2}'),
        (b'{"a": 1}', b'{"a": 1, "a": 1}'),
        (b"[]", b"[ ]"),
        (b"{}", b"{"),
        (b"{}", b""),
        (b"", b"{}"),
    ],
)
def test_no_other_form_of_a_body_is_accepted(signed: bytes, sent: bytes) -> None:
    signer = L2Signer(KNOWN_SECRET)
    with pytest.raises(L2SignatureMismatch):
        signer.check(signer.sign("1", "POST", "/order", signed), "1", "POST", "/order", sent)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(SECRETS, st.dictionaries(st.text(max_size=5), JSON, max_size=4))
def test_a_body_signed_as_the_str_of_a_dictionary_is_accepted(
    secret: bytes, body: dict[str, Any]
) -> None:
    """The client signs the `str` of its dictionary, and sends JSON."""
    text = base64.urlsafe_b64encode(secret).decode()
    signed = build_hmac_signature(text, str(NOW_S), "POST", "/submit", body or "{}")
    L2Signer(text).check(signed, str(NOW_S), "POST", "/submit", json.dumps(body).encode())


SPELLINGS: dict[str, Any] = {
    "url-safe, padded": lambda text: text,
    "url-safe, bare": lambda text: text.rstrip("="),
    "standard, padded": lambda text: text.replace("-", "+").replace("_", "/"),
    "standard, bare": lambda text: text.replace("-", "+").replace("_", "/").rstrip("="),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@given(body=st.binary(max_size=40))
def test_every_alphabet_and_padding_of_base64_is_accepted(spelling: str, body: bytes) -> None:
    signer = L2Signer(KNOWN_SECRET)
    signature = SPELLINGS[spelling](signer.sign("1", "POST", "/order", body))
    signer.check(signature, "1", "POST", "/order", body)


@pytest.mark.parametrize(
    "signature",
    [
        "",
        "=",
        "A",
        "A" * 43 + "=",
        "A" * 44,
        KNOWN_HMAC[:-2],
        KNOWN_HMAC[:-2] + "k=",
        KNOWN_HMAC.lower(),
        KNOWN_HMAC[1:],
        base64.urlsafe_b64decode(KNOWN_HMAC).hex(),
        "\u00e9" * 44,
        "A" * 100_000,
    ],
    ids=range(12),
)
def test_another_signature_is_refused_without_a_crash(signature: str) -> None:
    with pytest.raises(L2SignatureMismatch):
        L2Signer(KNOWN_SECRET).check(signature, *KNOWN_REQUEST)


@pytest.mark.case("C-07")
@pytest.mark.parametrize(
    "altered",
    [
        ("1000001", *KNOWN_REQUEST[1:]),
        ("1000000", "Test-Sign", *KNOWN_REQUEST[2:]),
        (*KNOWN_REQUEST[:2], "/orders/", KNOWN_REQUEST[3]),
        (*KNOWN_REQUEST[:2], "/orders?a=b", KNOWN_REQUEST[3]),
        (*KNOWN_REQUEST[:3], b'{"hash": "0x124"}'),
        (*KNOWN_REQUEST[:3], b""),
    ],
    ids=["time", "method", "path", "query", "body", "no body"],
)
def test_an_l2_signature_is_bound_to_its_request(altered: Any) -> None:
    with pytest.raises(L2SignatureMismatch):
        L2Signer(KNOWN_SECRET).check(KNOWN_HMAC, *altered)


def test_another_secret_makes_another_signature() -> None:
    with pytest.raises(L2SignatureMismatch):
        L2Signer("B" * 43 + "=").check(KNOWN_HMAC, *KNOWN_REQUEST)


def test_a_refused_signature_has_details_of_the_expected_message() -> None:
    message = l2_message("1", "POST", "/order", b"it's")
    with pytest.raises(L2SignatureMismatch) as refusal:
        L2Signer(KNOWN_SECRET).check("", "1", "POST", "/order", b"it's")
    assert refusal.value.details == {
        "message_bytes": len(message),
        "message_sha256": hashlib.sha256(message).hexdigest(),
    }
    assert message == b"1POST/orderit's"


@pytest.mark.parametrize(
    ("used", "is_revoked", "generation"),
    [(None, False, 0), (None, True, 0), (0, False, 0), (0, True, 1), (4, False, 4), (4, True, 5)],
)
def test_a_revoked_set_is_followed_by_the_next_generation(
    *, used: int | None, is_revoked: bool, generation: int
) -> None:
    assert next_generation(used, is_revoked=is_revoked) == generation


@pytest.mark.spec(113)
@pytest.mark.parametrize(("nonce", "used_max"), [(0, None), (5, None), (1, 0), (NONCE_MAX, 7)])
def test_a_new_nonce_may_be_any_greater_one(nonce: int, used_max: int | None) -> None:
    check_nonce_order(nonce, used_max)


@pytest.mark.parametrize("revoked_at_s", [None, 0, 99])
def test_a_signature_after_a_revocation_makes_a_set(revoked_at_s: int | None) -> None:
    check_signed_after(100, revoked_at_s)


@pytest.mark.parametrize("revoked_at_s", [100, 101])
def test_a_signature_up_to_a_revocation_makes_no_set(revoked_at_s: int) -> None:
    with pytest.raises(SignedBeforeRevocation, match=f"revoked at {revoked_at_s} s"):
        check_signed_after(100, revoked_at_s)


@pytest.mark.spec(113)
@pytest.mark.parametrize(("nonce", "used_max"), [(0, 0), (0, 1), (6, 7), (7, 7)])
def test_a_new_nonce_that_is_not_greater_is_refused(nonce: int, used_max: int) -> None:
    with pytest.raises(NonceNotMonotonic, match=f"greater than {used_max}"):
        check_nonce_order(nonce, used_max)
