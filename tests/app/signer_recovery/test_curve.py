"""The signers that the curve's functions recover, compared with the library's own interface and with eth-account."""

from typing import Final

import pytest
from eth_account import Account
from eth_keys.backends.native.main import NativeECCBackend
from eth_keys.exceptions import BadSignature
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.values import a_key

from foretell.app.signer_recovery.curve import Recoverer
from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.eip712 import (
    CURVE_ORDER,
    LOW_S_MAX,
    address_of_key,
    normalize_signature,
    recover_signer,
    sign_digest,
)
from foretell.domain.values.hexadecimal import address_bytes, keccak256
from foretell.domain.values.signer_recovery import (
    DIGEST_BYTES,
    NO_SIGNER,
    RECOVERED,
    REQUEST_BYTES,
    answer_without_signer,
)

FIELD_PRIME: Final = 2**256 - 2**32 - 977
DIGEST: Final = keccak256(b"something to sign")
SIGNATURE: Final = sign_digest(DIGEST, a_key("alice"))
REQUEST: Final = DIGEST + SIGNATURE
V_AT: Final = REQUEST_BYTES - 1
WITHOUT_SIGNER: Final = answer_without_signer(NO_SIGNER)

NUMBERS: Final = st.integers(0, 2**256 - 1)
EDGES: Final = st.sampled_from(
    [
        around + offset
        for around in (1, LOW_S_MAX, FIELD_PRIME - CURVE_ORDER, CURVE_ORDER, FIELD_PRIME)
        for offset in (-1, 0, 1)
    ]
    + [2**256 - 1]
)
"""Values about which a parser may be wrong; above the order there are few points, so r is small for v 29, 30."""
SIGNED_NUMBERS: Final = st.sampled_from(
    [int.from_bytes(SIGNATURE[at : at + 32], "big") for at in (0, 32)]
)
WORDS: Final = st.one_of(NUMBERS, EDGES, SIGNED_NUMBERS, st.integers(0, 50)).map(
    lambda number: number.to_bytes(32, "big")
)
DIGESTS: Final = st.binary(min_size=DIGEST_BYTES, max_size=DIGEST_BYTES)
KEYS: Final = st.integers(1, CURVE_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))


def of_parts(vs: st.SearchStrategy[int]) -> st.SearchStrategy[bytes]:
    """Return requests whose parts are chosen one by one."""
    return st.tuples(WORDS | DIGESTS, WORDS, WORDS, vs.map(lambda v: bytes([v]))).map(b"".join)


def with_changed_byte(at: int, value: int) -> bytes:
    return REQUEST[:at] + bytes([value]) + REQUEST[at + 1 :]


ANY_V: Final = st.integers(26, 31) | st.integers(0, 255)
REQUESTS: Final = st.one_of(
    st.binary(min_size=REQUEST_BYTES, max_size=REQUEST_BYTES),
    of_parts(ANY_V),
    st.builds(with_changed_byte, st.integers(0, V_AT), st.integers(0, 255)),
    st.builds(lambda digest, key: digest + sign_digest(digest, key), DIGESTS, KEYS),
)
NATIVE: Final = Account()
NATIVE.set_key_backend(NativeECCBackend())


def expected(request: bytes) -> bytes:
    """Return the answer that the library's own interface gives."""
    try:
        signer = recover_signer(request[:DIGEST_BYTES], request[DIGEST_BYTES:])
    except MalformedSignature:
        return WITHOUT_SIGNER
    return bytes([RECOVERED]) + address_bytes(signer)


def expected_by_eth_account(request: bytes) -> bytes:
    """Return the answer of eth-account, which computes in Python itself."""
    try:
        signer = NATIVE._recover_hash(request[:DIGEST_BYTES], signature=request[DIGEST_BYTES:])
    except (BadSignature, ValueError):
        return WITHOUT_SIGNER
    return bytes([RECOVERED]) + bytes.fromhex(signer[2:])


@given(REQUESTS)
def test_an_answer_is_that_of_the_librarys_own_interface(request: bytes) -> None:
    assert Recoverer().answer(request) == expected(request)


@given(of_parts(st.sampled_from([27, 28])))
def test_an_answer_is_that_of_eth_account(request: bytes) -> None:
    assert Recoverer().answer(request) == expected_by_eth_account(request)


@given(DIGESTS, KEYS)
def test_the_signer_is_recovered(digest: bytes, key: bytes) -> None:
    answer = Recoverer().answer(digest + sign_digest(digest, key))
    assert answer == bytes([RECOVERED]) + address_bytes(address_of_key(key))


@given(of_parts(ANY_V))
def test_a_signature_is_normalized_for_it_as_for_the_librarys_own_interface(request: bytes) -> None:
    """A signature with the higher s is refused before it is sent; one that is sent has one answer."""
    digest, signature = request[:DIGEST_BYTES], request[DIGEST_BYTES:]
    try:
        normalized = normalize_signature(signature)
    except MalformedSignature:
        is_canonical = 0 < int.from_bytes(signature[32:64], "big") <= LOW_S_MAX
        assert not is_canonical or signature[64] not in {0, 1, 27, 28}
        return
    assert Recoverer().answer(digest + normalized) == expected_by_eth_account(request)


def test_every_v_is_answered() -> None:
    """The library ends its process when it is called with a recovery id that there is not."""
    requests = {v: with_changed_byte(V_AT, v) for v in range(256)}
    wanted = {v: expected(request) for v, request in requests.items()}
    assert {v: Recoverer().answer(request) for v, request in requests.items()} == wanted
    assert {v for v, answer in wanted.items() if answer != WITHOUT_SIGNER} == {27, 28}


@pytest.mark.parametrize("r", range(1, 20))
@pytest.mark.parametrize("v", [29, 30])
def test_a_point_beyond_the_curves_order_is_answered_alike(r: int, v: int) -> None:
    request = DIGEST + r.to_bytes(32, "big") + SIGNATURE[32:64] + bytes([v])
    assert Recoverer().answer(request) == expected(request)


@given(st.lists(REQUESTS, max_size=20))
def test_an_answer_does_not_depend_on_the_requests_before_it(requests: list[bytes]) -> None:
    recoverer = Recoverer()
    answers = b"".join(expected(request) for request in requests)
    assert recoverer.answer_all(b"".join(requests)) == answers
    assert recoverer.answer_all(b"".join(requests)) == answers


@pytest.mark.parametrize("length", [0, 1, REQUEST_BYTES - 1, REQUEST_BYTES + 1])
def test_a_request_of_another_length_is_not_read(length: int) -> None:
    with pytest.raises(AssertionError):
        Recoverer().answer((REQUEST * 2)[:length])
