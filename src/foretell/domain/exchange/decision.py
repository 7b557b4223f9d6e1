"""Decisions: what a command did, in a compact form of which its effects are made.

The engine keeps and publishes a decision for every command; books and streams read it as it is. The
effects in it are made only when someone reads them: `effects_of` needs the command and the decision
alone, so another process that has both can make them too. All of a decision is encodable with
MessagePack; none is ever stored.

A level is given by its rank, see `book.py`: on the bid side the price of yes, on the ask side that
of no.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, assert_never

import msgspec

from foretell.domain.exchange.book import Book, Level, LevelSize
from foretell.domain.exchange.commands import CancelOrders, Command, PlaceOrder
from foretell.domain.exchange.effects import (
    BookChanged,
    CloseReason,
    Effect,
    LevelChange,
    LevelTotal,
    OrderClosed,
    OrderFilled,
    OrderPlaced,
    TradeMatched,
)
from foretell.domain.exchange.ledger import LiveOrder
from foretell.domain.exchange.order import OrderStatus, OrderTrigger, advance_order
from foretell.domain.exchange.trade import Trade
from foretell.domain.values.hexadecimal import Address, Bytes32

_LIVE: Final = OrderStatus.LIVE
_FILLED_PART: Final = advance_order(_LIVE, OrderTrigger.FILL_PART)
_FILLED_ALL: Final = advance_order(_LIVE, OrderTrigger.FILL_ALL)
_CLOSED_AS_DUST: Final = advance_order(_LIVE, OrderTrigger.CLOSE_DUST)
_CANCELED: Final = advance_order(_LIVE, OrderTrigger.CANCEL)
_MATCHED_AT_ONCE: Final = OrderStatus.MATCHED


class ChangedLevels(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The levels of a book that a command changed, and its best ranks after the command.

    A level is whether it is of the bids, its rank, and its new size. A rank of zero means that the
    side is empty.
    """

    condition_id: Bytes32
    ticks_per_one: int
    best_bid_rank: int
    best_ask_rank: int
    levels: tuple[tuple[bool, int, int], ...]

    @property
    def best_bid_ticks(self) -> int | None:
        """The best bid as a price of yes."""
        return self.best_bid_rank or None

    @property
    def best_ask_ticks(self) -> int | None:
        """The best ask as a price of yes."""
        return self.ticks_per_one - self.best_ask_rank if self.best_ask_rank else None

    @property
    def level_changes(self) -> list[LevelTotal]:
        """The new size of each level, at its price."""
        ticks_per_one = self.ticks_per_one
        return [
            (is_bid, rank if is_bid else ticks_per_one - rank, size_units)
            for is_bid, rank, size_units in self.levels
        ]


class ClosedOrder(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A resting order that left its book, with what remained of it."""

    order_id: Bytes32
    condition_id: Bytes32
    owner: str
    maker: Address
    size_units: int
    remaining_units: int


class Placed(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="placed"):
    """An order was placed.

    `size_units` is its size, or with a budget the size that it bought; `cost_units` is the
    collateral that it paid or received for the units that it matched. `makers` has the size of each
    maker order, and what remained of it after its fill, for the fills of all trades. Orders of the
    same wallet left the book before the trades, orders with less than a lot after them.
    """

    size_units: int
    matched_units: int
    cost_units: int
    close_reason: CloseReason | None
    changed: ChangedLevels | None
    trades: Sequence[Trade] = ()
    makers: Sequence[tuple[int, int]] = ()
    own_orders: Sequence[ClosedOrder] = ()
    dust_orders: Sequence[ClosedOrder] = ()
    is_delayed: bool = False

    @property
    def status(self) -> OrderStatus:
        """The status of the order: it rests, or is delayed, if nothing closed it.

        A release that finds nothing to match ends an order without any fill.
        """
        if self.close_reason is None:
            return OrderStatus.DELAYED if self.is_delayed else _LIVE
        is_ended = self.matched_units == 0 and self.close_reason is not CloseReason.DUST
        return _CANCELED if is_ended else _MATCHED_AT_ONCE


class Canceled(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="canceled"):
    """Orders were canceled; the others of the command were not found, or are of other signers."""

    orders: Sequence[ClosedOrder]
    changed: Sequence[ChangedLevels]


class Done(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="done"):
    """A command of another kind had these effects: most are rare, and small already."""

    effects: Sequence[Effect]


Decision = Placed | Canceled | Done
BookChange = ChangedLevels | BookChanged
"""Both name the same levels: in a decision, and among the effects of a `Done`."""


def effects_of(command: Command, decision: Decision) -> list[Effect]:
    """Return the effects of a command, in the order in which they happened."""
    match decision:
        case Placed():
            assert isinstance(command, PlaceOrder)
            return _effects_of_placing(command, decision)
        case Canceled():
            assert isinstance(command, CancelOrders)
            reason, at_ms = CloseReason.CANCELED, command.at_ms
            closed = [order_closed(order, reason, at_ms) for order in decision.orders]
            return [*closed, *[book_changed(each, at_ms) for each in decision.changed]]
        case Done():
            return list(decision.effects)
        case _:
            assert_never(decision)


def _effects_of_placing(command: PlaceOrder, placed: Placed) -> list[Effect]:
    at_ms = command.at_ms
    effects: list[Effect] = [
        OrderPlaced(
            command, placed.size_units, placed.matched_units, placed.status, placed.close_reason
        ),
        *[order_closed(own, CloseReason.SELF_TRADE, at_ms) for own in placed.own_orders],
    ]
    for trade, filled in trades_of(placed, at_ms):
        effects += (TradeMatched(trade), *filled)
    effects += [order_closed(dusty, CloseReason.DUST, at_ms) for dusty in placed.dust_orders]
    if placed.changed is not None:
        effects.append(book_changed(placed.changed, at_ms))
    return effects


def trades_of(placed: Placed, at_ms: int) -> Iterator[tuple[Trade, list[OrderFilled]]]:
    """Yield the trades of an order, each with the effects on its maker orders."""
    makers = iter(placed.makers)
    for trade in placed.trades:
        yield (
            trade,
            [
                OrderFilled(
                    fill.maker_order_id,
                    trade.condition_id,
                    fill.owner,
                    size_units,
                    remaining_units,
                    _FILLED_PART if remaining_units else _FILLED_ALL,
                    at_ms,
                    trade.trade_id,
                )
                for fill, (size_units, remaining_units) in zip(trade.fills, makers, strict=False)
            ],
        )


def order_closed(order: ClosedOrder, reason: CloseReason, at_ms: int) -> OrderClosed:
    """Return the effect of an order that left its book."""
    return OrderClosed(
        order.order_id,
        order.condition_id,
        order.owner,
        order.maker,
        order.size_units,
        order.remaining_units,
        _CLOSED_AS_DUST if reason is CloseReason.DUST else _CANCELED,
        reason,
        at_ms,
    )


def book_changed(changed: ChangedLevels, at_ms: int) -> BookChanged:
    """Return the effect of changed levels, in prices of yes."""
    levels = [
        LevelChange(is_bid, LevelSize(price_ticks, size_units))
        for is_bid, price_ticks, size_units in changed.level_changes
    ]
    return BookChanged(
        condition_id=changed.condition_id,
        changes=tuple(levels),
        best_bid_ticks=changed.best_bid_ticks,
        best_ask_ticks=changed.best_ask_ticks,
        ticks_per_one=changed.ticks_per_one,
        at_ms=at_ms,
    )


def changed_level(
    condition_id: Bytes32, book: Book[LiveOrder], level: Level[LiveOrder]
) -> ChangedLevels:
    """Return a level of a book as it is now."""
    bids = book.bids
    return ChangedLevels(
        condition_id,
        book.ticks_per_one,
        bids.best_rank,
        book.asks.best_rank,
        ((level.side is bids, level.rank, level.size_units),),
    )


def changed_levels(
    condition_id: Bytes32, book: Book[LiveOrder], levels: Iterable[Level[LiveOrder]]
) -> ChangedLevels:
    """Return levels of a book as they are now."""
    bids = book.bids
    return ChangedLevels(
        condition_id,
        book.ticks_per_one,
        bids.best_rank,
        book.asks.best_rank,
        tuple([(level.side is bids, level.rank, level.size_units) for level in levels]),
    )


def emptied_levels(condition_id: Bytes32, book: Book[LiveOrder]) -> ChangedLevels:
    """Return all levels of a book as they are without their orders."""
    sides = ((True, book.bids), (False, book.asks))
    levels = [(is_bid, level.rank, 0) for is_bid, side in sides for level in side.usedlevels()]
    return ChangedLevels(condition_id, book.ticks_per_one, 0, 0, tuple(levels))


def closed_order(order: LiveOrder) -> ClosedOrder:
    """Return what effects need of an order that left its book."""
    return ClosedOrder(
        order.order_id,
        order.condition_id,
        order.owner,
        order.account.wallet.address,
        order.size_units,
        order.remaining_units,
    )
