"""Effects of commands, from which streams and tables are built.

Each kind has a tag because effects are sent to other processes; none of them is ever stored.
"""

import enum

import msgspec

from foretell.domain.exchange.allocations import Total
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import OpenMarket, PlaceOrder, ReleaseOrder
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules, OrderStatus, OrderType, Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32


class CloseReason(enum.StrEnum):
    """The reason that an order left the book, or never rested."""

    FILLED = "filled"
    DUST = "dust"
    CANCELED = "canceled"
    KILLED = "killed"
    EXPIRED = "expired"
    SELF_TRADE = "self_trade"
    MARKET_RESOLVED = "market_resolved"
    UNDERFUNDED = "underfunded"
    CANCELED_ON_CHAIN = "canceled_on_chain"
    NONCE_RAISED = "nonce_raised"
    REVERTS_ON_CHAIN = "reverts_on_chain"
    WALLET_BARRED = "wallet_barred"
    SETTLEMENT_BEHIND = "settlement_behind"


class MarketOpened(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="market_opened"):
    """A market was opened."""

    market: OpenMarket


class TickChanged(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="tick_changed"):
    """A market's tick became finer: later effects of the market count the new ticks."""

    condition_id: Bytes32
    old_ticks_per_one: int
    ticks_per_one: int
    at_ms: int

    @property
    def factor(self) -> int:
        """The number of new ticks in an old one."""
        return self.ticks_per_one // self.old_ticks_per_one


class MarketResolved(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="market_resolved"):
    """A market was resolved, and its trading ended."""

    condition_id: Bytes32
    at_ms: int


class OrderPlaced(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="order_placed"):
    """An order was accepted, with `matched_units` of its size filled at once.

    One that is delayed has the status for that; with its release it is placed once more.
    """

    command: PlaceOrder | ReleaseOrder
    size_units: int
    matched_units: int
    status: OrderStatus
    close_reason: CloseReason | None


class OrderFilled(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="order_filled"):
    """A resting order was filled, partly or wholly."""

    order_id: Bytes32
    condition_id: Bytes32
    owner: str
    size_units: int
    remaining_units: int
    status: OrderStatus
    at_ms: int
    trade_id: str

    @property
    def close_reason(self) -> CloseReason | None:
        """The reason that the order is closed, None while it rests."""
        return CloseReason.FILLED if self.status is OrderStatus.MATCHED else None


class OrderClosed(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="order_closed"):
    """A resting order left the book for another reason than a fill of the whole."""

    order_id: Bytes32
    condition_id: Bytes32
    owner: str
    maker: Address
    size_units: int
    remaining_units: int
    status: OrderStatus
    reason: CloseReason
    at_ms: int


class TradeMatched(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="trade_matched"):
    """Orders were matched."""

    trade: Trade


class TradeAdvanced(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="trade_advanced"):
    """The status of a trade's settlement changed."""

    trade_id: str
    condition_id: Bytes32
    status: TradeStatus
    tx_hash: str
    at_ms: int


class TradeFailed(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="trade_failed"):
    """Why a trade fails for good, if that is known; its new status follows."""

    trade_id: str
    condition_id: Bytes32
    cause: str


class TradeSplit(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="trade_split"):
    """Fills of a trade that could not settle together became trades of their own.

    `kept` is the trade without them. All have the status of the trade before the split.
    """

    kept: Trade
    parts: tuple[Trade, ...]
    status: TradeStatus
    tx_hash: str
    at_ms: int


LevelTotal = tuple[bool, int, int]
"""Whether a level is of the bids, its price of yes in ticks, and its new size in base units."""


class LevelChange(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The new total size at a price of yes on one side of a book."""

    is_bid: bool
    level: LevelSize


class BookChanged(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="book_changed"):
    """Levels of a book changed; the best prices are those after the command."""

    condition_id: Bytes32
    changes: tuple[LevelChange, ...]
    best_bid_ticks: int | None
    best_ask_ticks: int | None
    ticks_per_one: int
    at_ms: int

    @property
    def level_changes(self) -> list[LevelTotal]:
        """The new size of each level, at its price."""
        return [
            (change.is_bid, change.level.price_ticks, change.level.size_units)
            for change in self.changes
        ]


class TreasuryJoined(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="joined"):
    """The shard takes its collateral from a treasury from now on."""

    shard: str
    at_ms: int


class AllocationMoved(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="slice_moved"):
    """A wallet's allocation changed; these are the shard's totals after the change."""

    wallet: Address
    given: Total
    returned: Total
    settled: Total
    at_ms: int


class MarketRestored(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="market_restored"):
    """The present state of a market, for a subscriber that missed earlier effects.

    `market` is the command that opened it, `rules` are its present rules.
    """

    market: OpenMarket
    rules: MarketRules
    is_open: bool
    levels: tuple[LevelChange, ...]
    best_bid_ticks: int | None
    best_ask_ticks: int | None
    last_price_ticks: int | None
    last_side: Side | None
    changed_at_ms: int


class OrderRestored(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="order_restored"):
    """A resting order, for a subscriber that missed its placement."""

    order_id: Bytes32
    condition_id: Bytes32
    token_id: AssetId
    owner: str
    signer: Address
    maker: Address
    side: Side
    is_yes: bool
    price_ticks: int
    ticks_per_one: int
    size_units: int
    matched_units: int
    order_type: OrderType
    expiration_s: int
    placed_at_ms: int
    trade_ids: tuple[str, ...]


class TradeRestored(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="trade_restored"):
    """A trade that is not settled, for a subscriber that missed the match."""

    trade: Trade
    signer_by_order: dict[Bytes32, Address]
    status: TradeStatus
    tx_hash: str


class OrderReturned(msgspec.Struct, frozen=True, array_like=True, gc=False, tag="order_returned"):
    """An order whose fills in a failed trade can trade again; it rests as it is in `order`."""

    order: OrderRestored
    trade_id: str
    at_ms: int


Effect = (
    MarketOpened
    | TickChanged
    | MarketResolved
    | OrderPlaced
    | OrderFilled
    | OrderClosed
    | TradeMatched
    | TradeAdvanced
    | TradeFailed
    | TradeSplit
    | BookChanged
    | TreasuryJoined
    | AllocationMoved
    | MarketRestored
    | OrderRestored
    | OrderReturned
    | TradeRestored
)
