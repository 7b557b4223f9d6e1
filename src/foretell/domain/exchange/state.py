"""The engine's state, and the operations that commands are made of.

Only the functions behind `apply` change it. They do no I/O and read no clock, so a replay of the
journal gives the same state.

An order is never placed twice. The placements of the newest orders are kept whole, so that a
repeated order receives its first placement. Of an older order the state keeps the 32 bytes of its
id, until its market is resolved or the order has expired, because then it is refused anyway.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

import msgspec

from foretell.domain.exchange.allocations import Allocations
from foretell.domain.exchange.book import Book, Level
from foretell.domain.exchange.commands import ObserveChain, OpenMarket
from foretell.domain.exchange.decision import (
    ChangedLevels,
    book_changed,
    changed_levels,
    closed_order,
    order_closed,
)
from foretell.domain.exchange.effects import BookChanged, CloseReason, OrderClosed
from foretell.domain.exchange.ledger import COLLATERAL, AssetId, Ledger, LiveOrder, Move
from foretell.domain.exchange.order import (
    OrderStatus,
    OrderType,
    Side,
    SignedOrder,
)
from foretell.domain.exchange.signing.stops import StopKind
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.exchange.trade_references import trade_order_ids
from foretell.domain.exchange.waiting.delays import Delays
from foretell.domain.values.hexadecimal import ZERO_BYTES32, Address, Bytes32, word_bytes

PLACEMENTS_KEPT_MAX: Final = 100_000
"""The number of placements kept whole; up to 1 % more wait for the next round of forgetting."""


_BUY: Final = Side.BUY


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
    )

    def __init__(self, opened: OpenMarket) -> None:
        self.opened = opened
        self.rules = opened.rules
        self.book: Book[LiveOrder] = Book(opened.rules.ticks_per_one)
        self.is_open = True
        self.last_price_ticks: int | None = None
        self.last_side: Side | None = None
        self.changed_at_ms = opened.at_ms
        self.forgotten_order_ids: set[bytes] = set()

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


class Placement(msgspec.Struct, frozen=True, array_like=True, gc=False):
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


class Placements(Mapping[Bytes32, Placement]):
    """The placements that are kept whole, by their orders, the oldest first.

    Of an order that came to rest unmatched the order itself is kept, since its placement can be made
    of it at any time: most orders are such, and hardly any is ever placed again.
    """

    __slots__ = ("_placed",)

    def __init__(self, placed: dict[Bytes32, Placement | LiveOrder]) -> None:
        self._placed = placed

    # mypy asks for `override`, which Python 3.11 does not have.
    def __getitem__(self, order_id: Bytes32) -> Placement:  # type: ignore[explicit-override]
        placed = self._placed[order_id]
        return _placement_at_rest(placed) if isinstance(placed, LiveOrder) else placed

    def __contains__(self, order_id: object) -> bool:  # type: ignore[explicit-override]
        return order_id in self._placed

    def __iter__(self) -> Iterator[Bytes32]:  # type: ignore[explicit-override]
        return iter(self._placed)

    def __len__(self) -> int:  # type: ignore[explicit-override]
        return len(self._placed)


def _placement_at_rest(order: LiveOrder) -> Placement:
    """Return the placement of an order that met no other when it was placed."""
    return Placement(
        order_id=order.order_id,
        condition_id=order.condition_id,
        owner=order.owner,
        order_type=order.order_type,
        leaves_at_s=order.leaves_at_s,
        status=OrderStatus.LIVE,
        making_units=0,
        taking_units=0,
        trade_ids=(),
    )


class UnsettledTrade(msgspec.Struct, gc=False):
    """A trade that is not confirmed on the chain and has not failed.

    `order` is the taker's order; `has_budget` says whether it spends a budget or trades a size.
    `signers` are those of its orders, the taker's first, or by their orders: a trade that was split
    keeps all of them.
    """

    opened: OpenMarket
    trade: Trade
    order: SignedOrder
    has_budget: bool
    status: TradeStatus
    tx_hash: str
    signers: tuple[Address, ...] | dict[Bytes32, Address]

    @property
    def signer_by_order(self) -> dict[Bytes32, Address]:
        """The signers of its orders."""
        if isinstance(self.signers, dict):
            return self.signers
        return dict(zip(trade_order_ids(self.trade), self.signers, strict=True))

    @property
    def moves(self) -> tuple[Move, ...]:
        """What the trade moves on the chain."""
        return trade_moves(self.opened, self.trade)


class State:
    """Books, ledger, live orders and unsettled trades."""

    __slots__ = (
        "_expiries",
        "_placements_forgotten_above",
        "_placements_kept_max",
        "_touched",
        "allocations",
        "barred_wallets",
        "canceled_earlier",
        "canceled_orders",
        "delays",
        "exchanges",
        "halted_markets",
        "latest_ms",
        "ledger",
        "live_orders",
        "maker_nonces",
        "maker_stops",
        "market_by_id",
        "market_by_token",
        "observed_block",
        "observed_hash",
        "observed_parts",
        "placed",
        "tracks_book_changes",
        "unsettled_trades",
    )

    def __init__(self, placements_kept_max: int = PLACEMENTS_KEPT_MAX) -> None:
        self._placements_kept_max = placements_kept_max
        self._placements_forgotten_above = placements_kept_max + 1 + placements_kept_max // 100
        self.ledger = Ledger()
        self.market_by_id: dict[Bytes32, Market] = {}
        self.market_by_token: dict[AssetId, Market] = {}
        self.exchanges: dict[Address, None] = {}
        """The exchanges of all markets, in the order of their first market."""
        self.live_orders: dict[Bytes32, LiveOrder] = {}
        self.placed: dict[Bytes32, Placement | LiveOrder] = {}
        """What `placement_by_order` is made of, for those who look up every order."""
        self.unsettled_trades: dict[str, UnsettledTrade] = {}
        self.latest_ms, self.observed_block, self.observed_hash = 0, 0, ZERO_BYTES32
        self.observed_parts: list[ObserveChain] = []
        self.allocations = Allocations()
        self.canceled_orders: set[tuple[Address, Bytes32]] = set()
        self.canceled_earlier: set[tuple[Address, Bytes32]] = set()
        """Orders that were canceled at an exchange before they were placed here: see `arrivals/chain_cancels`."""
        self.maker_nonces: dict[tuple[Address, Address], int] = {}
        """The nonces of makers that raised them, by exchange and maker."""
        self.maker_stops: dict[tuple[Address, Address, StopKind], int] = {}
        """What makers ended besides, by exchange, maker and kind; see `StopSeen`."""
        self.barred_wallets: dict[Address, str] = {}
        """Wallets of which no order is taken, with the cause that their owners see."""
        self.halted_markets: dict[Bytes32, None] = {}
        """Markets that the chain lost, in the order of their halts: their orders rest, and none is taken."""
        self.delays = Delays()
        self.tracks_book_changes = True
        """Whether commands return changes of books; a replay without subscribers needs none."""
        self._expiries: list[tuple[int, Bytes32]] = []
        self._touched: list[tuple[Bytes32, Level[LiveOrder]]] = []

    @property
    def placement_by_order(self) -> "Placements":
        """The placements that are kept whole."""
        return Placements(self.placed)

    def add(self, market: Market) -> None:
        """Add a new market."""
        assert market.opened.condition_id not in self.market_by_id
        opened = market.opened
        self.market_by_id[opened.condition_id] = market
        self.market_by_token[opened.token_yes] = self.market_by_token[opened.token_no] = market
        self.exchanges[opened.exchange] = None

    def next_expiry_s(self) -> int | None:
        """Return the time at which the next live order expires, in seconds."""
        while self._expiries and self._expiries[0][1] not in self.live_orders:
            heapq.heappop(self._expiries)
        return self._expiries[0][0] if self._expiries else None

    def due_orders(self, now_s: int, orders_max: int | None = None) -> list[LiveOrder]:
        """Return the live orders that have expired, the earliest first; they are to be closed."""
        due: list[LiveOrder] = []
        while len(due) != orders_max and (expiry := self.next_expiry_s()) is not None:
            if expiry > now_s:
                break
            due.append(self.live_orders[heapq.heappop(self._expiries)[1]])
        return due

    def remember(self, order_id: Bytes32, placement: Placement | LiveOrder) -> None:
        """Keep a placement, and forget the oldest ones when there are too many."""
        placed = self.placed
        placed[order_id] = placement
        if len(placed) > self._placements_forgotten_above:
            at_once = self._placements_forgotten_above - self._placements_kept_max
            for oldest in list(islice(placed, at_once)):
                self._forget(placed.pop(oldest))

    def end(self, market: Market, at_ms: int) -> None:
        """End a market's trading: a repeated order of it is refused for that."""
        assert market.is_open
        market.is_open = False
        market.changed_at_ms = at_ms
        market.forgotten_order_ids.clear()

    def has_orders(self, market: Market) -> bool:
        """Return whether orders of a market rest or are delayed."""
        book, condition_id = market.book, market.opened.condition_id
        return bool(book.bids.best_rank or book.asks.best_rank) or any(
            self.delays.in_market(condition_id)
        )

    def _forget(self, placement: Placement | LiveOrder) -> None:
        market, leaves_at_s = self.market_by_id[placement.condition_id], placement.leaves_at_s
        is_over = leaves_at_s is not None and leaves_at_s * 1000 <= self.latest_ms
        if market.is_open and not is_over:
            market.forgotten_order_ids.add(word_bytes(placement.order_id))

    def rest(self, order: LiveOrder, units: int, *, is_by_age: bool = False) -> None:
        """Add an order to its book and reserve what it may cost.

        It is the newest at its price, or `is_by_age` behind those that were not placed later.
        """
        account = order.account
        wallet = account.wallet
        # The wallet's strings replace equal ones that the command brought, so that a million orders
        # of a wallet store them once.
        if order.owner == wallet.owner:
            order.owner = wallet.owner
        else:
            wallet.owner = order.owner
        if order.signer == wallet.signer:
            order.signer = wallet.signer
        else:
            wallet.signer = order.signer
        if is_by_age:
            order.level.side.insert(order, _older_than(order))
        else:
            order.level.side.add(order)
        account.reserve(order, units)
        self.live_orders[order.order_id] = order
        if order.leaves_at_s is not None:
            heapq.heappush(self._expiries, (order.leaves_at_s, order.order_id))

    def close(self, order: LiveOrder, reason: CloseReason, at_ms: int) -> OrderClosed:
        """Remove a resting order from its book, and release what it reserved."""
        level = order.level
        level.side.remove(order)
        self.release(order)
        self._touched.append((order.condition_id, level))
        return order_closed(closed_order(order), reason, at_ms)

    def touch(self, order: LiveOrder) -> None:
        """Keep that the size of an order's level changed."""
        self._touched.append((order.condition_id, order.level))

    def release(self, order: LiveOrder) -> None:
        """Release what an order reserved that has left its book."""
        order.account.release(order, order.reserved_units())
        del self.live_orders[order.order_id]

    def changed_levels(
        self, touched: Iterable[tuple[Bytes32, Level[LiveOrder]]], at_ms: int
    ) -> list[ChangedLevels]:
        """Return the levels that the present command changed, by market; a closed one has none any more."""
        levels_by_market: dict[Bytes32, dict[Level[LiveOrder], None]] = {}
        for condition_id, level in touched:
            levels_by_market.setdefault(condition_id, {})[level] = None
        changed = []
        for condition_id, levels in levels_by_market.items():
            market = self.market_by_id[condition_id]
            market.changed_at_ms = at_ms
            if self.tracks_book_changes and market.is_open:
                changed.append(changed_levels(condition_id, market.book, levels))
        return changed

    def book_changes(self, at_ms: int) -> list[BookChanged]:
        """Return the effects of the levels that closed orders changed, and forget them."""
        touched, self._touched = self._touched, []
        return [book_changed(changed, at_ms) for changed in self.changed_levels(touched, at_ms)]


def _older_than(order: LiveOrder) -> LiveOrder | None:
    """Return the last order of its level that was not placed later, None if all were."""
    older, placed_at_ms = order.level.tail, order.placed_at_ms
    while older is not None and older.placed_at_ms > placed_at_ms:
        older = older.previous
    return older


def trade_moves(market: OpenMarket, trade: Trade) -> tuple[Move, ...]:
    """Return the moves of a trade, those of the makers first."""
    moves: list[Move] = []
    for fill in trade.fills:
        token = market.token_yes if fill.is_yes else market.token_no
        given, taken = (COLLATERAL, token) if fill.side is _BUY else (token, COLLATERAL)
        moves += [(fill.maker, given, -fill.making_units), (fill.maker, taken, fill.taking_units)]
    sign = 1 if trade.side is _BUY else -1
    token = market.token_yes if trade.is_yes else market.token_no
    return (
        *moves,
        (trade.taker, token, sign * trade.size_units),
        (trade.taker, COLLATERAL, -sign * trade.cost_units),
    )
