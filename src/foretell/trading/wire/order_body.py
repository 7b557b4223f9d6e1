"""Bodies of requests that place orders, parsed strictly and once.

Clients differ in details: a salt may be a number of any width or a string. Unknown keys are ignored.
An order with a timestamp is of version 2 of the struct.
"""

import re
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.errors.exchange import MalformedOrder
from foretell.domain.errors.families import MalformedAmount, MalformedHex
from foretell.domain.errors.order import (
    PrivateOrder,
    SignerNotWallet,
    UnsupportedSignatureType,
    WalletNeedsVersion2,
)
from foretell.domain.exchange.order import (
    SERVED_SIGNATURE_TYPES,
    OrderType,
    OrderV2Fields,
    Side,
    SignatureType,
    SignedOrder,
)
from foretell.domain.exchange.signing.wallet_signatures import (
    WALLET_SIGNATURE_BYTES,
    normalize_wallet_signature,
)
from foretell.domain.values.amounts import parse_units
from foretell.domain.values.eip712 import SIGNATURE_BYTES, normalize_signature
from foretell.domain.values.hexadecimal import (
    ZERO_ADDRESS,
    Address,
    parse_address,
    parse_bytes,
    parse_bytes32,
)

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


class OrderV2Body(msgspec.Struct, rename="camel", gc=False):
    """The eleven fields of a version 2 order, its expiration, which is not signed, and its signature."""

    salt: int | str
    maker: str
    signer: str
    token_id: str
    maker_amount: str
    taker_amount: str
    side: str
    signature_type: int
    timestamp: int | str
    metadata: str
    builder: str
    signature: str
    expiration: str = "0"


class PlacingBody(msgspec.Struct, rename="camel", gc=False):
    """An order, the API key that owns it, and its type."""

    order: OrderFields
    owner: str
    order_type: OrderType = OrderType.GTC
    post_only: bool = False
    defer_exec: bool = False


class PlacingV2Body(msgspec.Struct, rename="camel", gc=False):
    """An order of version 2, the API key that owns it, and its type."""

    order: OrderV2Body
    owner: str
    order_type: OrderType = OrderType.GTC
    post_only: bool = False
    defer_exec: bool = False


class SentOrder(msgspec.Struct, rename="camel", kw_only=True):
    """An order as documents show it: with a timestamp it is of version 2 of the struct.

    Version 1 needs `taker`, `expiration`, `nonce` and `feeRateBps`, and version 2 `metadata` and `builder`.
    """

    salt: int | str
    maker: str
    signer: str
    taker: str | UnsetType = UNSET
    token_id: str
    maker_amount: str
    taker_amount: str
    expiration: str | UnsetType = UNSET
    nonce: str | UnsetType = UNSET
    fee_rate_bps: str | UnsetType = UNSET
    side: str
    signature_type: int
    timestamp: int | str | UnsetType = UNSET
    metadata: str | UnsetType = UNSET
    builder: str | UnsetType = UNSET
    signature: str


class SentPlacing(msgspec.Struct, rename="camel", kw_only=True):
    """An order, the API key that owns it, and its type, as documents show them."""

    order: SentOrder
    owner: str
    order_type: OrderType = OrderType.GTC
    post_only: bool = False
    defer_exec: bool = False


class _Versioned(msgspec.Struct):
    timestamp: Any = None


class _VersionedBody(msgspec.Struct):
    order: _Versioned


_BODY: Final = msgspec.json.Decoder(PlacingBody)
_V2_BODY: Final = msgspec.json.Decoder(PlacingV2Body)
_BATCH: Final = msgspec.json.Decoder(list[msgspec.Raw])
_VERSIONED: Final = msgspec.json.Decoder(_VersionedBody)
_NOT_JSON: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def parse_placing(raw: bytes | msgspec.Raw) -> PlacingBody | PlacingV2Body:
    """Return the body of a request to place one order, or refuse."""
    body: PlacingBody | PlacingV2Body
    try:
        body = _BODY.decode(raw)
    except _NOT_JSON as error:
        if not _has_timestamp(raw):
            raise MalformedOrder(str(error)) from error
        body = _parse_v2(raw)
    else:
        if body.order.timestamp is not None:
            body = _parse_v2(raw)
    if body.post_only and not body.order_type.may_rest:
        raise MalformedOrder("postOnly must be false for FOK and FAK")
    return body


def _parse_v2(raw: bytes | msgspec.Raw) -> PlacingV2Body:
    try:
        return _V2_BODY.decode(raw)
    except _NOT_JSON as error:
        raise MalformedOrder(str(error)) from error


def _has_timestamp(raw: bytes | msgspec.Raw) -> bool:
    """Return whether an order is of version 2, though its body may be malformed."""
    try:
        return _VERSIONED.decode(raw).order.timestamp is not None
    except _NOT_JSON:
        return False


def parse_batch(raw: bytes) -> list[msgspec.Raw]:
    """Return the entries of a request to place several orders, not parsed yet."""
    try:
        return _BATCH.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedOrder(str(error)) from error


def signed_order(fields: OrderFields | OrderV2Body, caller: Address) -> SignedOrder:
    """Return the order of the fields, or refuse; its signing profile is not known yet.

    The key that signs for a contract wallet must be the caller's: it becomes the order's signer.
    """
    side = _SIDES.get(fields.side)
    if side is None:
        raise MalformedOrder("side must be BUY or SELL")
    if fields.signature_type not in SERVED_SIGNATURE_TYPES:
        raise UnsupportedSignatureType(fields.signature_type, SERVED_SIGNATURE_TYPES)
    try:
        if isinstance(fields, OrderV2Body):
            return _signed_v2(fields, side, caller)
        order = _signed_v1(fields, side)
    except (MalformedHex, MalformedAmount) as error:
        raise MalformedOrder(error.message) from error
    if order.taker != ZERO_ADDRESS:
        raise PrivateOrder(order.taker)
    return order


def _signed_v1(fields: OrderFields, side: Side) -> SignedOrder:
    if fields.signature_type == SignatureType.CONTRACT:
        raise WalletNeedsVersion2
    is_public = fields.taker == ZERO_ADDRESS
    return SignedOrder(
        salt=_word(fields.salt, "salt"),
        maker=parse_address(fields.maker, "maker"),
        signer=parse_address(fields.signer, "signer"),
        taker=ZERO_ADDRESS if is_public else parse_address(fields.taker, "taker"),
        token_id=fields.token_id,
        maker_amount=parse_units(fields.maker_amount, "makerAmount"),
        taker_amount=parse_units(fields.taker_amount, "takerAmount"),
        expiration_s=parse_units(fields.expiration, "expiration"),
        nonce=parse_units(fields.nonce, "nonce"),
        fee_rate_bps=parse_units(fields.fee_rate_bps, "feeRateBps"),
        side=side,
        signature_type=SignatureType(fields.signature_type),
        profile=0,
        signature=normalize_signature(parse_bytes(fields.signature, "signature", SIGNATURE_BYTES)),
    )


def _signed_v2(fields: OrderV2Body, side: Side, caller: Address) -> SignedOrder:
    kind = SignatureType(fields.signature_type)
    maker, signer = parse_address(fields.maker, "maker"), parse_address(fields.signer, "signer")
    if kind is not SignatureType.CONTRACT:
        signature = normalize_signature(parse_bytes(fields.signature, "signature", SIGNATURE_BYTES))
    elif signer != maker:
        raise SignerNotWallet(signer, maker)
    else:
        signer, signature = (
            caller,
            normalize_wallet_signature(
                parse_bytes(fields.signature, "signature", WALLET_SIGNATURE_BYTES)
            ),
        )
    return SignedOrder(
        salt=_word(fields.salt, "salt"),
        maker=maker,
        signer=signer,
        taker=ZERO_ADDRESS,
        token_id=fields.token_id,
        maker_amount=parse_units(fields.maker_amount, "makerAmount"),
        taker_amount=parse_units(fields.taker_amount, "takerAmount"),
        expiration_s=parse_units(fields.expiration, "expiration"),
        nonce=0,
        fee_rate_bps=0,
        side=side,
        signature_type=kind,
        profile=0,
        signature=signature,
        v2=OrderV2Fields(
            parse_units(str(fields.timestamp), "timestamp"),
            parse_bytes32(fields.metadata, "metadata"),
            parse_bytes32(fields.builder, "builder"),
        ),
    )


def _word(value: int | str, field: str) -> str:
    """Return a 256-bit number in its canonical decimal form."""
    text = str(value)
    if _WORD.match(text) is None or (number := int(text)) > WORD_MAX:
        raise MalformedAmount(field, "a decimal integer of at most 256 bits")
    return str(number)
