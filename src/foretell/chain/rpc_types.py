"""Responses of a node as typed values. A malformed response counts as none."""

from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from foretell.domain.errors.chain import ChainUnavailable
from foretell.domain.errors.families import MalformedHex
from foretell.domain.evm.transaction import MinedAttempt
from foretell.domain.values.hexadecimal import (
    Address,
    Bytes32,
    parse_address,
    parse_bytes,
    parse_bytes32,
)

ANSWER_BYTES_MAX: Final = 16 * 1024 * 1024
LOGS_BLOOM_BYTES: Final = 256

_T = TypeVar("_T")


class RawLog(msgspec.Struct, rename="camel", frozen=True, gc=False):
    """A log as a node sends it: every number is hex text."""

    address: str
    topics: tuple[str, ...]
    data: str
    block_number: str
    block_hash: str
    transaction_hash: str
    log_index: str
    removed: bool = False


class _Receipt(msgspec.Struct, rename="camel"):
    transaction_hash: str
    block_number: str
    block_hash: str
    status: str
    gas_used: str
    logs: tuple[RawLog, ...]


class RawSighting(msgspec.Struct, rename="camel"):
    """The fields of a receipt that say where its transaction is; logs are not read."""

    transaction_hash: str
    block_number: str
    status: str


class RawBlock(msgspec.Struct, rename="camel"):
    """A header as a node sends it: every number is hex text."""

    number: str
    hash: str
    parent_hash: str
    timestamp: str
    logs_bloom: str
    base_fee_per_gas: str = "0x0"


class ReceiptLogs(msgspec.Struct, rename="camel"):
    """The block and the logs of a receipt as a node sends it; the logs are not decoded."""

    block_hash: str
    logs: tuple[msgspec.Raw, ...]


class LogName(msgspec.Struct, frozen=True, gc=False):
    """The part of a log that says whose it is."""

    address: str
    topics: tuple[str, ...]


class _Tx(msgspec.Struct, rename="camel"):
    hash: str
    from_: str = msgspec.field(name="from")
    to: str | None
    input: str
    value: str
    nonce: str
    block_number: str | None


class _BlockTx(msgspec.Struct):
    hash: str
    from_: str = msgspec.field(name="from")
    nonce: str


class _BlockTxs(msgspec.Struct):
    transactions: tuple[_BlockTx, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """The outcome of a transaction that is in a block."""

    tx_hash: Bytes32
    block_number: int
    block_hash: Bytes32
    is_success: bool
    gas_used: int
    logs: tuple[RawLog, ...]


@dataclass(frozen=True, slots=True)
class BlockHeader:
    """A block's number, hash, parent, time, log filter and base fee."""

    block_number: int
    block_hash: Bytes32
    parent_hash: Bytes32
    timestamp_s: int
    logs_bloom: bytes
    base_fee_wei: int


@dataclass(frozen=True, slots=True)
class ChainTx:
    """A transaction that a node knows; without a block number it is pending."""

    tx_hash: Bytes32
    sender: Address
    target: Address | None
    calldata: bytes
    value_wei: int
    account_nonce: int
    block_number: int | None


def receipt_of(answer: Any) -> Receipt | None:
    """Return the receipt, or None when the node has none."""
    if answer is None:
        return None
    raw = _converted(answer, _Receipt, "receipt")
    try:
        return Receipt(
            parse_bytes32(raw.transaction_hash),
            int(raw.block_number, 16),
            parse_bytes32(raw.block_hash),
            int(raw.status, 16) == 1,
            int(raw.gas_used, 16),
            raw.logs,
        )
    except (MalformedHex, ValueError) as error:
        raise ChainUnavailable("receipt", "a malformed field") from error


def sighting_of(raw: RawSighting) -> MinedAttempt:
    """Return where a transaction is, by its receipt."""
    try:
        return MinedAttempt(
            parse_bytes32(raw.transaction_hash), int(raw.block_number, 16), int(raw.status, 16) == 1
        )
    except (MalformedHex, ValueError) as error:
        raise ChainUnavailable("receipt", "a malformed field") from error


def header_of(answer: Any) -> BlockHeader | None:
    """Return the header, or None when the node has no such block."""
    if answer is None:
        return None
    return read_header(_converted(answer, RawBlock, "block"))


def read_header(raw: RawBlock) -> BlockHeader:
    """Return the header in a node's response."""
    try:
        return BlockHeader(
            int(raw.number, 16),
            parse_bytes32(raw.hash),
            parse_bytes32(raw.parent_hash),
            int(raw.timestamp, 16),
            parse_bytes(raw.logs_bloom, "logsBloom", LOGS_BLOOM_BYTES),
            int(raw.base_fee_per_gas, 16),
        )
    except (MalformedHex, ValueError) as error:
        raise ChainUnavailable("block", "a malformed field") from error


def chain_tx_of(answer: Any) -> ChainTx | None:
    """Return the transaction, or None when the node does not know it."""
    if answer is None:
        return None
    raw = _converted(answer, _Tx, "transaction")
    try:
        return ChainTx(
            parse_bytes32(raw.hash),
            parse_address(raw.from_),
            None if raw.to is None else parse_address(raw.to),
            parse_bytes(raw.input, "input", ANSWER_BYTES_MAX),
            int(raw.value, 16),
            int(raw.nonce, 16),
            None if raw.block_number is None else int(raw.block_number, 16),
        )
    except (MalformedHex, ValueError) as error:
        raise ChainUnavailable("transaction", "a malformed field") from error


def tx_hash_by_nonce(answer: Any, sender: Address) -> dict[int, Bytes32]:
    """Return the hashes of a block's transactions with this sender; of an unknown block, none."""
    if answer is None:
        return {}
    block = _converted(answer, _BlockTxs, "block")
    try:
        return {
            int(tx.nonce, 16): parse_bytes32(tx.hash)
            for tx in block.transactions
            if parse_address(tx.from_) == sender
        }
    except (MalformedHex, ValueError) as error:
        raise ChainUnavailable("block", "a malformed field") from error


def quantity_of(answer: Any, method: str) -> int:
    """Return the number of a hex text."""
    try:
        return int(answer, 16)
    except (TypeError, ValueError) as error:
        raise ChainUnavailable(method, "the answer is not a number") from error


def bytes_of(answer: Any, method: str) -> bytes:
    """Return the bytes of a hex text."""
    try:
        return parse_bytes(answer, method, ANSWER_BYTES_MAX)
    except MalformedHex as error:
        raise ChainUnavailable(method, "the answer is not hex") from error


def _converted(answer: Any, kind: type[_T], method: str) -> _T:
    try:
        return msgspec.convert(answer, kind)
    except msgspec.ValidationError as error:
        raise ChainUnavailable(method, "the answer has another shape") from error
