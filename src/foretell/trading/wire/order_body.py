"""Bodies of requests that place orders, parsed strictly and once.

Clients differ in details: a salt may be a number of any width or a string. Unknown keys are ignored.
An order with a timestamp is of version 2 of the struct, which is not served.
"""

import re
from types import MappingProxyType
from typing import Any, Final

import msgspec

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import MalformedAmount, MalformedHex
from foretell.domain.errors.order import (
    OrderVersionMismatch,
    PrivateOrder,
    UnsupportedSignatureType,
)
from foretell.domain.exchange.order import (
    SERVED_SIGNATURE_TYPES,
    STRUCTS,
    OrderType,
    Side,
    SignatureType,
    SignedOrder,
)
from foretell.domain.values.amounts import parse_units
from foretell.domain.values.eip712 import SIGNATURE_BYTES, normalize_signature
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, parse_address, parse_bytes

STRUCT_VERSION: Final = max(STRUCTS)
WORD_MAX: Final = 2**256 - 1
_SIDES: Final = MappingProxyType({side.name: side for side in Side})

_WORD: Final = re.compile(r"\d{1,78}\Z", re.ASCII)


class OrderFields(msgspec.Struct, rename="camel", gc=False):
    """The twelve fields of a version 1 order and its signature, as sent."""

    salt: int | str
    maker: str
    signer: str
    taker: str
    token_id: str
    maker_amount: str
    taker_amount: str
    expiration: str
    nonce: str
    fee_rate_bps: str
    side: str
    signature_type: int
    signature: str
    timestamp: Any = None


class PlacingBody(msgspec.Struct, rename="camel", gc=False):
    """An order, the API key that owns it, and its type."""

    order: OrderFields
    owner: str
    order_type: OrderType = OrderType.GTC
    post_only: bool = False
    defer_exec: bool = False


class _Versioned(msgspec.Struct):
    timestamp: Any = None


class _VersionedBody(msgspec.Struct):
    order: _Versioned


_BODY: Final = msgspec.json.Decoder(PlacingBody)
_BATCH: Final = msgspec.json.Decoder(list[msgspec.Raw])
_VERSIONED: Final = msgspec.json.Decoder(_VersionedBody)


def parse_placing(raw: bytes | msgspec.Raw) -> PlacingBody:
    """Return the body of a request to place one order, or refuse."""
    try:
        body = _BODY.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        _check_version(raw)
        raise MalformedOrder(str(error)) from error
    if body.order.timestamp is not None:
        raise OrderVersionMismatch(STRUCT_VERSION)
    if body.post_only and not body.order_type.may_rest:
        raise MalformedOrder("postOnly must be false for FOK and FAK")
    return body


def parse_batch(raw: bytes) -> list[msgspec.Raw]:
    """Return the entries of a request to place several orders, not parsed yet."""
    try:
        return _BATCH.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedOrder(str(error)) from error


def signed_order(fields: OrderFields) -> SignedOrder:
    """Return the order of the fields, or refuse; its signing profile is not known yet."""
    side = _SIDES.get(fields.side)
    if side is None:
        raise MalformedOrder("side must be BUY or SELL")
    if fields.signature_type not in SERVED_SIGNATURE_TYPES:
        raise UnsupportedSignatureType(fields.signature_type, SERVED_SIGNATURE_TYPES)
    try:
        is_public = fields.taker == ZERO_ADDRESS
        taker = ZERO_ADDRESS if is_public else parse_address(fields.taker, "taker")
        order = SignedOrder(
            salt=_word(fields.salt, "salt"),
            maker=parse_address(fields.maker, "maker"),
            signer=parse_address(fields.signer, "signer"),
            taker=taker,
            token_id=fields.token_id,
            maker_amount=parse_units(fields.maker_amount, "makerAmount"),
            taker_amount=parse_units(fields.taker_amount, "takerAmount"),
            expiration_s=parse_units(fields.expiration, "expiration"),
            nonce=parse_units(fields.nonce, "nonce"),
            fee_rate_bps=parse_units(fields.fee_rate_bps, "feeRateBps"),
            side=side,
            signature_type=SignatureType(fields.signature_type),
            profile=0,
            signature=normalize_signature(
                parse_bytes(fields.signature, "signature", SIGNATURE_BYTES)
            ),
        )
    except (MalformedHex, MalformedAmount) as error:
        raise MalformedOrder(error.message) from error
    if taker != ZERO_ADDRESS:
        raise PrivateOrder(taker)
    return order


def _word(value: int | str, field: str) -> str:
    """Return a 256-bit number in its canonical decimal form."""
    text = str(value)
    if _WORD.match(text) is None or (number := int(text)) > WORD_MAX:
        raise MalformedAmount(field, "a decimal integer of at most 256 bits")
    return str(number)


def _check_version(raw: bytes | msgspec.Raw) -> None:
    """Refuse an order of another version as such, rather than as malformed."""
    try:
        versioned = _VERSIONED.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return
    if versioned.order.timestamp is not None:
        raise OrderVersionMismatch(STRUCT_VERSION)
