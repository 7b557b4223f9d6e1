"""The engine's state, and the few moves that every command is made of.

`fold.py` applies commands to it; nothing else changes it. It asks nothing of the world, so a replay
of the journal ends in the same state.
"""

import heapq

import msgspec

from foretell.domain.amounts import reserve_units
from foretell.domain.book import Book, LevelSize, LiveOrder
from foretell.domain.commands import ObserveChain, OpenMarket
from foretell.domain.effects import BookChanged, CloseReason, LevelChange, OrderClosed
from foretell.domain.hexadecimal import ZERO_BYTES32, Address, Bytes32
from foretell.domain.ledger import COLLATERAL, AssetId, Ledger
from foretell.domain.order import (
    OrderStatus,
    OrderTrigger,
    OrderType,
    Side,
    SignedOrder,
    advance_order,
)
from foretell.domain.slices import Slices
from foretell.domain.trade import Trade, TradeStatus

Move = tuple[Address, AssetId, int]
"""What a trade adds to an account, or takes below zero, once it is on the chain."""


class Market:
    """A market that trades or did."""

    __slots__ = ("book", "is_open", "last_price_ticks", "last_side", "opened", "touched")

    def __init__(self, opened: OpenMarket) -> None:
        self.opened = opened
        self.book = Book(opened.rules.ticks_per_one)
        self.is_open = True
        self.last_price_ticks: int | None = None
        self.last_side: Side | None = None
        self.touched: dict[tuple[bool, int], None] = {}

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.opened.token_yes if is_yes else self.opened.token_no

    def asset_given(self, side: Side, *, is_yes: bool) -> AssetId:
        """Return what an order of this side pays with."""
        return COLLATERAL if side is Side.BUY else self.token(is_yes=is_yes)


class Placement(msgspec.Struct, frozen=True):
    """What became of a placed order at once.

    `making_units` and `taking_units` are what was matched, in base units of what it gives and gets.
    """

    order_id: Bytes32
    owner: str
    order_type: OrderType
    status: OrderStatus
    making_units: int
    taking_units: int
    trade_ids: tuple[str, ...]


class UnsettledTrade(msgspec.Struct):
    """A trade whose movements the chain does not hold for good.

    `order` is its taker's, which `spends` a budget or trades a size.
    """

    trade: Trade
    order: SignedOrder
    spends: bool
    status: TradeStatus
    tx_hash: str
    moves: tuple[Move, ...]


class State:
    """Books, ledger, live orders and unsettled trades."""

    __slots__ = (
        "_expiries",
        "_touched",
        "canceled_orders",
        "ledger",
        "live_orders",
        "maker_nonces",
        "market_by_id",
        "observed_block",
        "observed_hash",
        "observed_parts",
        "placement_by_order",
        "slices",
        "unsettled_trades",
    )

    def __init__(self) -> None:
        self.ledger = Ledger()
        self.market_by_id: dict[Bytes32, Market] = {}
        self.live_orders: dict[Bytes32, LiveOrder] = {}
        self.placement_by_order: dict[Bytes32, Placement] = {}
        self.unsettled_trades: dict[str, UnsettledTrade] = {}
        self.observed_block = 0
        self.observed_hash = ZERO_BYTES32
        self.observed_parts: list[ObserveChain] = []
        self.slices = Slices()
        self.canceled_orders: set[tuple[Address, Bytes32]] = set()
        """What was canceled at an exchange before anybody placed it here."""
        self.maker_nonces: dict[tuple[Address, Address], int] = {}
        """The nonce at an exchange of each maker that ever raised it."""
        self._expiries: list[tuple[int, Bytes32]] = []
        self._touched: dict[Bytes32, None] = {}

    def next_expiry_s(self) -> int | None:
        """Return when the next live order leaves the book by itself."""
        while self._expiries and self._expiries[0][1] not in self.live_orders:
            heapq.heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    def due_orders(self, now_s: int) -> list[LiveOrder]:
        """Return the live orders whose time has come, the earliest first."""
        due = []
        while (expiry := self.next_expiry_s()) is not None and expiry <= now_s:
            due.append(self.live_orders[heapq.heappop(self._expiries)[1]])
        return due

    def rest(self, order: LiveOrder) -> None:
        """Put an order into its book and set aside what it may cost."""
        market = self.market_by_id[order.condition_id]
        market.book.add(order)
        self.live_orders[order.order_id] = order
        self.ledger.reserve(order, self._asset(order), self._reserved(order))
        if order.leaves_at_s is not None:
            heapq.heappush(self._expiries, (order.leaves_at_s, order.order_id))
        self._touch(market, order)

    def fill(self, order: LiveOrder, units: int) -> OrderStatus:
        """Take a fill off a resting order; one that is filled whole leaves the book."""
        market = self.market_by_id[order.condition_id]
        before = self._reserved(order)
        is_closed = units == order.remaining_units
        if is_closed:
            market.book.remove(order)
            order.remaining_units = 0
            del self.live_orders[order.order_id]
        else:
            market.book.reduce(order, units)
        released = before - self._reserved(order)
        self.ledger.release(order, self._asset(order), released, is_closed=is_closed)
        self._touch(market, order)
        trigger = OrderTrigger.FILL_ALL if is_closed else OrderTrigger.FILL_PART
        return advance_order(OrderStatus.LIVE, trigger)

    def close(self, order: LiveOrder, reason: CloseReason, at_ms: int) -> OrderClosed:
        """Take a resting order out of its book and give back what it reserved."""
        market = self.market_by_id[order.condition_id]
        market.book.remove(order)
        del self.live_orders[order.order_id]
        self.ledger.release(order, self._asset(order), self._reserved(order), is_closed=True)
        self._touch(market, order)
        is_dust = reason is CloseReason.DUST
        trigger = OrderTrigger.CLOSE_DUST if is_dust else OrderTrigger.CANCEL
        return OrderClosed(
            order_id=order.order_id,
            condition_id=order.condition_id,
            owner=order.owner,
            maker=order.maker,
            size_units=order.size_units,
            remaining_units=order.remaining_units,
            status=advance_order(OrderStatus.LIVE, trigger),
            reason=reason,
            at_ms=at_ms,
        )

    def book_changes(self, at_ms: int) -> list[BookChanged]:
        """Return, once, the levels that the present command touched, market by market."""
        touched, self._touched = self._touched, {}
        return [_book_changed(self.market_by_id[condition], at_ms) for condition in touched]

    def _touch(self, market: Market, order: LiveOrder) -> None:
        market.touched[order.is_bid, order.yes_price_ticks] = None
        self._touched[order.condition_id] = None

    def _asset(self, order: LiveOrder) -> AssetId:
        market = self.market_by_id[order.condition_id]
        return market.asset_given(order.side, is_yes=order.is_yes)

    def _reserved(self, order: LiveOrder) -> int:
        if order.side is Side.SELL:
            return order.remaining_units
        ticks_per_one = self.market_by_id[order.condition_id].book.ticks_per_one
        return reserve_units(order.remaining_units, order.price_ticks, ticks_per_one)


def trade_moves(market: Market, trade: Trade) -> tuple[Move, ...]:
    """Return what a trade moves, the makers' parts first."""
    moves: list[Move] = []
    for fill in trade.fills:
        token = market.token(is_yes=fill.is_yes)
        given, taken = (COLLATERAL, token) if fill.side is Side.BUY else (token, COLLATERAL)
        moves += [(fill.maker, given, -fill.making_units), (fill.maker, taken, fill.taking_units)]
    sign = 1 if trade.side is Side.BUY else -1
    token = market.token(is_yes=trade.is_yes)
    return (
        *moves,
        (trade.taker, token, sign * trade.size_units),
        (trade.taker, COLLATERAL, -sign * trade.cost_units),
    )


def _book_changed(market: Market, at_ms: int) -> BookChanged:
    book = market.book
    changes = tuple(
        LevelChange(is_bid, LevelSize(price, book.size_at(price, is_bid=is_bid)))
        for is_bid, price in market.touched
    )
    market.touched.clear()
    return BookChanged(
        condition_id=market.opened.condition_id,
        changes=changes,
        best_bid_ticks=book.best_bid(),
        best_ask_ticks=book.best_ask(),
        ticks_per_one=book.ticks_per_one,
        at_ms=at_ms,
    )
