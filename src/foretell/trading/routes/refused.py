"""Groups of refusals, and the tags of operations, for the trading API's document."""

from typing import Final

from foretell.domain.errors.chain import (
    CallFailed,
    ChainInconsistent,
    ChainUnavailable,
    RpcRefused,
    WrongChain,
)
from foretell.domain.errors.exchange import (
    AnswerLost,
    BudgetBelowMinimum,
    ContentsMismatch,
    EngineBusy,
    EngineCancelOnly,
    EngineReadOnly,
    EngineRestarting,
    EngineStalled,
    EngineStopped,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    ForeignProfile,
    ForeignSeparator,
    InsufficientAllowance,
    InsufficientBalance,
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    MarketClosed,
    MarketHalted,
    NotEnoughFunds,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    PriceOffTick,
    ReservedByOpenOrders,
    SignerMismatch,
    SizeBelowMinimum,
    TreasuryUnavailable,
    UnknownMarket,
)
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.errors.open_orders import (
    CrossesOwnOrders,
    TooManyOpenOrders,
    TooManyUnsettledTrades,
)
from foretell.domain.errors.order import (
    BatchTooLong,
    InvalidMarketId,
    InvalidOrderNonce,
    InvalidTokenId,
    MalformedBatch,
    MarketNotFound,
    NoDepositWallets,
    NotWalletOwner,
    OrderStopped,
    OrderVersionMismatch,
    OwnerMismatch,
    OwnerSigningOff,
    PrivateOrder,
    SignerNotCaller,
    SignerNotWallet,
    UnsupportedSignatureType,
    WalletNeedsVersion2,
    WalletRefuses,
    WrongWallet,
)
from foretell.domain.errors.storage import JournalFailed, LeaseLost
from foretell.edge.documents import errors

Refused = tuple[type[ForetellError], ...]

STATUS: Final = "Status"
KEYS: Final = "Keys"
MARKET_DATA: Final = "Market data"
ORDERS: Final = "Orders"
ACCOUNT: Final = "Account"
PLACEHOLDERS: Final = "Placeholders"

TOKEN: Final[Refused] = (InvalidTokenId, UnknownMarket, MarketClosed)
BATCH: Final[Refused] = (MalformedBatch, BatchTooLong, InvalidTokenId)
MARKET: Final[Refused] = (InvalidMarketId, MarketNotFound)
CHAIN: Final[Refused] = (
    ChainUnavailable,
    WrongChain,
    ChainInconsistent,
    RpcRefused,
    CallFailed,
)
ENGINE: Final[Refused] = (
    EngineRestarting,
    EngineBusy,
    EngineCancelOnly,
    EngineReadOnly,
    EngineStalled,
    EngineStopped,
    TreasuryUnavailable,
    AnswerLost,
    JournalFailed,
    LeaseLost,
)
TABLES: Final[Refused] = ENGINE
"""What may be refused while a reader waits for the engine's tables."""
PUBLIC_READ: Final[Refused] = errors.PUBLIC_READ
CANCEL: Final[Refused] = (*ENGINE, MalformedOrder)
ORDER: Final[Refused] = (
    *ENGINE,
    *CHAIN,
    CrossesOwnOrders,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    ForeignProfile,
    InsufficientAllowance,
    InsufficientBalance,
    InvalidExpiration,
    InvalidFeeRate,
    InvalidOrderNonce,
    MalformedOrder,
    MalformedSignature,
    MarketClosed,
    MarketHalted,
    NotEnoughFunds,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    OrderStopped,
    OrderVersionMismatch,
    OwnerMismatch,
    OwnerSigningOff,
    PostOnlyWouldCross,
    PriceOffTick,
    PrivateOrder,
    ReservedByOpenOrders,
    SignerMismatch,
    SignerNotCaller,
    SizeBelowMinimum,
    TooManyOpenOrders,
    TooManyUnsettledTrades,
    UnknownMarket,
    SignerNotWallet,
    NoDepositWallets,
    NotWalletOwner,
    ForeignSeparator,
    ContentsMismatch,
    BudgetBelowMinimum,
    UnsupportedSignatureType,
    WalletNeedsVersion2,
    WalletRefuses,
    WrongWallet,
)
