"""Refusals of the trading API: the words that its clients match, letter by letter."""

import json
from typing import Any

import pytest
from tests.rigs.refusals import a_refusal
from tests.rigs.values import NOW_S, a_word

from foretell.domain.errors.exchange import (
    BudgetBelowMinimum,
    EngineRestarting,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    InsufficientAllowance,
    InsufficientBalance,
    InvalidExpiration,
    MalformedOrder,
    MarketClosed,
    MarketHalted,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    PriceOffTick,
    ReservedByOpenOrders,
    Shortfall,
    SignerMismatch,
    SizeBelowMinimum,
    UnknownMarket,
    WalletBarred,
)
from foretell.domain.errors.families import ForetellError, MalformedSignature
from foretell.domain.errors.http import (
    ClockSkew,
    L1SignatureMismatch,
    L2SignatureMismatch,
    MissingHeader,
    NonceNotMonotonic,
    NoSuchCredentials,
    RevokedKey,
    SignedBeforeRevocation,
    UnknownKey,
    WrongPassphrase,
)
from foretell.domain.errors.order import (
    BatchTooLong,
    BooksTooLarge,
    InvalidAssetType,
    InvalidMarketId,
    InvalidOrderFilter,
    InvalidOrderId,
    InvalidOrderNonce,
    InvalidSide,
    InvalidTokenId,
    InvalidTradeFilter,
    MarketNotFound,
    OrderStopped,
    OrderVersionMismatch,
    OwnerMismatch,
    OwnerSigningOff,
    SignerNotCaller,
    TooManyCancels,
    TooManyOrders,
)
from foretell.trading.refusals import trading_body, trading_l1_body

ORDER_ID = a_word("order")
SHORTFALL = Shortfall("0", "0xe1", 5, 4, -1, 2, 9)


def plain(body: object) -> Any:
    return json.loads(json.dumps(body, default=dict))


TRADING_WORDS: list[tuple[ForetellError, int, str]] = [
    (UnknownKey("?"), 401, "Unauthorized/Invalid api key"),
    (RevokedKey("?"), 401, "Unauthorized/Invalid api key"),
    (WrongPassphrase("?"), 401, "Unauthorized/Invalid api key"),
    (ClockSkew("0", NOW_S), 401, "Unauthorized/Invalid api key"),
    (MissingHeader("X"), 401, "Unauthorized/Invalid api key"),
    (L2SignatureMismatch(1, "00"), 401, "Unauthorized/Invalid api key"),
    (L1SignatureMismatch("0x"), 401, "Invalid L1 Request headers"),
    (SignedBeforeRevocation(1, 2), 401, "Unauthorized/Invalid api key"),
    (NonceNotMonotonic(1, 2), 400, "Could not create api key"),
    (NoSuchCredentials("?"), 400, "Could not derive api key!"),
    (MalformedOrder("?"), 400, "Invalid order payload"),
    (MalformedSignature("?"), 400, "Invalid order payload"),
    (SignerMismatch("0x"), 400, "Invalid order payload"),
    (
        PriceOffTick(ORDER_ID, 333, 1_000, 100),
        400,
        f"order {ORDER_ID} is invalid. Price (0.333) breaks minimum tick size rule: 0.01",
    ),
    (
        SizeBelowMinimum(ORDER_ID, 4_990_000, 5_000_000),
        400,
        f"order {ORDER_ID} is invalid. Size (4.99) lower than the minimum: 5",
    ),
    (
        BudgetBelowMinimum(ORDER_ID, 500_000, 1_000_000),
        400,
        "invalid amount for a marketable BUY order ($0.5), min size: $1",
    ),
    (OrderDuplicated(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (OrderPlacedBefore(ORDER_ID), 400, f"order {ORDER_ID} is invalid. Duplicated."),
    (InsufficientBalance(SHORTFALL), 400, "not enough balance / allowance"),
    (
        InsufficientAllowance(SHORTFALL),
        400,
        "not enough balance / allowance",
    ),
    (
        ReservedByOpenOrders(SHORTFALL),
        400,
        "not enough balance / allowance",
    ),
    (InvalidExpiration("?"), 400, "invalid expiration"),
    (PostOnlyWouldCross(), 400, "invalid post-only order: order crosses book"),
    (
        FillOrKillUnfilled(),
        400,
        "order couldn't be fully filled. FOK orders are fully filled or killed.",
    ),
    (
        FillAndKillUnmatched(),
        400,
        (
            "no orders found to match with FAK order. FAK orders are partially filled or killed if"
            " no match is found."
        ),
    ),
    (UnknownMarket("1"), 404, "No orderbook exists for the requested token id"),
    (
        MarketClosed("0x", "resolved"),
        404,
        "No orderbook exists for the requested token id",
    ),
]


@pytest.mark.parametrize(
    ("error", "status", "words"),
    TRADING_WORDS,
    ids=[type(row[0]).__name__ for row in TRADING_WORDS],
)
def test_a_refusal_has_the_words_that_clients_match(
    error: ForetellError, status: int, words: str
) -> None:
    seen, body = trading_body(error)
    assert (seen, plain(body)["error"]) == (status, words)
    assert plain(body)["code"] == error.code
    assert plain(body)["message"] == error.message


LETTER_BY_LETTER: list[tuple[type[ForetellError], int, str]] = [
    (OrderVersionMismatch, 400, "order_version_mismatch"),
    (OwnerMismatch, 400, "the order owner has to be the owner of the API KEY"),
    (
        SignerNotCaller,
        400,
        "the order signer address has to be the address of the API KEY",
    ),
    (InvalidOrderNonce, 400, "invalid nonce"),
    (OrderStopped, 400, "order was canceled on chain"),
    (OwnerSigningOff, 400, "Invalid order payload"),
    (OrderCanceledOnChain, 400, "order was canceled on chain"),
    (WalletBarred, 400, "wallet is barred"),
    (MarketHalted, 400, "market is halted"),
    (InvalidTokenId, 400, "Invalid token id"),
    (InvalidSide, 400, "Invalid side"),
    (BatchTooLong, 400, "Payload exceeds the limit"),
    (BooksTooLarge, 400, "Payload exceeds the limit"),
    (TooManyOrders, 400, "Too many orders in payload: 7, max allowed: 7"),
    (TooManyCancels, 400, "Too many orders in payload, max allowed: 7"),
    (InvalidOrderId, 400, "Invalid orderID"),
    (InvalidOrderFilter, 400, "invalid order params payload"),
    (InvalidTradeFilter, 400, "Invalid trade params payload"),
    (InvalidMarketId, 400, "Invalid market"),
    (MarketNotFound, 404, "market not found"),
    (InvalidAssetType, 400, "Invalid asset type"),
    (EngineRestarting, 425, "the matching engine is restarting"),
]


@pytest.mark.parametrize(("kind", "status", "words"), LETTER_BY_LETTER)
def test_a_refusal_of_a_route_has_the_words_that_clients_match(
    kind: type[ForetellError], status: int, words: str
) -> None:
    seen, body = trading_body(a_refusal(kind))
    assert (seen, plain(body)["error"]) == (status, words)


def test_a_refused_wallet_signature_has_the_words_of_its_level() -> None:
    status, body = trading_l1_body(MissingHeader("SERVICE_NONCE"))
    assert (status, plain(body)["error"]) == (401, "Invalid L1 Request headers")
    assert plain(body)["details"] == {"header": "SERVICE_NONCE"}


def test_a_refusal_has_details_only_with_numbers() -> None:
    _, body = trading_body(InsufficientBalance(SHORTFALL))
    assert plain(body)["details"]["need"] == 5
    _, body = trading_body(PostOnlyWouldCross())
    assert "details" not in plain(body)
