"""Recovery of signers by the functions of libsecp256k1 themselves.

coincurve's own interface makes several objects for each recovery and copies between them. Calling the
functions that it brings, with memory that is used again, costs 8 % less. The answers are those of
`recover_signer`: tests compare them.
"""

from typing import Final

import sha3
from coincurve._libsecp256k1 import ffi, lib

from foretell.domain.values.signer_recovery import (
    DIGEST_BYTES,
    NO_SIGNER,
    RECOVERED,
    REQUEST_BYTES,
    answer_without_signer,
)

RECOVERY_ID_MAX: Final = 3
"""The library ends the process that calls it with a greater one."""

_V_OFFSET: Final = 27
_V_AT: Final = REQUEST_BYTES - 1
_KEY_BYTES: Final = 65
_UNCOMPRESSED: Final = lib.SECP256K1_EC_UNCOMPRESSED
_CONTEXT: Final = lib.secp256k1_context_static
_WITHOUT_SIGNER: Final = answer_without_signer(NO_SIGNER)
_RECOVERED: Final = bytes([RECOVERED])

_parse: Final = lib.secp256k1_ecdsa_recoverable_signature_parse_compact
_recover: Final = lib.secp256k1_ecdsa_recover
_serialize: Final = lib.secp256k1_ec_pubkey_serialize


class Recoverer:
    """Recovers signers in memory of its own, so one thread at a time may use it."""

    __slots__ = ("_coordinates", "_key", "_serialized", "_serialized_bytes", "_signature")

    def __init__(self) -> None:
        self._signature = ffi.new("secp256k1_ecdsa_recoverable_signature *")
        self._key = ffi.new("secp256k1_pubkey *")
        self._serialized = ffi.new("unsigned char[65]")
        self._serialized_bytes = ffi.new("size_t *", _KEY_BYTES)
        self._coordinates = memoryview(ffi.buffer(self._serialized, _KEY_BYTES))[1:]

    def answer_all(self, requests: bytes) -> bytes:
        """Return the answers to whole requests, in their order."""
        starts = range(0, len(requests), REQUEST_BYTES)
        return b"".join([self.answer(requests[at : at + REQUEST_BYTES]) for at in starts])

    def answer(self, request: bytes) -> bytes:
        """Return the answer to a request: the signer of its digest, or that there is none."""
        assert len(request) == REQUEST_BYTES, "the library reads as much, whatever there is"
        signature, key = self._signature, self._key
        recovery_id = request[_V_AT] - _V_OFFSET
        if (
            not 0 <= recovery_id <= RECOVERY_ID_MAX
            or not _parse(_CONTEXT, signature, request[DIGEST_BYTES:_V_AT], recovery_id)
            or not _recover(_CONTEXT, key, signature, request)  # reads the digest alone
        ):
            return _WITHOUT_SIGNER
        _serialize(_CONTEXT, self._serialized, self._serialized_bytes, key, _UNCOMPRESSED)
        return _RECOVERED + sha3.keccak_256(self._coordinates).digest()[12:]
