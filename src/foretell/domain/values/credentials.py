"""API credentials, derived from a master key and never stored.

At level 1 (L1) a wallet signs a typed message and receives a set of credentials; at level 2 (L2)
every request carries an HMAC made with the set's secret. All three parts of a set are derived from
the operator's master key and the key's index (chain, address, nonce, generation). The database
stores the index only, so a copy of it gives no access.
"""

import base64
import contextlib
import hashlib
import hmac
import re
import uuid
from collections.abc import Iterator
from typing import Final, NamedTuple

from foretell.domain.errors.families import MalformedAmount, MalformedSignature
from foretell.domain.errors.http import (
    ClockSkew,
    L1SignatureMismatch,
    L2SignatureMismatch,
    MalformedBody,
    NonceNotMonotonic,
    SignedBeforeRevocation,
)
from foretell.domain.values.eip712 import (
    Eip712Domain,
    address_word,
    recover_signer,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import Address, keccak256
from foretell.domain.values.strict_json import parse_json

MASTER_KEY_BYTES: Final = 32
SKEW_PAST_S: Final = 300
SKEW_FUTURE_S: Final = 60
NONCE_MAX: Final = 2**256 - 1

L1_DOMAIN_NAME: Final = "ClobAuthDomain"
L1_DOMAIN_VERSION: Final = "1"
L1_MESSAGE: Final = "This message attests that I control the given wallet"
L1_TYPE_HASH: Final = text_word(
    "ClobAuth(address address,string timestamp,uint256 nonce,string message)"
)

_SECONDS: Final = re.compile(r"\d{1,18}\Z", re.ASCII)
_NONCE: Final = re.compile(r"\d{1,78}\Z", re.ASCII)


class KeyIndex(NamedTuple):
    """The index of a set of credentials; a revocation raises the generation."""

    chain_id: int
    address: Address
    nonce: int
    generation: int = 0


class Credentials(NamedTuple):
    """A set as its owner receives it: a UUID v4, a base64url secret, 64 hex digits."""

    key_id: str
    secret: str
    passphrase: str


def master_key_of(master_key: bytes, epoch: str) -> bytes:
    """Return the key that the sets of an epoch are derived from.

    Before databases had epochs, sets were derived from the master key itself: theirs is empty.
    """
    return _expand(master_key, f"epoch|{epoch}") if epoch else master_key


def derive_credentials(master_key: bytes, index: KeyIndex) -> Credentials:
    """Return the set of credentials of an index (HKDF-Expand of RFC 5869 with SHA-256)."""
    assert len(master_key) == MASTER_KEY_BYTES
    name = f"{index.chain_id}|{index.address}|{index.nonce}|{index.generation}"
    return Credentials(
        key_id=str(uuid.UUID(bytes=_expand(master_key, f"key|{name}")[:16], version=4)),
        secret=base64.urlsafe_b64encode(_expand(master_key, f"secret|{name}")).decode(),
        passphrase=_expand(master_key, f"passphrase|{name}").hex(),
    )


def derive_readonly_key(master_key: bytes, address: Address, salt: str) -> str:
    """Return the read-only key of an address and a salt, a UUID v4."""
    assert len(master_key) == MASTER_KEY_BYTES
    digest = _expand(master_key, f"readonly|{address}|{salt}")
    return str(uuid.UUID(bytes=digest[:16], version=4))


def derive_builder_credentials(master_key: bytes, address: Address, salt: str) -> Credentials:
    """Return the set of a builder's key: no set of an API key has the same labels."""
    assert len(master_key) == MASTER_KEY_BYTES
    name = f"{address}|{salt}"
    return Credentials(
        key_id=str(uuid.UUID(bytes=_expand(master_key, f"builder key|{name}")[:16], version=4)),
        secret=base64.urlsafe_b64encode(_expand(master_key, f"builder secret|{name}")).decode(),
        passphrase=_expand(master_key, f"builder passphrase|{name}").hex(),
    )


def _expand(master_key: bytes, purpose: str) -> bytes:
    return hmac.digest(master_key, f"foretell credentials|{purpose}".encode() + b"\x01", "sha256")


def l1_domain(
    chain_id: int, name: str = L1_DOMAIN_NAME, contract: Address | None = None
) -> Eip712Domain:
    """Return the domain in which a wallet signs to request credentials; a contract names the operator."""
    return Eip712Domain(name, L1_DOMAIN_VERSION, chain_id, contract)


def l1_digest(
    chain_id: int,
    address: Address,
    timestamp: str,
    nonce: int,
    domain_name: str = L1_DOMAIN_NAME,
    contract: Address | None = None,
) -> bytes:
    """Return the digest that a wallet signs to request credentials."""
    return _l1_digest(l1_domain(chain_id, domain_name, contract), address, timestamp, nonce)


def signed_l1(
    domain: Eip712Domain, address: Address, timestamp: str, nonce: int, signature: bytes
) -> bool:
    """Return whether the address made a signature over these values in a domain."""
    try:
        return recover_signer(_l1_digest(domain, address, timestamp, nonce), signature) == address
    except MalformedSignature:
        return False


def check_l1(chain_id: int, address: Address, timestamp: str, nonce: int, signature: bytes) -> None:
    """Refuse a signature that the address did not make over these values, in the domain of all clients."""
    if not signed_l1(l1_domain(chain_id), address, timestamp, nonce, signature):
        raise L1SignatureMismatch(address)


def _l1_digest(domain: Eip712Domain, address: Address, timestamp: str, nonce: int) -> bytes:
    words = address_word(address) + text_word(timestamp) + uint_word(nonce) + text_word(L1_MESSAGE)
    return typed_digest(domain.separator(), keccak256(L1_TYPE_HASH + words))


def parse_nonce(text: str) -> int:
    """Return the nonce in a decimal string, or refuse."""
    if _NONCE.match(text) is None or int(text) > NONCE_MAX:
        raise MalformedAmount("nonce", "a decimal integer of at most 256 bits")
    return int(text)


def check_timestamp(text: str, now_s: int) -> None:
    """Refuse a timestamp that is not in seconds, too old, or too far in the future."""
    if _SECONDS.match(text) is None:
        raise ClockSkew(text, now_s)
    signed_at_s = int(text)
    if not now_s - SKEW_PAST_S <= signed_at_s <= now_s + SKEW_FUTURE_S:
        raise ClockSkew(text, now_s)


def check_signed_after(signed_at_s: int, revoked_at_s: int | None) -> None:
    """Refuse to make a set of credentials for a signature that may be older than a revocation.

    Times of signing are whole seconds, so the second of the revocation itself is too early.
    """
    if revoked_at_s is not None and signed_at_s <= revoked_at_s:
        raise SignedBeforeRevocation(signed_at_s, revoked_at_s)


class L2Signer:
    """Signs and checks requests with one secret.

    An HMAC hashes two blocks that depend on the secret alone. Their hash states are computed once
    and copied for each request, which halves the cost of a check.
    """

    __slots__ = ("_inner", "_outer")

    def __init__(self, secret: str) -> None:
        key = base64.urlsafe_b64decode(secret).ljust(64, b"\x00")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key))

    def digest(self, message: bytes) -> bytes:
        """Return the HMAC-SHA256 of a message."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(message)
        outer.update(inner.digest())
        return outer.digest()

    def sign(self, timestamp: str, method: str, path: str, body: bytes) -> str:
        """Return the value of the signature header of a request."""
        digest = self.digest(l2_message(timestamp, method, path, body))
        return base64.urlsafe_b64encode(digest).decode()

    def check(self, signature: str, timestamp: str, method: str, path: str, body: bytes) -> None:
        """Refuse a signature that the secret did not make over these bytes.

        Some clients sign the body with apostrophes replaced by quotation marks, or the `str` of the
        parsed body in Python, or use other base64 alphabets and padding: these are accepted too.
        """
        usual = self.sign(timestamp, method, path, body)
        if hmac.compare_digest(usual.encode(), signature.encode()):
            return
        given = signature_bytes(signature)
        for signed in _spellings(body):
            message = l2_message(timestamp, method, path, signed)
            if hmac.compare_digest(self.digest(message), given):
                return
        message = l2_message(timestamp, method, path, body)
        raise L2SignatureMismatch(len(message), hashlib.sha256(message).hexdigest())


def l2_message(timestamp: str, method: str, path: str, body: bytes) -> bytes:
    """Return the signed message: timestamp, method, path without query, and the bytes of the body."""
    return f"{timestamp}{method}{path}".encode() + body


def _spellings(body: bytes) -> Iterator[bytes]:
    """Yield the forms of a body that clients sign, the bytes themselves first."""
    yield body
    if b"'" in body:
        yield body.replace(b"'", b'"')
    if body[:1] == b"{":
        with contextlib.suppress(MalformedBody):
            yield str(parse_json(body)).replace("'", '"').encode()


def signature_bytes(signature: str) -> bytes:
    """Return the bytes of a signature header, in any base64 alphabet and padding; empty if malformed."""
    spelled = signature.replace("+", "-").replace("/", "_").rstrip("=")
    try:
        return base64.urlsafe_b64decode(spelled + "=" * (-len(spelled) % 4))
    except ValueError:
        return b""


def next_generation(used: int | None, *, is_revoked: bool) -> int:
    """Return the generation of the next set of an index; `used` is None when it has none."""
    if used is None:
        return 0
    return used + 1 if is_revoked else used


def check_nonce_order(nonce: int, used_max: int | None) -> None:
    """Refuse an unused nonce that is not greater than every used one."""
    if used_max is not None and nonce <= used_max:
        raise NonceNotMonotonic(nonce, used_max)
