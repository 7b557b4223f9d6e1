"""The engine's state, and the operations that commands are made of.

Only the functions behind `apply` change it. They do no I/O and read no clock, so a replay of the
journal gives the same state.

An order is never placed twice. The placements of the newest orders are kept whole, so that a
repeated order receives its first placement. Of an older order the state keeps the 32 bytes of its
id, until its market is resolved or the order has expired, because then it is refused anyway.
"""

import heapq
from itertools import islice
from typing import Final

import msgspec

from foretell.domain.exchange.allocations import Allocations
from foretell.domain.exchange.book import Book, LevelSize, LiveOrder
from foretell.domain.exchange.commands import ObserveChain, OpenMarket
from foretell.domain.exchange.effects import BookChanged, CloseReason, LevelChange, OrderClosed
from foretell.domain.exchange.ledger import COLLATERAL, AssetId, Ledger, Move
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderTrigger,
    OrderType,
    Side,
    SignedOrder,
    advance_order,
)
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.amounts import reserve_units
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32, word_bytes

PLACEMENTS_KEPT_MAX: Final = 100_000
"""The number of placements kept whole; up to 1 % more wait for the next round of forgetting."""


_BUY: Final = Side.BUY
_FILLED_PART: Final = advance_order(OrderStatus.LIVE, OrderTrigger.FILL_PART)
_FILLED_ALL: Final = advance_order(OrderStatus.LIVE, OrderTrigger.FILL_ALL)
_CLOSED_AS_DUST: Final = advance_order(OrderStatus.LIVE, OrderTrigger.CLOSE_DUST)
_CANCELED: Final = advance_order(OrderStatus.LIVE, OrderTrigger.CANCEL)


class Market:
    """A market, open or resolved.

    `opened` is the command that opened it, `rules` are its present rules. `last_side` is what the
    last taker did in terms of yes. `forgotten_order_ids` are placed orders without a placement.
    """

    __slots__ = (
        "book",
        "changed_at_ms",
        "forgotten_order_ids",
        "is_open",
        "last_price_ticks",
        "last_side",
        "opened",
        "rules",
        "touched",
    )

    def __init__(self, opened: OpenMarket) -> None:
        self.opened = opened
        self.rules = opened.rules
        self.book = Book(opened.rules.ticks_per_one)
        self.is_open = True
        self.last_price_ticks: int | None = None
        self.last_side: Side | None = None
        self.changed_at_ms = opened.at_ms
        self.forgotten_order_ids: set[bytes] = set()
        self.touched: dict[tuple[bool, int], None] = {}

    def reserved_units(self, order: LiveOrder) -> int:
        """Return what a resting order reserves of the asset that it gives."""
        if order.side is _BUY:
            return reserve_units(order.remaining_units, order.price_ticks, self.book.ticks_per_one)
        return order.remaining_units

    def was_placed(self, order_id: Bytes32) -> bool:
        """Return whether the order was placed here and its placement is forgotten."""
        return bool(self.forgotten_order_ids) and word_bytes(order_id) in self.forgotten_order_ids

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.opened.token(is_yes=is_yes)

    def asset_given(self, side: Side, *, is_yes: bool) -> AssetId:
        """Return the asset that an order of this side gives."""
        if side is _BUY:
            return COLLATERAL
        return self.opened.token(is_yes=is_yes)

    def change_tick(self, ticks_per_one: int) -> None:
        """Count all prices in finer ticks; none of them changes."""
        factor, rest = divmod(ticks_per_one, self.rules.ticks_per_one)
        assert rest == 0, "a tick only becomes finer"
        self.rules = msgspec.structs.replace(self.rules, ticks_per_one=ticks_per_one)
        self.book.change_tick(ticks_per_one)
        if self.last_price_ticks is not None:
            self.last_price_ticks *= factor


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """The immediate outcome of a placed order.

    `making_units` and `taking_units` are the matched amounts of the assets that it gives and
    receives, in base units.
    """

    order_id: Bytes32
    condition_id: Bytes32
    owner: str
    order_type: OrderType
    leaves_at_s: int | None
    status: OrderStatus
    making_units: int
    taking_units: int
    trade_ids: tuple[str, ...]


class UnsettledTrade(msgspec.Struct, array_like=True):
    """A trade that is not confirmed on the chain and has not failed.

    `order` is the taker's order; `has_budget` says whether it spends a budget or trades a size.
    `signer_by_order` has the signers of all its orders.
    """

    trade: Trade
    order: SignedOrder
    has_budget: bool
    status: TradeStatus
    tx_hash: str
    moves: tuple[Move, ...]
    signer_by_order: dict[Bytes32, Address]


class State:
    """Books, ledger, live orders and unsettled trades."""

    __slots__ = (
        "_expiries",
        "_placements_forgotten_above",
        "_placements_kept_max",
        "_touched",
        "allocations",
        "canceled_orders",
        "exchanges",
        "latest_ms",
        "ledger",
        "live_orders",
        "maker_nonces",
        "market_by_id",
        "observed_block",
        "observed_hash",
        "observed_parts",
        "placement_by_order",
        "tracks_book_changes",
        "unsettled_trades",
    )

    def __init__(self, placements_kept_max: int = PLACEMENTS_KEPT_MAX) -> None:
        self._placements_kept_max = placements_kept_max
        self._placements_forgotten_above = placements_kept_max + 1 + placements_kept_max // 100
        self.latest_ms = 0
        self.ledger = Ledger()
        self.market_by_id: dict[Bytes32, Market] = {}
        self.exchanges: dict[Address, None] = {}
        """The exchanges of all markets, in the order of their first market."""
        self.live_orders: dict[Bytes32, LiveOrder] = {}
        self.placement_by_order: dict[Bytes32, Placement] = {}
        self.unsettled_trades: dict[str, UnsettledTrade] = {}
        self.observed_block = 0
        self.observed_hash = ZERO_BYTES32
        self.observed_parts: list[ObserveChain] = []
        self.allocations = Allocations()
        self.canceled_orders: set[tuple[Address, Bytes32]] = set()
        """Orders that were canceled at an exchange before they were placed here."""
        self.maker_nonces: dict[tuple[Address, Address], int] = {}
        """The nonces of makers that raised them, by exchange and maker."""
        self.tracks_book_changes = True
        """Whether commands return changes of books; a replay without subscribers needs none."""
        self._expiries: list[tuple[int, Bytes32]] = []
        self._touched: dict[Bytes32, None] = {}

    def add(self, market: Market) -> None:
        """Add a new market."""
        assert market.opened.condition_id not in self.market_by_id
        self.market_by_id[market.opened.condition_id] = market
        self.exchanges[market.opened.exchange] = None

    def next_expiry_s(self) -> int | None:
        """Return the time at which the next live order expires, in seconds."""
        while self._expiries and self._expiries[0][1] not in self.live_orders:
            heapq.heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    def due_orders(self, now_s: int) -> list[LiveOrder]:
        """Return the live orders that have expired, the earliest first."""
        due = []
        while (expiry := self.next_expiry_s()) is not None and expiry <= now_s:
            due.append(self.live_orders[heapq.heappop(self._expiries)[1]])
        return due

    def remember(self, placement: Placement) -> None:
        """Keep a placement, and forget the oldest ones when there are too many."""
        kept = self.placement_by_order
        assert placement.order_id not in kept, "an order is placed once"
        kept[placement.order_id] = placement
        if len(kept) > self._placements_forgotten_above:
            at_once = self._placements_forgotten_above - self._placements_kept_max
            for oldest in list(islice(kept, at_once)):
                self._forget(kept.pop(oldest))

    def end(self, market: Market, at_ms: int) -> None:
        """End a market's trading: a repeated order of it is refused for that."""
        assert market.is_open
        market.is_open = False
        market.changed_at_ms = at_ms
        market.forgotten_order_ids.clear()

    def _forget(self, placement: Placement) -> None:
        market, leaves_at_s = self.market_by_id[placement.condition_id], placement.leaves_at_s
        is_over = leaves_at_s is not None and leaves_at_s * 1000 <= self.latest_ms
        if market.is_open and not is_over:
            market.forgotten_order_ids.add(word_bytes(placement.order_id))

    def rest(self, order: LiveOrder) -> None:
        """Add an order to its book and reserve what it may cost."""
        market = self.market_by_id[order.condition_id]
        assert 0 < order.remaining_units <= order.size_units
        market.book.add(order)
        self.live_orders[order.order_id] = order
        asset = market.asset_given(order.side, is_yes=order.is_yes)
        self.ledger.reserve(order, asset, market.reserved_units(order))
        if order.leaves_at_s is not None:
            heapq.heappush(self._expiries, (order.leaves_at_s, order.order_id))
        self._touch(market, order)

    def fill(self, order: LiveOrder, units: int) -> OrderStatus:
        """Fill a resting order by some units; an order that is filled whole leaves the book."""
        assert 0 < units <= order.remaining_units, "filled <= size"
        market = self.market_by_id[order.condition_id]
        released = market.reserved_units(order)
        is_closed = units == order.remaining_units
        if is_closed:
            market.book.remove(order)
            order.remaining_units = 0
            del self.live_orders[order.order_id]
        else:
            market.book.reduce(order, units)
            released -= market.reserved_units(order)
        asset = market.asset_given(order.side, is_yes=order.is_yes)
        self.ledger.release(order, asset, released, is_closed=is_closed)
        self._touch(market, order)
        return _FILLED_ALL if is_closed else _FILLED_PART

    def close(self, order: LiveOrder, reason: CloseReason, at_ms: int) -> OrderClosed:
        """Remove a resting order from its book and release what it reserved."""
        market = self.market_by_id[order.condition_id]
        market.book.remove(order)
        del self.live_orders[order.order_id]
        asset = market.asset_given(order.side, is_yes=order.is_yes)
        self.ledger.release(order, asset, market.reserved_units(order), is_closed=True)
        self._touch(market, order)
        return OrderClosed(
            order_id=order.order_id,
            condition_id=order.condition_id,
            owner=order.owner,
            maker=order.maker,
            size_units=order.size_units,
            remaining_units=order.remaining_units,
            status=_CLOSED_AS_DUST if reason is CloseReason.DUST else _CANCELED,
            reason=reason,
            at_ms=at_ms,
        )

    def book_changes(self, at_ms: int) -> list[BookChanged]:
        """Return the levels that the present command changed, by market, and forget them."""
        touched = self._touched
        if not touched:
            return []
        self._touched = {}
        markets = [self.market_by_id[condition] for condition in touched]
        for market in markets:
            market.changed_at_ms = at_ms
        if self.tracks_book_changes:
            return [_book_changed(market, at_ms) for market in markets]
        for market in markets:
            market.touched.clear()
        return []

    def settle_touches(self) -> None:
        """Forget the changed levels without returning them."""
        for condition in self._touched:
            self.market_by_id[condition].touched.clear()
        self._touched.clear()

    def _touch(self, market: Market, order: LiveOrder) -> None:
        market.touched[order.is_bid, order.yes_price_ticks] = None
        self._touched[order.condition_id] = None


def trade_moves(market: Market, trade: Trade) -> tuple[Move, ...]:
    """Return the moves of a trade, those of the makers first."""
    moves: list[Move] = []
    for fill in trade.fills:
        token = market.token(is_yes=fill.is_yes)
        given, taken = (COLLATERAL, token) if fill.side is _BUY else (token, COLLATERAL)
        moves += [(fill.maker, given, -fill.making_units), (fill.maker, taken, fill.taking_units)]
    sign = 1 if trade.side is _BUY else -1
    token = market.token(is_yes=trade.is_yes)
    return (
        *moves,
        (trade.taker, token, sign * trade.size_units),
        (trade.taker, COLLATERAL, -sign * trade.cost_units),
    )


def _book_changed(market: Market, at_ms: int) -> BookChanged:
    book = market.book
    changes = tuple(
        [
            LevelChange(is_bid, LevelSize(price, book.size_at(price, is_bid=is_bid)))
            for is_bid, price in market.touched
        ]
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
