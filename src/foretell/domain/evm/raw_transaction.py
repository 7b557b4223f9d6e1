"""Signed EIP-1559 transactions in the bytes that a node accepts.

The same fields and key always give the same bytes (RFC 6979), so signing again after a crash gives
the same transaction with the same hash.
"""

from typing import Final, NamedTuple

from foretell.domain.errors.chain import MalformedTransaction
from foretell.domain.evm.rlp import decode_list, encode_bytes, encode_integer, encode_list
from foretell.domain.values.eip712 import sign_digest
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    address_bytes,
    address_of,
    keccak256,
    word_of,
)

DYNAMIC_FEE_TYPE: Final = b"\x02"
ADDRESS_BYTES: Final = 20

_FIELDS: Final = 12
_TO: Final = 5
_CALLDATA: Final = 7
_V_OFFSET: Final = 27


class Fees(NamedTuple):
    """The highest price of a unit of gas, and the part of it for the block producer."""

    max_fee_wei: int
    priority_fee_wei: int


class TxFields(NamedTuple):
    """The signed fields; without `to` the calldata creates a contract."""

    chain_id: int
    account_nonce: int
    fees: Fees
    gas: int
    to: Address | None
    calldata: bytes
    value_wei: int = 0


class SignedTx(NamedTuple):
    """The bytes to broadcast, and the hash of the transaction."""

    raw: bytes
    tx_hash: Bytes32


def sign_tx(fields: TxFields, private_key: bytes) -> SignedTx:
    """Return the transaction, signed."""
    body = unsigned_items(fields)
    digest = keccak256(DYNAMIC_FEE_TYPE + encode_list(body))
    signature = sign_digest(digest, private_key)
    body += [
        encode_integer(signature[64] - _V_OFFSET),
        encode_integer(int.from_bytes(signature[:32], "big")),
        encode_integer(int.from_bytes(signature[32:64], "big")),
    ]
    raw = DYNAMIC_FEE_TYPE + encode_list(body)
    return SignedTx(raw, word_of(keccak256(raw)))


def unsigned_items(fields: TxFields) -> list[bytes]:
    """Return the encoded items of a transaction that a signature covers."""
    return [
        encode_integer(fields.chain_id),
        encode_integer(fields.account_nonce),
        encode_integer(fields.fees.priority_fee_wei),
        encode_integer(fields.fees.max_fee_wei),
        encode_integer(fields.gas),
        encode_bytes(b"" if fields.to is None else address_bytes(fields.to)),
        encode_integer(fields.value_wei),
        encode_bytes(fields.calldata),
        encode_list([]),
    ]


def is_noop(raw: bytes, sender: Address) -> bool:
    """Return whether the signed transaction only uses up a nonce of its sender."""
    if raw[:1] != DYNAMIC_FEE_TYPE:
        raise MalformedTransaction("an EIP-1559 transaction")
    fields = decode_list(raw[1:])
    if len(fields) != _FIELDS or len(fields[_TO]) not in {0, ADDRESS_BYTES}:
        raise MalformedTransaction("an EIP-1559 transaction")
    return fields[_TO] == address_bytes(sender) and not fields[_CALLDATA]


def create2_address(deployer: Address, salt: bytes, init_code_hash: bytes) -> Address:
    """Return the address of a contract that a deployer creates with this salt and code."""
    return address_of(keccak256(b"\xff" + address_bytes(deployer) + salt + init_code_hash)[12:])
