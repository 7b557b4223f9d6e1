"""The signed order: its fields, hash, own validity and statuses.

An order offers `maker_amount` of one asset for `taker_amount` of the other: a BUY gives collateral
for tokens, a SELL tokens for collateral. Its price is their ratio and must be a whole number of
ticks: exactly for orders that may rest, nearly for orders that only take, because clients round
the collateral of a market order.
"""

import enum
import struct
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from foretell.domain.errors.exchange import (
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    PriceOffTick,
    SizeBelowMinimum,
)
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.values.eip712 import address_word, text_word, uint_word
from foretell.domain.values.hexadecimal import ZERO_ADDRESS, Address, Bytes32, keccak256

ORDER_V1_TYPE: Final = (
    "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,"
    "uint256 makerAmount,uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,"
    "uint8 side,uint8 signatureType)"
)
ORDER_V1_TYPE_HASH: Final = text_word(ORDER_V1_TYPE)

EXPIRATION_MARGIN_S: Final = 60
"""The time before its expiration at which an order leaves the book, so that it can still settle."""

TICK_TOLERANCE: Final = 20
"""The price of an order that only takes may differ from its tick by a tick over this number."""


class Side(enum.IntEnum):
    """The side of an order: BUY pays collateral for tokens, SELL the reverse."""

    BUY = 0
    SELL = 1


_BUY: Final = Side.BUY


class SignatureType(enum.IntEnum):
    """The relation of an order's signer to its maker, which pays."""

    EOA = 0
    PROXY = 1
    SAFE = 2
    CONTRACT = 3


SERVED_SIGNATURE_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {SignatureType.EOA: "EOA", SignatureType.SAFE: "Safe"}
)
"""The signature types that are accepted, and their names in messages."""


class OrderType(enum.StrEnum):
    """The time in force: good till canceled, good till date, fill or kill, fill and kill.

    `may_rest` says whether the size that is not matched at once stays in the book. It is a plain
    attribute of each member, because a property would cost a call for every order.
    """

    GTC = "GTC"
    GTD = "GTD"
    FOK = "FOK"
    FAK = "FAK"

    may_rest: bool

    def __init__(self, word: str) -> None:
        self.may_rest = word in {"GTC", "GTD"}


def has_budget(side: Side, order_type: OrderType) -> bool:
    """Return whether the order names the collateral to spend: a BUY that may not rest.

    All other orders name their size in tokens.
    """
    return side is _BUY and not order_type.may_rest


class SignedOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An order as signed, with the signing profile under which it was verified.

    `salt` and `token_id` are decimal strings, because both may exceed an integer of the journal.
    The signature is normalized: r, s and v of 27 or 28.
    """

    salt: str
    maker: Address
    signer: Address
    taker: Address
    token_id: str
    maker_amount: int
    taker_amount: int
    expiration_s: int
    nonce: int
    fee_rate_bps: int
    side: Side
    signature_type: SignatureType
    profile: int
    signature: bytes

    @property
    def size_units(self) -> int:
        """The token units that the order asks for or offers."""
        return self.taker_amount if self.side is _BUY else self.maker_amount

    @property
    def collateral_units(self) -> int:
        """The collateral units that the order offers or asks for."""
        return self.maker_amount if self.side is _BUY else self.taker_amount


_SMALL_WORDS: Final = struct.Struct(">" + "24xQ" * 7)
_NO_TAKER: Final = bytes(32)
TOKEN_WORDS_KEPT_MAX: Final = 4096


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
    return b"".join(
        (
            uint_word(int(order.salt)),
            maker,
            signer,
            _NO_TAKER if order.taker == ZERO_ADDRESS else address_word(order.taker),
            token_word(order.token_id),
            _last_words(order),
        )
    )


def _last_words(order: SignedOrder) -> bytes:
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
        return _SMALL_WORDS.pack(*numbers)
    except struct.error:
        return b"".join(map(uint_word, numbers))


@lru_cache(TOKEN_WORDS_KEPT_MAX)
def token_word(token_id: str) -> bytes:
    """Return a token id as a word; the conversion of 77 digits costs more than the others."""
    return uint_word(int(token_id))


STRUCTS: Final[Mapping[int, OrderStruct]] = MappingProxyType(
    {1: OrderStruct(ORDER_V1_TYPE_HASH, _pack_v1)}
)
"""The supported structs by version; a signing profile names the version that it is for."""


class OrderTerms(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The terms of an order in its market: its limit in ticks, and its size or its budget.

    An order that has a budget names the collateral to spend, so its `size_units` is None; for all
    others `budget_units` is None.
    """

    price_ticks: int
    ticks_per_one: int
    size_units: int | None
    budget_units: int | None

    @property
    def has_budget(self) -> bool:
        """Whether the order names the collateral to spend."""
        return self.budget_units is not None


class MarketRules(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The rules of a market for its orders."""

    ticks_per_one: int
    size_units_min: int
    fee_rate_bps: int


def order_terms(
    order: SignedOrder, order_type: OrderType, rules: MarketRules, order_id: Bytes32
) -> OrderTerms:
    """Return the order's terms in a market, or refuse fields that break the market's rules.

    Funds, the book and the clock are checked elsewhere.
    """
    if order.maker_amount == 0 or order.taker_amount == 0:
        raise MalformedOrder("makerAmount and takerAmount must be greater than zero")
    if (order.expiration_s != 0) != (order_type is OrderType.GTD):
        raise InvalidExpiration("GTD orders need an expiration, and other orders must have 0")
    if order.fee_rate_bps != rules.fee_rate_bps:
        raise InvalidFeeRate(order.fee_rate_bps, rules.fee_rate_bps)
    price_ticks = _price_ticks(order, order_type, rules.ticks_per_one, order_id)
    if order.size_units < rules.size_units_min:
        raise SizeBelowMinimum(order_id, order.size_units, rules.size_units_min)
    is_budgeted = has_budget(order.side, order_type)
    return OrderTerms(
        price_ticks=price_ticks,
        ticks_per_one=rules.ticks_per_one,
        size_units=None if is_budgeted else order.size_units,
        budget_units=order.collateral_units if is_budgeted else None,
    )


def _price_ticks(
    order: SignedOrder, order_type: OrderType, ticks_per_one: int, order_id: Bytes32
) -> int:
    """Return the limit in whole ticks, the tighter one where the ratio is between two."""
    scaled = order.collateral_units * ticks_per_one
    ticks, rest = divmod(scaled, order.size_units)
    nearest = (2 * scaled + order.size_units) // (2 * order.size_units)
    is_near = abs(scaled - nearest * order.size_units) * TICK_TOLERANCE <= order.size_units
    if rest and (order_type.may_rest or not is_near):
        raise PriceOffTick(order_id, order.collateral_units, order.size_units, ticks_per_one)
    if rest and order.side is Side.SELL:
        ticks += 1
    if not 0 < ticks < ticks_per_one:
        raise PriceOffTick(order_id, order.collateral_units, order.size_units, ticks_per_one)
    assert rest == 0 or not order_type.may_rest, "a price that may rest is exact"
    return ticks


def check_expiration(order: SignedOrder, now_s: int) -> None:
    """Refuse an order that expires too soon to settle."""
    if order.expiration_s and order.expiration_s <= now_s + EXPIRATION_MARGIN_S:
        raise InvalidExpiration(
            f"it is {now_s}, and the expiration must be later than {now_s + EXPIRATION_MARGIN_S}"
        )


def leaves_book_at_s(order: SignedOrder) -> int | None:
    """Return the second at which the order expires in the book, None if it does not."""
    return order.expiration_s - EXPIRATION_MARGIN_S if order.expiration_s else None


class OrderStatus(enum.StrEnum):
    """The status of an order."""

    LIVE = "LIVE"
    MATCHED = "MATCHED"
    CANCELED = "CANCELED"


class OrderTrigger(enum.StrEnum):
    """The triggers that change the status of an order."""

    FILL_PART = "fill_part"
    FILL_ALL = "fill_all"
    CLOSE_DUST = "close_dust"
    CANCEL = "cancel"


ORDER_TRANSITIONS: Final[Mapping[tuple[OrderStatus, OrderTrigger], OrderStatus]] = MappingProxyType(
    {
        (OrderStatus.LIVE, OrderTrigger.FILL_PART): OrderStatus.LIVE,
        (OrderStatus.LIVE, OrderTrigger.FILL_ALL): OrderStatus.MATCHED,
        (OrderStatus.LIVE, OrderTrigger.CLOSE_DUST): OrderStatus.MATCHED,
        (OrderStatus.LIVE, OrderTrigger.CANCEL): OrderStatus.CANCELED,
    }
)


def advance_order(status: OrderStatus, trigger: OrderTrigger) -> OrderStatus:
    """Return the next status, or refuse."""
    try:
        return ORDER_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("order", status, trigger) from None
