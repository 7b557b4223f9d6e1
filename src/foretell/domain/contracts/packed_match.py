"""Calldata of `matchPacked`: a match in a fifth of the bytes of `matchOrders`.

A record has what the exchange cannot derive. Makers trade the taker's token or its complement; the
maker of an order is its signer, or the signer's Safe. The signature of a contract (type 3) follows its
record. A match with an order that has no such record, as one of a proxy wallet, is settled by `matchOrders`.
"""

import struct
from collections.abc import Sequence
from typing import Final

from foretell.domain.contracts.calldata import OrderFill
from foretell.domain.evm.abi import contract_function
from foretell.domain.evm.abi_values import length_prefixed
from foretell.domain.exchange.order import Side, SignatureType, SignedOrder
from foretell.domain.values.hexadecimal import ZERO_ADDRESS

MATCH_PACKED: Final = contract_function("matchPacked(bytes)")
SUPPORTS_INTERFACE: Final = contract_function("supportsInterface(bytes4)", "(bool)")
"""The exchange answers yes for the selector of `matchPacked`; earlier ones answer no."""

ECDSA_BYTES: Final = 65
CONTRACT_SIGNATURE_BYTES_MAX: Final = 512
V_28: Final = 28
TIME_MAX: Final = 2**64 - 1
AMOUNT_UNITS_MAX: Final = 2**64 - 1
FEE_RATE_BPS_MAX: Final = 2**16 - 1

_SELL_BIT: Final = 3
_TYPE_BIT: Final = 4
_V_BIT: Final = 6
_EXTRA_BIT: Final = 7
_PROFILES: Final = 8
_HEAD: Final = struct.Struct(">20sQHH")
_WORD_BYTES: Final = 32
_NO_ECDSA: Final = bytes(64)
_AMOUNTS: Final = struct.Struct(">QQQQ")


def encode_match_packed(taker: OrderFill, makers: Sequence[OrderFill]) -> bytes | None:
    """Return the calldata that settles a taker order with maker orders; None if it can't be packed."""
    fills = (taker, *makers)
    if not all(map(_is_packable, fills)):
        return None
    records = b"".join(_record(fill) for fill in fills)
    # Written out: the general encoder costs more than all records.
    content = _word(int(taker.order.token_id)) + records
    return MATCH_PACKED.selector + _word(_WORD_BYTES) + length_prefixed(content)


def _is_packable(fill: OrderFill) -> bool:
    order = fill.order
    amounts = (order.maker_amount, order.taker_amount, fill.making_units, fill.fee_units)
    return (
        _has_packable_signature(order)
        and order.taker == ZERO_ADDRESS
        and order.profile < _PROFILES
        and _time(order) <= TIME_MAX
        and max(amounts) <= AMOUNT_UNITS_MAX
        and order.fee_rate_bps <= FEE_RATE_BPS_MAX
    )


def _has_packable_signature(order: SignedOrder) -> bool:
    """Return whether the exchange reads such a signature, and derives the maker from the account."""
    if order.signature_type is SignatureType.CONTRACT:
        return order.v2 is not None and len(order.signature) <= CONTRACT_SIGNATURE_BYTES_MAX
    is_derived = order.signature_type is SignatureType.SAFE or (
        order.signature_type is SignatureType.EOA and order.maker == order.signer
    )
    return is_derived and len(order.signature) == ECDSA_BYTES


def _record(fill: OrderFill) -> bytes:
    order = fill.order
    extra = _extra(order)
    flags = _flags(order) | bool(extra) << _EXTRA_BIT
    account, signature, ecdsa = order.signer, b"", order.signature[:64]
    last = order.fee_rate_bps
    if order.signature_type is SignatureType.CONTRACT:
        # A contract wallet is its own signer for the exchange.
        account, signature, ecdsa = order.maker, order.signature, _NO_ECDSA
        last = len(signature)
    amounts = (order.maker_amount, order.taker_amount, fill.making_units, fill.fee_units)
    return b"".join(
        (
            _HEAD.pack(bytes.fromhex(account[2:]), _time(order), flags, last),
            _word(int(order.salt)),
            _AMOUNTS.pack(*amounts),
            ecdsa,
            extra,
            signature + bytes(-len(signature) % _WORD_BYTES),
        )
    )


def _time(order: SignedOrder) -> int:
    """Return the time that was signed: version 1 has an expiration, and version 2 a timestamp."""
    return order.expiration_s if order.v2 is None else order.v2.timestamp_ms


def _extra(order: SignedOrder) -> bytes:
    """Return the words that only some orders have, or nothing if they are zero."""
    if order.v2 is None:
        words = _word(order.nonce)
    else:
        words = bytes.fromhex(order.v2.metadata[2:]) + bytes.fromhex(order.v2.builder[2:])
    return words if any(words) else b""


def _flags(order: SignedOrder) -> int:
    is_ecdsa = order.signature_type is not SignatureType.CONTRACT
    return (
        order.profile
        | (order.side is Side.SELL) << _SELL_BIT
        | order.signature_type << _TYPE_BIT
        | (is_ecdsa and order.signature[-1] == V_28) << _V_BIT
    )


def _word(number: int) -> bytes:
    return number.to_bytes(32)
