"""What we use of the functions of libsecp256k1 that coincurve brings, which carry no types."""

from typing import Final

class _CData: ...

class _FFI:
    def new(self, kind: str, value: int = ..., /) -> _CData: ...
    def buffer(self, memory: _CData, size: int, /) -> memoryview: ...

class _Lib:
    SECP256K1_EC_UNCOMPRESSED: Final[int]
    secp256k1_context_static: Final[_CData]

    @staticmethod
    def secp256k1_ecdsa_recoverable_signature_parse_compact(
        context: _CData, signature: _CData, compact: bytes, recovery_id: int, /
    ) -> int: ...
    @staticmethod
    def secp256k1_ecdsa_recover(
        context: _CData, key: _CData, signature: _CData, digest: bytes, /
    ) -> int: ...
    @staticmethod
    def secp256k1_ec_pubkey_serialize(
        context: _CData, serialized: _CData, size: _CData, key: _CData, flags: int, /
    ) -> int: ...

ffi: _FFI
lib: _Lib
