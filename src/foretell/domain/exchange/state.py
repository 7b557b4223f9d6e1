"""The engine's state, and the few moves that every command is made of.

`fold.py` applies commands to it; nothing else changes it. It asks nothing of the world, so a replay
of the journal ends in the same state.

An order is never placed twice. What became of the newest orders is remembered whole, so that one
that is sent again gets its first answer; of an older one its 32 bytes of id alone, until its market
is resolved or its expiration is over, since from then on it is refused for that.
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
"""How many of the newest placements are remembered whole, besides those of one round of forgetting."""


_BUY: Final = Side.BUY
_FILLED_PART: Final = advance_order(OrderStatus.LIVE, OrderTrigger.FILL_PART)
_FILLED_ALL: Final = advance_order(OrderStatus.LIVE, OrderTrigger.FILL_ALL)
_CLOSED_AS_DUST: Final = advance_order(OrderStatus.LIVE, OrderTrigger.CLOSE_DUST)
_CANCELED: Final = advance_order(OrderStatus.LIVE, OrderTrigger.CANCEL)


class Market:
    """A market that trades or did.

    `opened` is how it was opened, `rules` what it asks of orders now. `last_side` is what the last
    taker did with yes; `forgotten_order_ids` are the orders that were placed and whose placements are
    forgotten.
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
        """Return what a resting order sets aside of what it gives."""
        if order.side is _BUY:
            return reserve_units(order.remaining_units, order.price_ticks, self.book.ticks_per_one)
        return order.remaining_units

    def was_placed(self, order_id: Bytes32) -> bool:
        """Return whether an order was placed here whose placement is forgotten."""
        return bool(self.forgotten_order_ids) and word_bytes(order_id) in self.forgotten_order_ids

    def token(self, *, is_yes: bool) -> AssetId:
        """Return the token of one outcome."""
        return self.opened.token_yes if is_yes else self.opened.token_no

    def asset_given(self, side: Side, *, is_yes: bool) -> AssetId:
        """Return what an order of this side pays with."""
        if side is _BUY:
            return COLLATERAL
        return self.opened.token_yes if is_yes else self.opened.token_no

    def change_tick(self, ticks_per_one: int) -> None:
        """Tell all prices in finer ticks from now on; none of them changes."""
        factor = ticks_per_one // self.rules.ticks_per_one
        self.rules = msgspec.structs.replace(self.rules, ticks_per_one=ticks_per_one)
        self.book.change_tick(ticks_per_one)
        if self.last_price_ticks is not None:
            self.last_price_ticks *= factor


class Placement(msgspec.Struct, frozen=True, array_like=True):
    """What became of a placed order at once.

    `making_units` and `taking_units` are what was matched, in base units of what it gives and gets.
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
    """A trade whose movements the chain does not hold for good.

    `order` is its taker's, which `has_budget` a budget or trades a size; `signer_by_order` are those
    who signed the orders that met.
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
        """Where the markets that were ever opened settle."""
        self.live_orders: dict[Bytes32, LiveOrder] = {}
        self.placement_by_order: dict[Bytes32, Placement] = {}
        self.unsettled_trades: dict[str, UnsettledTrade] = {}
        self.observed_block = 0
        self.observed_hash = ZERO_BYTES32
        self.observed_parts: list[ObserveChain] = []
        self.allocations = Allocations()
        self.canceled_orders: set[tuple[Address, Bytes32]] = set()
        """What was canceled at an exchange before anybody placed it here."""
        self.maker_nonces: dict[tuple[Address, Address], int] = {}
        """The nonce at an exchange of each maker that ever raised it."""
        self.tracks_book_changes = True
        """Whether commands tell what they changed in the books: a replay that nobody hears need not."""
        self._expiries: list[tuple[int, Bytes32]] = []
        self._touched: dict[Bytes32, None] = {}

    def add(self, market: Market) -> None:
        """Take a market that nobody has heard of."""
        self.market_by_id[market.opened.condition_id] = market
        self.exchanges[market.opened.exchange] = None

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

    def remember(self, placement: Placement) -> None:
        """Keep what became of an order, and forget the oldest when there are too many."""
        kept = self.placement_by_order
        kept[placement.order_id] = placement
        if len(kept) > self._placements_forgotten_above:
            at_once = self._placements_forgotten_above - self._placements_kept_max
            for oldest in list(islice(kept, at_once)):
                self._forget(kept.pop(oldest))

    def end(self, market: Market, at_ms: int) -> None:
        """End a market's trading: whoever sends an order of it again is refused for that."""
        market.is_open = False
        market.changed_at_ms = at_ms
        market.forgotten_order_ids.clear()

    def _forget(self, placement: Placement) -> None:
        market, leaves_at_s = self.market_by_id[placement.condition_id], placement.leaves_at_s
        is_over = leaves_at_s is not None and leaves_at_s * 1000 <= self.latest_ms
        if market.is_open and not is_over:
            market.forgotten_order_ids.add(word_bytes(placement.order_id))

    def rest(self, order: LiveOrder) -> None:
        """Put an order into its book and set aside what it may cost."""
        market = self.market_by_id[order.condition_id]
        market.book.add(order)
        self.live_orders[order.order_id] = order
        asset = market.asset_given(order.side, is_yes=order.is_yes)
        self.ledger.reserve(order, asset, market.reserved_units(order))
        if order.leaves_at_s is not None:
            heapq.heappush(self._expiries, (order.leaves_at_s, order.order_id))
        self._touch(market, order)

    def fill(self, order: LiveOrder, units: int) -> OrderStatus:
        """Take a fill off a resting order; one that is filled whole leaves the book."""
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
        """Take a resting order out of its book and give back what it reserved."""
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
        """Return, once, the levels that the present command touched, market by market."""
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
        """Take the books as they are: nobody is to be told of what changed in them."""
        for condition in self._touched:
            self.market_by_id[condition].touched.clear()
        self._touched.clear()

    def _touch(self, market: Market, order: LiveOrder) -> None:
        market.touched[order.is_bid, order.yes_price_ticks] = None
        self._touched[order.condition_id] = None


def trade_moves(market: Market, trade: Trade) -> tuple[Move, ...]:
    """Return what a trade moves, the makers' parts first."""
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
