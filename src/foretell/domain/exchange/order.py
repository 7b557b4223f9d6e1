"""The signed order: its fields, its hash, what makes it valid on its own, and its life.

An order is an offer to give `maker_amount` of one asset for `taker_amount` of the other: a BUY gives
collateral for tokens, a SELL tokens for collateral. Its price is their ratio, and it must be a whole
number of ticks: exactly for orders that may rest, nearly for those that only take, because clients
round the money side of a market order.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

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
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256

ORDER_V1_TYPE: Final = (
    "Order(uint256 salt,address maker,address signer,address taker,uint256 tokenId,"
    "uint256 makerAmount,uint256 takerAmount,uint256 expiration,uint256 nonce,uint256 feeRateBps,"
    "uint8 side,uint8 signatureType)"
)
ORDER_V1_TYPE_HASH: Final = text_word(ORDER_V1_TYPE)

EXPIRATION_MARGIN_S: Final = 60
"""An order with an expiration leaves the book this long before it, so that it can still settle."""

TICK_TOLERANCE: Final = 20
"""A taking order's price may be off its tick by one part in this many of a tick."""


class Side(enum.IntEnum):
    """Whether the maker of the order pays collateral for tokens or the reverse."""

    BUY = 0
    SELL = 1


_BUY: Final = Side.BUY


class SignatureType(enum.IntEnum):
    """How the order's signer and its maker, who pays, belong together."""

    EOA = 0
    PROXY = 1
    SAFE = 2
    CONTRACT = 3


class OrderType(enum.StrEnum):
    """How long an order waits: till cancelled, till a date, all at once or not at all, or what is there."""

    GTC = "GTC"
    GTD = "GTD"
    FOK = "FOK"
    FAK = "FAK"

    @property
    def may_rest(self) -> bool:
        """Whether what is not matched at once stays in the book."""
        return self is OrderType.GTC or self is OrderType.GTD


class SignedOrder(msgspec.Struct, frozen=True, array_like=True):
    """An order as its signer signed it, with the signing profile that it was verified under.

    `salt` and `token_id` are decimal strings: both may be wider than what the journal stores as an
    integer. The signature is normalized: r, s and v of 27 or 28.
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
        """How many token units the order asks for or offers."""
        return self.taker_amount if self.side is _BUY else self.maker_amount

    @property
    def collateral_units(self) -> int:
        """How much collateral the order offers or asks for."""
        return self.maker_amount if self.side is _BUY else self.taker_amount


def order_struct_hash(order: SignedOrder) -> bytes:
    """Return the EIP-712 struct hash of the twelve fields of a version 1 order."""
    return keccak256(
        b"".join(
            (
                ORDER_V1_TYPE_HASH,
                uint_word(int(order.salt)),
                address_word(order.maker),
                address_word(order.signer),
                address_word(order.taker),
                uint_word(int(order.token_id)),
                uint_word(order.maker_amount),
                uint_word(order.taker_amount),
                uint_word(order.expiration_s),
                uint_word(order.nonce),
                uint_word(order.fee_rate_bps),
                uint_word(order.side),
                uint_word(order.signature_type),
            )
        )
    )


class OrderTerms(msgspec.Struct, frozen=True, array_like=True):
    """What a market makes of an order: its limit in ticks, and how much may be matched.

    A BUY that only takes names the collateral to spend, so its size is open: `size_units` is None
    and `budget_units` set. All others name their size.
    """

    price_ticks: int
    ticks_per_one: int
    size_units: int | None
    budget_units: int | None


class MarketRules(msgspec.Struct, frozen=True, array_like=True):
    """What a market asks of every order."""

    ticks_per_one: int
    size_units_min: int
    fee_rate_bps: int


def check_order(
    order: SignedOrder, order_type: OrderType, rules: MarketRules, order_id: Bytes32
) -> OrderTerms:
    """Return what the market makes of the order, or refuse it for what it says itself.

    Funds, the book and the clock are not looked at here.
    """
    if order.maker_amount == 0 or order.taker_amount == 0:
        raise MalformedOrder("makerAmount and takerAmount must be greater than zero")
    if (order.expiration_s != 0) != (order_type is OrderType.GTD):
        raise InvalidExpiration("an expiration goes with GTD and with nothing else")
    if order.fee_rate_bps != rules.fee_rate_bps:
        raise InvalidFeeRate(order.fee_rate_bps, rules.fee_rate_bps)
    price_ticks = _price_ticks(order, order_type, rules.ticks_per_one, order_id)
    if order.size_units < rules.size_units_min:
        raise SizeBelowMinimum(order_id, order.size_units, rules.size_units_min)
    has_budget = order.side is Side.BUY and not order_type.may_rest
    return OrderTerms(
        price_ticks=price_ticks,
        ticks_per_one=rules.ticks_per_one,
        size_units=None if has_budget else order.size_units,
        budget_units=order.collateral_units if has_budget else None,
    )


def _price_ticks(
    order: SignedOrder, order_type: OrderType, ticks_per_one: int, order_id: Bytes32
) -> int:
    """Return the limit in whole ticks, the tighter one where the ratio lies between two."""
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
    return ticks


def check_expiration(order: SignedOrder, now_s: int) -> None:
    """Refuse an order whose expiration is too near for it to settle."""
    if order.expiration_s and order.expiration_s <= now_s + EXPIRATION_MARGIN_S:
        raise InvalidExpiration(
            f"it is {now_s}, and the expiration must be later than {now_s + EXPIRATION_MARGIN_S}"
        )


def leaves_book_at_s(order: SignedOrder) -> int | None:
    """Return the second at which the order leaves the book by itself, if it does."""
    return order.expiration_s - EXPIRATION_MARGIN_S if order.expiration_s else None


class OrderStatus(enum.StrEnum):
    """Where an order is in its life."""

    LIVE = "LIVE"
    MATCHED = "MATCHED"
    CANCELED = "CANCELED"


class OrderTrigger(enum.StrEnum):
    """What moves an order."""

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
    """Return the status that follows, or refuse."""
    try:
        return ORDER_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("order", status, trigger) from None
