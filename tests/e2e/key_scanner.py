"""A scanner for private keys in what is public: hex in any place, and base64."""

import base64
import binascii
import re
from collections.abc import Collection, Iterator
from typing import Final

from foretell.domain.values.eip712 import address_of_key
from foretell.domain.values.hexadecimal import Address

KEY_BYTES: Final = 32
_HEX: Final = re.compile(rb"[0-9a-fA-F]{64,}")
_BASE64: Final = re.compile(rb"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{43}(?![A-Za-z0-9+/_-])")
_ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


class KeyScanner:
    """Finds the keys of addresses, and other secrets of as many bytes."""

    def __init__(self, addresses: Collection[Address], secrets: Collection[bytes] = ()) -> None:
        self._addresses = frozenset(addresses)
        self._secrets = frozenset(secrets)
        self._harmless: set[bytes] = set()

    def found_in(self, content: bytes) -> list[str]:
        """Return the places of keys in a content."""
        return [f"byte {at}" for at, candidate in _candidates(content) if self._is_key(candidate)]

    def _is_key(self, candidate: bytes) -> bool:
        if candidate in self._harmless:
            return False
        is_scalar = 0 < int.from_bytes(candidate) < _ORDER
        if candidate in self._secrets or (
            is_scalar and address_of_key(candidate) in self._addresses
        ):
            return True
        self._harmless.add(candidate)
        return False


def _candidates(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield all runs of 32 bytes: each place of a longer run of hex may be the beginning of one."""
    for run in _HEX.finditer(content):
        for at in range(len(run[0]) - 2 * KEY_BYTES + 1):
            yield run.start() + at, bytes.fromhex(run[0][at : at + 2 * KEY_BYTES].decode())
    for run in _BASE64.finditer(content):
        try:
            raw = base64.urlsafe_b64decode(run[0].translate(bytes.maketrans(b"+/", b"-_")) + b"=")
        except binascii.Error:
            continue
        if len(raw) == KEY_BYTES:
            yield run.start(), raw
