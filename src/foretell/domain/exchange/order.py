"""The signed order: its fields, hash, own validity and statuses.

An order offers `maker_amount` of one asset for `taker_amount` of the other: a BUY gives collateral
for tokens, a SELL tokens for collateral. Its price is their ratio and must be a whole number of
ticks: exactly for orders that may rest, nearly for orders that only take, because clients round
the collateral of a market order.
"""

import enum
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.domain.errors.exchange import (
    BudgetBelowMinimum,
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    PriceOffTick,
    SizeBelowMinimum,
)
from foretell.domain.errors.families import IllegalTransition
from foretell.domain.values.hexadecimal import Address, Bytes32

EXPIRATION_MARGIN_S: Final = 60
"""The time before its expiration at which an order leaves the book, so that it can still settle."""

BUDGET_UNITS_MIN: Final = 10**6
"""The least collateral, 1.00, that an order may spend that only takes. A market without a minimum has none of this kind either."""

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
    {
        SignatureType.EOA: "EOA",
        SignatureType.PROXY: "proxy wallet",
        SignatureType.SAFE: "Safe",
        SignatureType.CONTRACT: "deposit wallet",
    }
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


class OrderV2Fields(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fields that version 2 of the order struct has and version 1 has not."""

    timestamp_ms: int
    metadata: Bytes32
    builder: Bytes32


class SignedOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """An order as signed, with the signing profile under which it was verified.

    `salt` and `token_id` are decimal strings, because both may exceed an integer of the journal.
    The `signer` is the address whose key signed: for a contract wallet it is the wallet's owner. The
    signature is normalized: r, s and v of 27 or 28, with more behind them for a contract wallet.
    An order of version 2 of the struct has `v2`. Its taker, nonce and fee rate are zero, and its
    expiration is not signed.
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
    v2: OrderV2Fields | None = None

    @property
    def struct_version(self) -> int:
        """The version of the struct that was signed."""
        return 1 if self.v2 is None else 2

    @property
    def size_units(self) -> int:
        """The token units that the order asks for or offers."""
        return self.taker_amount if self.side is _BUY else self.maker_amount

    @property
    def collateral_units(self) -> int:
        """The collateral units that the order offers or asks for."""
        return self.maker_amount if self.side is _BUY else self.taker_amount


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
    if order.v2 is None and order.fee_rate_bps != rules.fee_rate_bps:
        raise InvalidFeeRate(order.fee_rate_bps, rules.fee_rate_bps)
    price_ticks = _price_ticks(order, order_type, rules.ticks_per_one, order_id)
    is_budgeted = has_budget(order.side, order_type)
    if order_type.may_rest:
        if order.size_units < rules.size_units_min:
            raise SizeBelowMinimum(order_id, order.size_units, rules.size_units_min)
    elif is_budgeted and order.collateral_units < BUDGET_UNITS_MIN and rules.size_units_min:
        raise BudgetBelowMinimum(order_id, order.collateral_units, BUDGET_UNITS_MIN)
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


def check_expiration(order: SignedOrder, now_s: int, *, is_engine: bool = False) -> None:
    """Refuse an order that expires too soon to settle, by a clock or by the time of the engine.

    A clock that was ahead and is corrected is behind the engine's time for a while.
    """
    if order.expiration_s and order.expiration_s <= now_s + EXPIRATION_MARGIN_S:
        clock = "the matching engine's time, which never goes back, is" if is_engine else "it is"
        raise InvalidExpiration(
            f"{clock} {now_s}, and the expiration must be later than {now_s + EXPIRATION_MARGIN_S}"
        )


def leaves_book_at_s(order: SignedOrder) -> int | None:
    """Return the second at which the order expires in the book, None if it does not."""
    return order.expiration_s - EXPIRATION_MARGIN_S if order.expiration_s else None


class OrderStatus(enum.StrEnum):
    """The status of an order."""

    LIVE = "LIVE"
    MATCHED = "MATCHED"
    CANCELED = "CANCELED"
    DELAYED = "DELAYED"


class OrderTrigger(enum.StrEnum):
    """The triggers that change the status of an order."""

    FILL_PART = "fill_part"
    FILL_ALL = "fill_all"
    CLOSE_DUST = "close_dust"
    CANCEL = "cancel"
    RELEASE = "release"


ORDER_TRANSITIONS: Final[Mapping[tuple[OrderStatus, OrderTrigger], OrderStatus]] = MappingProxyType(
    {
        (OrderStatus.LIVE, OrderTrigger.FILL_PART): OrderStatus.LIVE,
        (OrderStatus.LIVE, OrderTrigger.FILL_ALL): OrderStatus.MATCHED,
        (OrderStatus.LIVE, OrderTrigger.CLOSE_DUST): OrderStatus.MATCHED,
        (OrderStatus.LIVE, OrderTrigger.CANCEL): OrderStatus.CANCELED,
        (OrderStatus.DELAYED, OrderTrigger.RELEASE): OrderStatus.LIVE,
        (OrderStatus.DELAYED, OrderTrigger.FILL_ALL): OrderStatus.MATCHED,
        (OrderStatus.DELAYED, OrderTrigger.CLOSE_DUST): OrderStatus.MATCHED,
        (OrderStatus.DELAYED, OrderTrigger.CANCEL): OrderStatus.CANCELED,
    }
)


def advance_order(status: OrderStatus, trigger: OrderTrigger) -> OrderStatus:
    """Return the next status, or refuse."""
    try:
        return ORDER_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("order", status, trigger) from None
