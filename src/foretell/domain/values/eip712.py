"""EIP-712 hashing and signer recovery, with structs packed by hand.

A generic encoder takes 250 µs for an order; concatenating 32-byte words takes 6. Tests compare the
bytes with an independent encoder.
"""

from typing import Final, NamedTuple

import coincurve

from foretell.domain.errors.families import MalformedSignature
from foretell.domain.values.hexadecimal import Address, address_bytes, address_of, keccak256

CURVE_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
LOW_S_MAX: Final = CURVE_ORDER // 2
SIGNATURE_BYTES: Final = 65

_V_OFFSET: Final = 27
_PERSONAL_PREFIX: Final = b"\x19Ethereum Signed Message:\n32"


class Eip712Domain(NamedTuple):
    """The domain of a signature; a field that is None is not part of its type."""

    name: str | None = None
    version: str | None = None
    chain_id: int | None = None
    verifying_contract: Address | None = None

    def separator(self) -> bytes:
        """Return the domain separator, 32 bytes."""
        kinds, words = [], []
        if self.name is not None:
            kinds.append("string name")
            words.append(text_word(self.name))
        if self.version is not None:
            kinds.append("string version")
            words.append(text_word(self.version))
        if self.chain_id is not None:
            kinds.append("uint256 chainId")
            words.append(uint_word(self.chain_id))
        if self.verifying_contract is not None:
            kinds.append("address verifyingContract")
            words.append(address_word(self.verifying_contract))
        return keccak256(text_word(f"EIP712Domain({','.join(kinds)})") + b"".join(words))


def uint_word(value: int) -> bytes:
    """Return an unsigned integer as a word."""
    return value.to_bytes(32, "big")


def address_word(address: Address) -> bytes:
    """Return an address as a word."""
    return bytes(12) + address_bytes(address)


def text_word(text: str) -> bytes:
    """Return the word that stands for a string or for dynamic bytes: their hash."""
    return keccak256(text.encode())


def typed_digest(separator: bytes, struct_hash: bytes) -> bytes:
    """Return the 32 bytes that are signed for a struct in a domain."""
    return keccak256(b"\x19\x01" + separator + struct_hash)


def personal_digest(word: bytes) -> bytes:
    """Return the 32 bytes that are signed when a 32-byte word is a personal message (EIP-191)."""
    return keccak256(_PERSONAL_PREFIX + word)


def normalize_signature(signature: bytes) -> bytes:
    """Return r, s and v as 65 bytes with v 27 or 28, or refuse.

    Only the lower of the two equivalent values of s is accepted: the other one would give the same
    signed data a second signature.
    """
    if len(signature) != SIGNATURE_BYTES:
        raise MalformedSignature(f"{SIGNATURE_BYTES} bytes, not {len(signature)}")
    v = signature[64]
    if v in {0, 1}:
        v += _V_OFFSET
    if v not in {_V_OFFSET, _V_OFFSET + 1}:
        raise MalformedSignature(f"v 27 or 28, not {v}")
    if not 0 < int.from_bytes(signature[32:64], "big") <= LOW_S_MAX:
        raise MalformedSignature("s in the lower half of the curve's order")
    return signature[:64] + bytes([v])


def recover_signer(digest: bytes, signature: bytes) -> Address:
    """Return the address that signed the digest; the signature is normalized.

    Raises MalformedSignature when no key can have made the signature.
    """
    try:
        recoverable = signature[:64] + bytes([signature[64] - _V_OFFSET])
        key = coincurve.PublicKey.from_signature_and_message(recoverable, digest, hasher=None)
    except ValueError as error:
        raise MalformedSignature("the signature of a point on the curve") from error
    return address_of(keccak256(key.format(compressed=False)[1:])[12:])


def sign_digest(digest: bytes, private_key: bytes) -> bytes:
    """Return a normalized signature of the digest, deterministic by RFC 6979."""
    signature = coincurve.PrivateKey(private_key).sign_recoverable(digest, hasher=None)
    return signature[:64] + bytes([signature[64] + _V_OFFSET])


def address_of_key(private_key: bytes) -> Address:
    """Return the address that a private key controls."""
    public = coincurve.PrivateKey(private_key).public_key.format(compressed=False)
    return address_of(keccak256(public[1:])[12:])
