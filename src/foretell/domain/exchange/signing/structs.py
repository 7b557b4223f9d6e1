"""The EIP-712 structs of an order, and the hash of an order under each.

Version 1 signs an expiration, a nonce and a fee rate. Version 2 signs the time of its making, a word of
metadata and a builder code in their place: its expiration is kept by the book alone, and the operator
sets its fee.
"""

import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from foretell.domain.exchange.order import SignatureType, SignedOrder
from foretell.domain.values.eip712 import address_word, text_word, uint_word
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    ZERO_BYTES32,
    Bytes32,
    keccak256,
    word_bytes,
)

ORDER_V1_TYPE: Final = (
    "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,"
    "uint256 makerAmount,uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,"
    "uint8 side,uint8 signatureType)"
)
ORDER_V1_TYPE_HASH: Final = text_word(ORDER_V1_TYPE)

ORDER_V2_TYPE: Final = (
    "Order(uint256 salt,address maker,address signer,uint256 tokenId,uint256 makerAmount,"
    "uint256 takerAmount,uint8 side,uint8 signatureType,uint256 timestamp,bytes32 metadata,"
    "bytes32 builder)"
)
ORDER_V2_TYPE_HASH: Final = text_word(ORDER_V2_TYPE)

TOKEN_WORDS_KEPT_MAX: Final = 4096

_V1_NUMBERS: Final = struct.Struct(">" + "24xQ" * 7)
_V2_NUMBERS: Final = struct.Struct(">" + "24xQ" * 5)
_ZERO_WORD: Final = bytes(32)
_CONTRACT: Final = SignatureType.CONTRACT


class OrderStruct(NamedTuple):
    """A version of the order's EIP-712 struct: its type hash, and the packer of its fields."""

    type_hash: bytes
    pack: Callable[[SignedOrder], bytes]

    def hash(self, order: SignedOrder) -> bytes:
        """Return the struct hash of an order."""
        return keccak256(self.type_hash + self.pack(order))


def _pack_v1(order: SignedOrder) -> bytes:
    """Return the twelve fields of a version 1 order as words.

    The last seven words of an order that is traded here have at most 63 bits, and are packed in one step.
    """
    maker = address_word(order.maker)
    signer = maker if order.signer == order.maker else address_word(order.signer)
    numbers = (
        order.maker_amount,
        order.taker_amount,
        order.expiration_s,
        order.nonce,
        order.fee_rate_bps,
        order.side,
        order.signature_type,
    )
    try:
        words = _V1_NUMBERS.pack(*numbers)
    except struct.error:
        words = b"".join(map(uint_word, numbers))
    return b"".join(
        (
            uint_word(int(order.salt)),
            maker,
            signer,
            _ZERO_WORD if order.taker == ZERO_ADDRESS else address_word(order.taker),
            token_word(order.token_id),
            words,
        )
    )


def _pack_v2(order: SignedOrder) -> bytes:
    """Return the eleven fields of a version 2 order as words.

    A contract wallet is its own signer in the struct; it does not name its owner.
    """
    added = order.v2
    assert added is not None, "an order is hashed by the struct that it was parsed for"
    maker = address_word(order.maker)
    is_own = order.signature_type is _CONTRACT or order.signer == order.maker
    numbers = (
        order.maker_amount,
        order.taker_amount,
        order.side,
        order.signature_type,
        added.timestamp_ms,
    )
    try:
        words = _V2_NUMBERS.pack(*numbers)
    except struct.error:
        words = b"".join(map(uint_word, numbers))
    return b"".join(
        (
            uint_word(int(order.salt)),
            maker,
            maker if is_own else address_word(order.signer),
            token_word(order.token_id),
            words,
            _word_bytes(added.metadata),
            _word_bytes(added.builder),
        )
    )


def _word_bytes(word: Bytes32) -> bytes:
    return _ZERO_WORD if word == ZERO_BYTES32 else word_bytes(word)


@lru_cache(TOKEN_WORDS_KEPT_MAX)
def token_word(token_id: str) -> bytes:
    """Return a token id as a word; the conversion of 77 digits costs more than the others."""
    return uint_word(int(token_id))


STRUCTS: Final[Mapping[int, OrderStruct]] = MappingProxyType(
    {
        1: OrderStruct(ORDER_V1_TYPE_HASH, _pack_v1),
        2: OrderStruct(ORDER_V2_TYPE_HASH, _pack_v2),
    }
)
"""The supported structs by version; a signing profile names the version that it is for."""
