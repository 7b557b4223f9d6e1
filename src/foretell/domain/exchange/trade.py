"""Trades: the fills that one taker order matched at once, and the statuses of their settlement.

A trade settles in one transaction, so it has at most as many fills as the exchange contract takes
makers in a call. A taker that meets more orders has several trades.
"""

import enum
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.domain.errors.families import IllegalTransition
from foretell.domain.exchange.book import is_bid, price_in_yes
from foretell.domain.exchange.matching import Fill, taker_cost_units
from foretell.domain.exchange.order import Side, SignedOrder
from foretell.domain.values.hexadecimal import Address, Bytes32, keccak256, word_bytes

FILLS_PER_TRADE_MAX: Final = 20

_VARIANT_BY_DIGIT: Final = MappingProxyType(
    {digit: "89ab"[number % 4] for number, digit in enumerate("0123456789abcdef")}
)

_BUY: Final = Side.BUY
_SELL: Final = Side.SELL


class TradeStatus(enum.StrEnum):
    """The status of a trade's settlement."""

    MATCHED = "MATCHED"
    MINED = "MINED"
    CONFIRMED = "CONFIRMED"
    RETRYING = "RETRYING"
    FAILED = "FAILED"


PENDING: Final = (TradeStatus.MATCHED, TradeStatus.RETRYING)
"""The statuses in which the moves of a trade are not on the chain yet."""


class TradeTrigger(enum.StrEnum):
    """The triggers that change the status of a trade."""

    MINE = "mine"
    CONFIRM = "confirm"
    RETRY = "retry"
    FAIL = "fail"


TRADE_TRANSITIONS: Final[Mapping[tuple[TradeStatus, TradeTrigger], TradeStatus]] = MappingProxyType(
    {
        (TradeStatus.MATCHED, TradeTrigger.MINE): TradeStatus.MINED,
        (TradeStatus.MATCHED, TradeTrigger.RETRY): TradeStatus.RETRYING,
        (TradeStatus.MATCHED, TradeTrigger.FAIL): TradeStatus.FAILED,
        (TradeStatus.RETRYING, TradeTrigger.MINE): TradeStatus.MINED,
        (TradeStatus.RETRYING, TradeTrigger.FAIL): TradeStatus.FAILED,
        (TradeStatus.RETRYING, TradeTrigger.RETRY): TradeStatus.RETRYING,
        (TradeStatus.MINED, TradeTrigger.CONFIRM): TradeStatus.CONFIRMED,
        (TradeStatus.MINED, TradeTrigger.RETRY): TradeStatus.RETRYING,
    }
)


TRADE_PATHS: Final[Mapping[tuple[TradeStatus, TradeStatus], tuple[TradeTrigger, ...]]] = (
    MappingProxyType(
        {
            (TradeStatus.MATCHED, TradeStatus.CONFIRMED): (TradeTrigger.MINE, TradeTrigger.CONFIRM),
            (TradeStatus.RETRYING, TradeStatus.CONFIRMED): (
                TradeTrigger.MINE,
                TradeTrigger.CONFIRM,
            ),
            (TradeStatus.MINED, TradeStatus.MINED): (TradeTrigger.RETRY, TradeTrigger.MINE),
            (TradeStatus.MINED, TradeStatus.FAILED): (TradeTrigger.RETRY, TradeTrigger.FAIL),
        }
    )
)
"""Paths of several steps, for an observer that missed the statuses between."""


def advance_trade(status: TradeStatus, trigger: TradeTrigger) -> TradeStatus:
    """Return the next status, or refuse."""
    try:
        return TRADE_TRANSITIONS[status, trigger]
    except KeyError:
        raise IllegalTransition("trade", status, trigger) from None


def trade_path(status: TradeStatus, target: TradeStatus) -> tuple[TradeTrigger, ...]:
    """Return the triggers that lead from one status to another, empty when there is no path."""
    if (status, target) in TRADE_PATHS:
        return TRADE_PATHS[status, target]
    return tuple(
        trigger
        for (start, trigger), end in TRADE_TRANSITIONS.items()
        if (start, end) == (status, target)
    )


@cache
def trade_steps(status: TradeStatus, target: TradeStatus) -> tuple[TradeStatus, ...]:
    """Return the statuses on the path from one to another, empty when there is no path."""
    steps = []
    for trigger in trade_path(status, target):
        status = advance_trade(status, trigger)
        steps.append(status)
    return tuple(steps)


class Trade(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fills of a taker order, in base units.

    Prices of the fills count ticks of 1/`ticks_per_one`, also after the market's tick changes.
    `cost_units` is the collateral that the taker pays or receives for `size_units` of its token;
    `taker_fill_units` is what the exchange subtracts from the taker's order. `bucket_index` is the
    index of the trade among those of the order; a part of a split trade keeps it.
    """

    trade_id: str
    condition_id: Bytes32
    taker_order_id: Bytes32
    taker: Address
    taker_owner: str
    side: Side
    is_yes: bool
    size_units: int
    cost_units: int
    taker_fill_units: int
    matched_at_ms: int
    fills: tuple[Fill, ...]
    ticks_per_one: int
    bucket_index: int = 0


def trade_id_of(taker_order_id: Bytes32, index: int) -> str:
    """Return the id of an order's trade, a UUID that a replay computes again."""
    assert index >= 0
    return _uuid_of(b"trade" + word_bytes(taker_order_id) + index.to_bytes(4, "big"))


def part_id_of(trade_id: str, maker_order_id: Bytes32) -> str:
    """Return the id of a part of a trade, by its first fill: no fill leaves a trade twice."""
    return _uuid_of(b"part" + trade_id.encode() + word_bytes(maker_order_id))


def _uuid_of(name: bytes) -> str:
    """Return the first 16 bytes of the hash of a name as a UUID of version 4.

    Its version and variant are fixed bits.
    """
    digits = keccak256(name).hex()
    variant = _VARIANT_BY_DIGIT[digits[16]]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def taker_fill_units(
    order: SignedOrder, size_units: int, cost_units: int, *, has_budget: bool
) -> int:
    """Return the units of the taker's maker amount that a trade uses.

    A seller uses the tokens that it sells, an order with a budget the collateral that it pays. A
    buyer of a stated size uses that size at its own limit, rounded down: at least what it pays,
    because the cost is whole units and the price no worse.
    """
    assert size_units > 0
    if order.side is _SELL:
        return size_units
    if has_budget:
        return cost_units
    return size_units * order.maker_amount // order.taker_amount


def trade_with(
    trade: Trade, fills: tuple[Fill, ...], order: SignedOrder, *, has_budget: bool
) -> Trade:
    """Return the trade with only these fills; the order is its taker's."""
    assert fills, "a trade has fills"
    size, cost = sum(fill.size_units for fill in fills), total_cost_units(fills)
    return msgspec.structs.replace(
        trade,
        size_units=size,
        cost_units=cost,
        taker_fill_units=taker_fill_units(order, size, cost, has_budget=has_budget),
        fills=fills,
    )


class LastTrade(msgspec.Struct, frozen=True):
    """A market's last price in ticks of yes, and what its taker did in terms of yes."""

    price_ticks: int
    side: Side


def last_trade_of(trade: Trade) -> LastTrade:
    """Return the last price and side that a market has after a trade.

    The price is that of the last fill. A taker that buys no sells yes, so its side is SELL.
    """
    last = trade.fills[-1]
    assert 0 < last.price_ticks < trade.ticks_per_one
    is_buy = is_bid(trade.side, is_yes=trade.is_yes)
    return LastTrade(
        price_in_yes(last.price_ticks, trade.ticks_per_one, is_yes=last.is_yes),
        _BUY if is_buy else _SELL,
    )


def total_cost_units(fills: Sequence[Fill]) -> int:
    """Return the collateral that the taker pays or receives for all the fills."""
    return sum([taker_cost_units(fill) for fill in fills])
