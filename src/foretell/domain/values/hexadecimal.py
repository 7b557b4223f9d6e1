"""Addresses, 32-byte words and byte strings as hex text, parsed where they enter the process.

Inside, an address has 42 lower-case characters and a word has 66, so two of them are equal exactly
when their strings are. The mixed-case checksum is added where an address leaves.
"""

import re
from functools import lru_cache
from typing import Final, NewType

import sha3

from foretell.domain.errors.families import MalformedHex

Address = NewType("Address", str)
Bytes32 = NewType("Bytes32", str)

ZERO_ADDRESS: Final = Address("0x" + "0" * 40)
ZERO_BYTES32: Final = Bytes32("0x" + "0" * 64)

CHECKSUMS_KEPT_MAX: Final = 16_384
"""Addresses whose checksum is kept: the same wallets are in many answers."""

_ADDRESS: Final = re.compile(r"0[xX][0-9a-fA-F]{40}\Z")
_BYTES32: Final = re.compile(r"0[xX][0-9a-fA-F]{64}\Z")


def keccak256(data: bytes) -> bytes:
    """Return the 32 bytes of Ethereum's keccak, which is not the standardized SHA-3."""
    return sha3.keccak_256(data).digest()


def parse_address(text: object, field: str = "address") -> Address:
    """Return the address in a text of any case, or refuse with the name of the field."""
    if not isinstance(text, str) or _ADDRESS.match(text) is None:
        raise MalformedHex(field, "an address: 0x and 40 hex digits")
    return Address(text.lower())


def parse_bytes32(text: object, field: str = "bytes32") -> Bytes32:
    """Return the 32-byte word in a text of any case, or refuse with the name of the field."""
    if not isinstance(text, str) or _BYTES32.match(text) is None:
        raise MalformedHex(field, "32 bytes: 0x and 64 hex digits")
    return Bytes32(text.lower())


def parse_bytes(text: object, field: str, bytes_max: int) -> bytes:
    """Return the bytes of 0x-prefixed hex, at most `bytes_max`, or refuse."""
    if isinstance(text, str) and text[:2] in {"0x", "0X"} and len(text) <= 2 + 2 * bytes_max:
        try:
            raw = bytes.fromhex(text[2:])
        except ValueError:
            raw = None
        if raw is not None and 2 + 2 * len(raw) == len(text):  # no blanks in between
            return raw
    raise MalformedHex(field, f"at most {bytes_max} bytes: 0x and pairs of hex digits")


@lru_cache(maxsize=CHECKSUMS_KEPT_MAX)
def checksum_address(address: Address) -> str:
    """Return the address in the mixed case that carries its checksum (EIP-55)."""
    digits = address[2:]
    marks = keccak256(digits.encode()).hex()
    # EIP-55 names the 8; as characters, "8" to "f" are above "7".
    return "0x" + "".join(
        [digit.upper() if mark > "7" else digit for digit, mark in zip(digits, marks, strict=False)]
    )


def address_bytes(address: Address) -> bytes:
    """Return the 20 bytes of an address."""
    return bytes.fromhex(address[2:])


def address_of(raw: bytes) -> Address:
    """Return the address of 20 raw bytes."""
    assert len(raw) == 20  # noqa: PLR2004 - the length of an address
    return Address("0x" + raw.hex())


def word_bytes(word: Bytes32) -> bytes:
    """Return the 32 bytes of a word."""
    return bytes.fromhex(word[2:])


def word_of(raw: bytes) -> Bytes32:
    """Return the word of 32 raw bytes."""
    assert len(raw) == 32  # noqa: PLR2004 - the length of a word
    return Bytes32("0x" + raw.hex())
