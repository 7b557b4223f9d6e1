"""What the engine says has happened: what streams, tables and answers are made of.

Each kind has a tag, since they cross to other processes; none of them is ever stored.
"""

import enum

import msgspec

from foretell.domain.exchange.allocations import Total
from foretell.domain.exchange.book import LevelSize
from foretell.domain.exchange.commands import OpenMarket, PlaceOrder
from foretell.domain.exchange.ledger import AssetId
from foretell.domain.exchange.order import MarketRules, OrderStatus, OrderType, Side
from foretell.domain.exchange.trade import Trade, TradeStatus
from foretell.domain.values.hexadecimal import Address, Bytes32


class CloseReason(enum.StrEnum):
    """Why an order left the book, or never rested."""

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


class MarketOpened(msgspec.Struct, frozen=True, array_like=True, tag="market_opened"):
    """A market began to trade."""

    market: OpenMarket


class TickChanged(msgspec.Struct, frozen=True, array_like=True, tag="tick_changed"):
    """A market's tick became finer: all that is told of it from now on counts the new ticks."""

    condition_id: Bytes32
    old_ticks_per_one: int
    ticks_per_one: int
    at_ms: int

    @property
    def factor(self) -> int:
        """How many of the new ticks make an old one."""
        return self.ticks_per_one // self.old_ticks_per_one


class MarketResolved(msgspec.Struct, frozen=True, array_like=True, tag="market_resolved"):
    """A market trades no more."""

    condition_id: Bytes32
    at_ms: int


class OrderPlaced(msgspec.Struct, frozen=True, array_like=True, tag="order_placed"):
    """An order was accepted; `matched_units` of its size were filled at once."""

    command: PlaceOrder
    size_units: int
    matched_units: int
    status: OrderStatus
    close_reason: CloseReason | None


class OrderFilled(msgspec.Struct, frozen=True, array_like=True, tag="order_filled"):
    """A resting order was filled, in part or whole."""

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
        """Why the order is over, if this fill was its last."""
        return CloseReason.FILLED if self.status is OrderStatus.MATCHED else None


class OrderClosed(msgspec.Struct, frozen=True, array_like=True, tag="order_closed"):
    """A resting order left the book otherwise than by being filled whole."""

    order_id: Bytes32
    condition_id: Bytes32
    owner: str
    maker: Address
    size_units: int
    remaining_units: int
    status: OrderStatus
    reason: CloseReason
    at_ms: int


class TradeMatched(msgspec.Struct, frozen=True, array_like=True, tag="trade_matched"):
    """Orders met."""

    trade: Trade


class TradeAdvanced(msgspec.Struct, frozen=True, array_like=True, tag="trade_advanced"):
    """A trade came further on its way to the chain."""

    trade_id: str
    condition_id: Bytes32
    status: TradeStatus
    tx_hash: str
    at_ms: int


class TradeSplit(msgspec.Struct, frozen=True, array_like=True, tag="trade_split"):
    """Fills left a trade that could not settle with them, and are trades of their own now.

    `kept` is the trade without them. All are as far as it was.
    """

    kept: Trade
    parts: tuple[Trade, ...]
    status: TradeStatus
    tx_hash: str
    at_ms: int


class LevelChange(msgspec.Struct, frozen=True, array_like=True):
    """How much waits now at a price of yes on one side of a book."""

    is_bid: bool
    level: LevelSize


class BookChanged(msgspec.Struct, frozen=True, array_like=True, tag="book_changed"):
    """Levels of a book changed; the best prices are those after the command."""

    condition_id: Bytes32
    changes: tuple[LevelChange, ...]
    best_bid_ticks: int | None
    best_ask_ticks: int | None
    ticks_per_one: int
    at_ms: int


class TreasuryJoined(msgspec.Struct, frozen=True, array_like=True, tag="joined"):
    """Collateral comes in slices from now on."""

    shard: str
    at_ms: int


class AllocationMoved(msgspec.Struct, frozen=True, array_like=True, tag="slice_moved"):
    """A wallet's slice changed; these are its totals here after the change."""

    wallet: Address
    given: Total
    returned: Total
    settled: Total
    at_ms: int


class MarketRestored(msgspec.Struct, frozen=True, array_like=True, tag="market_restored"):
    """A market as it stands, for one who did not hear how it came so.

    `market` is how it was opened, `rules` what it asks of orders now.
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


class OrderRestored(msgspec.Struct, frozen=True, array_like=True, tag="order_restored"):
    """An order that rests, for one who did not hear of its placement."""

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


class TradeRestored(msgspec.Struct, frozen=True, array_like=True, tag="trade_restored"):
    """A trade on its way to the chain, for one who did not hear of the match."""

    trade: Trade
    signer_by_order: dict[Bytes32, Address]
    status: TradeStatus
    tx_hash: str


Effect = (
    MarketOpened
    | TickChanged
    | MarketResolved
    | OrderPlaced
    | OrderFilled
    | OrderClosed
    | TradeMatched
    | TradeAdvanced
    | TradeSplit
    | BookChanged
    | TreasuryJoined
    | AllocationMoved
    | MarketRestored
    | OrderRestored
    | TradeRestored
)
