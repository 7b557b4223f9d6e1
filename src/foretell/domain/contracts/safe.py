"""A user's Safe: its address, its transactions and signatures, and bundles of calls.

The relayer pays for gas and is never refunded, so the five gas and refund fields of a Safe
transaction are always zero, and are left out here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from foretell.domain.contracts.calldata import CREATE_PROXY, EXEC_TRANSACTION, MULTI_SEND
from foretell.domain.errors.chain import MalformedCalldata
from foretell.domain.evm.raw_transaction import create2_address
from foretell.domain.values.eip712 import (
    SIGNATURE_BYTES,
    Eip712Domain,
    address_word,
    normalize_signature,
    personal_digest,
    recover_signer,
    sign_digest,
    text_word,
    typed_digest,
    uint_word,
)
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    Bytes32,
    address_bytes,
    address_of,
    keccak256,
    word_bytes,
)

SAFE_TX_TYPE_HASH: Final = text_word(
    "SafeTx(address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,"
    "uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce)"
)
CREATE_PROXY_TYPE_HASH: Final = text_word(
    "CreateProxy(address paymentToken,uint256 payment,address paymentReceiver)"
)

OPERATION_CALL: Final = 0
OPERATION_DELEGATECALL: Final = 1

CALLS_PER_BUNDLE_MAX: Final = 64

_PERSONAL_V_OFFSET: Final = 4
_PERSONAL_VS: Final = frozenset({31, 32})
_CALL_HEAD_BYTES: Final = 1 + 20 + 32 + 32
_ADDRESS_END: Final = 21
_VALUE_END: Final = 53


def safe_address(owner: Address, factory: Address, init_code_hash: Bytes32) -> Address:
    """Return the address of the owner's Safe, deployed or not."""
    salt = keccak256(address_word(owner))
    return create2_address(factory, salt, word_bytes(init_code_hash))


class SafeTx(NamedTuple):
    """A transaction of a Safe; the nonce is the Safe's own, so it is executed once."""

    safe: Address
    to: Address
    calldata: bytes
    nonce: int
    operation: int = OPERATION_CALL
    value_wei: int = 0

    def digest(self, chain_id: int) -> bytes:
        """Return the 32 bytes that the owner signs."""
        domain = Eip712Domain(chain_id=chain_id, verifying_contract=self.safe)
        struct_hash = keccak256(
            b"".join(
                (
                    SAFE_TX_TYPE_HASH,
                    address_word(self.to),
                    uint_word(self.value_wei),
                    keccak256(self.calldata),
                    uint_word(self.operation),
                    bytes(32 * 5),
                    uint_word(self.nonce),
                )
            )
        )
        return typed_digest(domain.separator(), struct_hash)

    def encode(self, signature: bytes) -> bytes:
        """Return the calldata by which any account can execute it."""
        return EXEC_TRANSACTION.encode(
            self.to,
            self.value_wei,
            self.calldata,
            self.operation,
            0,
            0,
            0,
            ZERO_ADDRESS,
            ZERO_ADDRESS,
            signature,
        )


def normalize_safe_signature(signature: bytes) -> bytes:
    """Return the signature with v of 27 or 28, or 31 or 32 for a personal message, or refuse it."""
    if len(signature) == SIGNATURE_BYTES and signature[64] in _PERSONAL_VS:
        plain = normalize_signature(_with_v(signature, signature[64] - _PERSONAL_V_OFFSET))
        return _with_v(plain, plain[64] + _PERSONAL_V_OFFSET)
    return normalize_signature(signature)


def recover_safe_signer(digest: bytes, signature: bytes) -> Address:
    """Return the signer of a Safe transaction's digest, by a normalized signature.

    Wallets that sign typed data sign the digest; others sign it as a personal message and add 4 to
    v, as the Safe expects.
    """
    if signature[64] in _PERSONAL_VS:
        plain = _with_v(signature, signature[64] - _PERSONAL_V_OFFSET)
        return recover_signer(personal_digest(digest), plain)
    return recover_signer(digest, signature)


def sign_safe_tx(digest: bytes, private_key: bytes) -> bytes:
    """Return the signature over the digest as a personal message, as wallet clients sign."""
    plain = sign_digest(personal_digest(digest), private_key)
    return _with_v(plain, plain[64] + _PERSONAL_V_OFFSET)


def _with_v(signature: bytes, v: int) -> bytes:
    return signature[:64] + bytes([v])


def create_proxy_digest(factory: Address, domain_name: str, chain_id: int) -> bytes:
    """Return the 32 bytes that an owner signs to have its Safe created, without payment."""
    domain = Eip712Domain(name=domain_name, chain_id=chain_id, verifying_contract=factory)
    return typed_digest(domain.separator(), keccak256(CREATE_PROXY_TYPE_HASH + bytes(32 * 3)))


def encode_create_proxy(signature: bytes) -> bytes:
    """Return the calldata that creates the signer's Safe, by a normalized signature."""
    parts = (signature[64], signature[:32], signature[32:64])
    return CREATE_PROXY.encode(ZERO_ADDRESS, 0, ZERO_ADDRESS, parts)


@dataclass(frozen=True, slots=True)
class InnerCall:
    """One call of a bundle."""

    to: Address
    calldata: bytes
    value_wei: int = 0


def encode_multi_send(calls: Sequence[InnerCall]) -> bytes:
    """Return the calldata of several calls, which succeed or fail together."""
    return MULTI_SEND.encode(b"".join(map(_packed, calls)))


def decode_multi_send(calldata: bytes) -> tuple[InnerCall, ...]:
    """Return the calls of a bundle; refuses one with a delegated call."""
    (packed,) = MULTI_SEND.decode(calldata)
    calls: list[InnerCall] = []
    at = 0
    while at < len(packed):
        head = packed[at : at + _CALL_HEAD_BYTES]
        end = at + _CALL_HEAD_BYTES + int.from_bytes(head[_VALUE_END:], "big")
        if len(head) < _CALL_HEAD_BYTES or end > len(packed):
            raise MalformedCalldata("a bundle of complete calls")
        if head[0] != OPERATION_CALL:
            raise MalformedCalldata("a bundle of calls, none of them delegated")
        if len(calls) == CALLS_PER_BUNDLE_MAX:
            raise MalformedCalldata(f"a bundle of at most {CALLS_PER_BUNDLE_MAX} calls")
        to = address_of(head[1:_ADDRESS_END])
        value_wei = int.from_bytes(head[_ADDRESS_END:_VALUE_END], "big")
        calls.append(InnerCall(to, packed[at + _CALL_HEAD_BYTES : end], value_wei))
        at = end
    return tuple(calls)


def _packed(call: InnerCall) -> bytes:
    return b"".join(
        (
            bytes([OPERATION_CALL]),
            address_bytes(call.to),
            uint_word(call.value_wei),
            uint_word(len(call.calldata)),
            call.calldata,
        )
    )
