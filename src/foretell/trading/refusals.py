"""Refusals of the trading API: the status and the words that its clients know, for each class."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.errors.exchange import (
    BudgetBelowMinimum,
    ContentsMismatch,
    EngineRestarting,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    ForeignSeparator,
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
    SignerMismatch,
    SizeBelowMinimum,
    UnknownMarket,
    WalletBarred,
)
from foretell.domain.errors.families import (
    ForetellError,
    MalformedSignature,
    Unauthenticated,
    code_of,
)
from foretell.domain.errors.http import (
    BodyTooLarge,
    L1SignatureMismatch,
    MalformedBody,
    MethodNotAllowed,
    NonceNotMonotonic,
    NoSuchCredentials,
    NotServed,
)
from foretell.domain.errors.open_orders import CrossesOwnOrders, TooManyOpenOrders
from foretell.domain.errors.order import (
    BatchTooLong,
    BooksTooLarge,
    HeartbeatMismatch,
    InvalidAssetType,
    InvalidMarketId,
    InvalidOrderFilter,
    InvalidOrderId,
    InvalidOrderNonce,
    InvalidSide,
    InvalidSignatureType,
    InvalidTokenId,
    InvalidTradeFilter,
    MalformedBatch,
    MarketNotFound,
    NeverTraded,
    NoDepositWallets,
    NothingNamed,
    NotWalletOwner,
    OrderNotFound,
    OrderStopped,
    OrderVersionMismatch,
    OwnerMismatch,
    OwnerSigningOff,
    PrivateOrder,
    SignerNotCaller,
    SignerNotWallet,
    TooManyCancels,
    TooManyOrders,
    UnsupportedSignatureType,
    WalletNeedsVersion2,
    WalletRefuses,
    WrongWallet,
)
from foretell.domain.errors.streams import MalformedMessage, TooManySubscriptions
from foretell.domain.values.amounts import decimal_text, ratio_text, tick_text
from foretell.edge.documents.errors import Refusals
from foretell.edge.refusals import InternalError, RefusalRow, row_of


def _off_tick(error: ForetellError) -> str:
    details = error.details
    price = ratio_text(details["collateral_units"], details["size_units"])
    tick = tick_text(details["ticks_per_one"])
    return f"order {details['order_id']} is invalid. Price ({price}) breaks minimum tick size rule: {tick}"


def _too_small(error: ForetellError) -> str:
    details = error.details
    size, least = decimal_text(details["size_units"]), decimal_text(details["size_units_min"])
    return f"order {details['order_id']} is invalid. Size ({size}) lower than the minimum: {least}"


def _too_cheap(error: ForetellError) -> str:
    details = error.details
    budget = decimal_text(details["budget_units"])
    least = decimal_text(details["budget_units_min"])
    return f"invalid amount for a marketable BUY order (${budget}), min size: ${least}"


def _duplicated(error: ForetellError) -> str:
    return f"order {error.details['order_id']} is invalid. Duplicated."


def _too_many_orders(error: ForetellError) -> str:
    assert isinstance(error, TooManyOrders)
    return f"Too many orders in payload: {error.count}, max allowed: {error.most}"


def _too_many_cancels(error: ForetellError) -> str:
    return f"Too many orders in payload, max allowed: {error.details['most']}"


TRADING: Final[Mapping[type[ForetellError], RefusalRow]] = {
    Unauthenticated: RefusalRow(401, "Unauthorized/Invalid api key"),
    L1SignatureMismatch: RefusalRow(401, "Invalid L1 Request headers"),
    NonceNotMonotonic: RefusalRow(400, "Could not create api key"),
    NoSuchCredentials: RefusalRow(400, "Could not derive api key!"),
    MalformedOrder: RefusalRow(400, "Invalid order payload"),
    MalformedSignature: RefusalRow(400, "Invalid order payload"),
    SignerMismatch: RefusalRow(400, "Invalid order payload"),
    ForeignSeparator: RefusalRow(400, "Invalid order payload"),
    ContentsMismatch: RefusalRow(400, "Invalid order payload"),
    PriceOffTick: RefusalRow(400, _off_tick),
    SizeBelowMinimum: RefusalRow(400, _too_small),
    BudgetBelowMinimum: RefusalRow(400, _too_cheap),
    OrderDuplicated: RefusalRow(400, _duplicated),
    OrderCanceledOnChain: RefusalRow(400, "order was canceled on chain"),
    OrderPlacedBefore: RefusalRow(400, _duplicated),
    WalletBarred: RefusalRow(400, "wallet is barred"),
    MarketHalted: RefusalRow(400, "market is halted"),
    NotEnoughFunds: RefusalRow(400, "not enough balance / allowance"),
    TooManyOpenOrders: RefusalRow(400, "too many open orders"),
    CrossesOwnOrders: RefusalRow(400, "order crosses too many own orders"),
    InvalidExpiration: RefusalRow(400, "invalid expiration"),
    PostOnlyWouldCross: RefusalRow(400, "invalid post-only order: order crosses book"),
    FillOrKillUnfilled: RefusalRow(
        400, "order couldn't be fully filled. FOK orders are fully filled or killed."
    ),
    FillAndKillUnmatched: RefusalRow(
        400,
        "no orders found to match with FAK order. FAK orders are partially filled or killed if no"
        " match is found.",
    ),
    UnknownMarket: RefusalRow(404, "No orderbook exists for the requested token id"),
    MarketClosed: RefusalRow(404, "No orderbook exists for the requested token id"),
    EngineRestarting: RefusalRow(425, "the matching engine is restarting"),
    InvalidFeeRate: RefusalRow(400, "Invalid order payload"),
    MalformedBody: RefusalRow(400, "Invalid payload"),
    BodyTooLarge: RefusalRow(400, "Payload exceeds the limit"),
    MethodNotAllowed: RefusalRow(words="Method Not Allowed"),
    OrderVersionMismatch: RefusalRow(400, "order_version_mismatch"),
    OwnerMismatch: RefusalRow(400, "the order owner has to be the owner of the API KEY"),
    SignerNotCaller: RefusalRow(
        400, "the order signer address has to be the address of the API KEY"
    ),
    UnsupportedSignatureType: RefusalRow(400, "Invalid order payload"),
    WalletNeedsVersion2: RefusalRow(400, "Invalid order payload"),
    SignerNotWallet: RefusalRow(400, "Invalid order payload"),
    NoDepositWallets: RefusalRow(400, "Invalid order payload"),
    WalletRefuses: RefusalRow(400, "Invalid order payload"),
    NotWalletOwner: RefusalRow(400, "Invalid order payload"),
    WrongWallet: RefusalRow(400, "Invalid order payload"),
    PrivateOrder: RefusalRow(400, "Invalid order payload"),
    InvalidOrderNonce: RefusalRow(400, "invalid nonce"),
    OrderStopped: RefusalRow(400, "order was canceled on chain"),
    OwnerSigningOff: RefusalRow(400, "Invalid order payload"),
    InvalidTokenId: RefusalRow(400, "Invalid token id"),
    InvalidSide: RefusalRow(400, "Invalid side"),
    MalformedBatch: RefusalRow(400, "Invalid payload"),
    BatchTooLong: RefusalRow(400, "Payload exceeds the limit"),
    BooksTooLarge: RefusalRow(400, "Payload exceeds the limit"),
    TooManyOrders: RefusalRow(400, _too_many_orders),
    TooManyCancels: RefusalRow(400, _too_many_cancels),
    InvalidOrderId: RefusalRow(400, "Invalid orderID"),
    NothingNamed: RefusalRow(400, "Invalid order payload"),
    InvalidOrderFilter: RefusalRow(400, "invalid order params payload"),
    InvalidTradeFilter: RefusalRow(400, "Invalid trade params payload"),
    InvalidMarketId: RefusalRow(400, "Invalid market"),
    InvalidAssetType: RefusalRow(400, "Invalid asset type"),
    InvalidSignatureType: RefusalRow(400, "Invalid signature_type"),
    NotServed: RefusalRow(403),
    OrderNotFound: RefusalRow(404, "order not found"),
    MarketNotFound: RefusalRow(404, "market not found"),
    NeverTraded: RefusalRow(404, "No trades found for the requested token id"),
    HeartbeatMismatch: RefusalRow(400, "Invalid Heartbeat ID"),
    MalformedMessage: RefusalRow(400, "INVALID OPERATION"),
    TooManySubscriptions: RefusalRow(400, "INVALID OPERATION"),
    InternalError: RefusalRow(500, "Internal server error"),
}


TRADING_L1_WORDS: Final = "Invalid L1 Request headers"


def trading_body(error: ForetellError) -> tuple[int, object]:
    """Return `{"error": words}` as clients know it, with the code and the numbers for programs."""
    status, words = row_of(TRADING, error)
    body: dict[str, object] = {
        "error": words or error.message,
        "code": error.code,
        "message": error.message,
    }
    if error.details:
        body["details"] = error.details
    if error.retry_after_s is not None:
        body["retry_after_seconds"] = error.retry_after_s
    if isinstance(error, HeartbeatMismatch):
        body["heartbeat_id"] = error.details["heartbeat_id"]
    return status, body


def trading_l1_body(error: ForetellError) -> tuple[int, object]:
    """Return the same for L1 routes, where a request that is not authentic has other words."""
    status, body = trading_body(error)
    assert isinstance(body, dict)
    return status, body | {"error": TRADING_L1_WORDS}


class TradingError(msgspec.Struct):
    """A refusal: words that clients match, a code and a message for programs, and its values."""

    error: str
    code: str
    message: str
    details: dict[str, Any] | UnsetType = UNSET
    retry_after_seconds: int | UnsetType = UNSET
    heartbeat_id: str | UnsetType | None = UNSET


DOCUMENTED: Final = Refusals(TRADING, TradingError, code_of, (EngineRestarting,))
