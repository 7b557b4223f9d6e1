"""The one table from refusal to status and body, per API.

A refusal knows no HTTP. What family it belongs to gives its status; an API's table says otherwise
for single classes, and which words its clients look for.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException

from foretell.domain.errors.chain import ChainInconsistent, ChainUnavailable, RpcRefused
from foretell.domain.errors.creation import (
    ChallengeUsed,
    CreatorNotWhitelisted,
    TxInvalid,
    TxPending,
)
from foretell.domain.errors.exchange import (
    EngineRestarting,
    FillAndKillUnmatched,
    FillOrKillUnfilled,
    InvalidExpiration,
    InvalidFeeRate,
    MalformedOrder,
    MarketClosed,
    NotEnoughFunds,
    OrderCanceledOnChain,
    OrderDuplicated,
    OrderPlacedBefore,
    PostOnlyWouldCross,
    PriceOffTick,
    SignerMismatch,
    SizeBelowMinimum,
    UnknownMarket,
)
from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    IllegalTransition,
    InvalidInput,
    MalformedSignature,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)
from foretell.domain.errors.http import (
    BodyTooLarge,
    L1SignatureMismatch,
    MalformedBody,
    MalformedQuery,
    MethodNotAllowed,
    MissingParameter,
    NonceNotMonotonic,
    NoSuchCredentials,
    UnknownParameter,
    UnknownRoute,
    UnknownSortField,
    UnsupportedMedia,
    UploadTooLarge,
    UploadTooSlow,
)
from foretell.domain.errors.order import (
    BatchTooLong,
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
    NothingNamed,
    OrderNotFound,
    OrderVersionMismatch,
    OwnerMismatch,
    PrivateOrder,
    SignerNotCaller,
    TooManyCancels,
    TooManyOrders,
    UnsupportedSignatureType,
    WrongWallet,
)
from foretell.domain.errors.relayer import ExecutionFailed
from foretell.domain.errors.storage import BlobDamaged, StorageUnavailable
from foretell.domain.values.amounts import decimal_text, ratio_text, tick_text
from foretell.edge.codec import json_response

log = structlog.get_logger(__name__)

Words = Callable[[ForetellError], str]
Handler = Callable[[Request[Any, Any, State], Any], Response[bytes]]

STATUS_BY_FAMILY: Final[Mapping[type[ForetellError], int]] = {
    MethodNotAllowed: 405,
    InvalidInput: 400,
    Unauthenticated: 401,
    NotFound: 404,
    Conflict: 409,
    Unavailable: 503,
    Upstream: 502,
    ForetellError: 500,
}


class RefusalRow(NamedTuple):
    """How an API tells of a refusal: the status where its family's is not meant, and the words."""

    status: int | None = None
    words: Words | str | None = None


class InternalError(ForetellError):
    """A fault of ours; what it was stands in the log."""

    def __init__(self) -> None:
        super().__init__("internal error")


class HttpRefusal(ForetellError):
    """What the framework refused before a route saw it."""


def _off_tick(error: ForetellError) -> str:
    details = error.details
    price = ratio_text(details["collateral_units"], details["size_units"])
    tick = tick_text(details["ticks_per_one"])
    return f"order {details['order_id']} is invalid. Price ({price}) breaks minimum tick size rule: {tick}"


def _too_small(error: ForetellError) -> str:
    details = error.details
    size, least = decimal_text(details["size_units"]), decimal_text(details["size_units_min"])
    return f"order {details['order_id']} is invalid. Size ({size}) lower than the minimum: {least}"


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
    PriceOffTick: RefusalRow(400, _off_tick),
    SizeBelowMinimum: RefusalRow(400, _too_small),
    OrderDuplicated: RefusalRow(400, _duplicated),
    OrderCanceledOnChain: RefusalRow(400, "order was canceled on chain"),
    OrderPlacedBefore: RefusalRow(400, _duplicated),
    NotEnoughFunds: RefusalRow(400, "not enough balance / allowance"),
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
    WrongWallet: RefusalRow(400, "Invalid order payload"),
    PrivateOrder: RefusalRow(400, "Invalid order payload"),
    InvalidOrderNonce: RefusalRow(400, "invalid nonce"),
    InvalidTokenId: RefusalRow(400, "Invalid token id"),
    InvalidSide: RefusalRow(400, "Invalid side"),
    MalformedBatch: RefusalRow(400, "Invalid payload"),
    BatchTooLong: RefusalRow(400, "Payload exceeds the limit"),
    TooManyOrders: RefusalRow(400, _too_many_orders),
    TooManyCancels: RefusalRow(400, _too_many_cancels),
    InvalidOrderId: RefusalRow(400, "Invalid orderID"),
    NothingNamed: RefusalRow(400, "Invalid order payload"),
    InvalidOrderFilter: RefusalRow(400, "invalid order params payload"),
    InvalidTradeFilter: RefusalRow(400, "Invalid trade params payload"),
    InvalidMarketId: RefusalRow(400, "Invalid market"),
    InvalidAssetType: RefusalRow(400, "Invalid asset type"),
    InvalidSignatureType: RefusalRow(400, "Invalid signature_type"),
    OrderNotFound: RefusalRow(404, "order not found"),
    MarketNotFound: RefusalRow(404, "market not found"),
    NeverTraded: RefusalRow(404, "No trades found for the requested token id"),
    HeartbeatMismatch: RefusalRow(400, "Invalid Heartbeat ID"),
    InternalError: RefusalRow(500, "Internal server error"),
}

TRADING_L1_WORDS: Final = "Invalid L1 Request headers"

WORKER: Final[Mapping[type[ForetellError], RefusalRow]] = {
    InvalidInput: RefusalRow(400, "validation_error"),
    MethodNotAllowed: RefusalRow(words="method_not_allowed"),
    BodyTooLarge: RefusalRow(413, "payload_too_large"),
    UploadTooLarge: RefusalRow(413, "payload_too_large"),
    UploadTooSlow: RefusalRow(408, "upload_too_slow"),
    UnsupportedMedia: RefusalRow(415, "unsupported_media_type"),
    CreatorNotWhitelisted: RefusalRow(403),
    IllegalTransition: RefusalRow(409, "invalid_state"),
    ChallengeUsed: RefusalRow(409, "invalid_state"),
    TxInvalid: RefusalRow(422),
    TxPending: RefusalRow(425),
    ChainUnavailable: RefusalRow(502, "chain_unavailable"),
    ChainInconsistent: RefusalRow(502, "chain_unavailable"),
    RpcRefused: RefusalRow(502, "chain_unavailable"),
    StorageUnavailable: RefusalRow(502, "storage_unavailable"),
    BlobDamaged: RefusalRow(502, "storage_unavailable"),
}


def _field(error: ForetellError) -> str:
    return f"invalid_field {error.details['field']}" if "field" in error.details else error.code


RELAYER: Final[Mapping[type[ForetellError], RefusalRow]] = {
    Unauthenticated: RefusalRow(401, "unauthorized"),
    InvalidInput: RefusalRow(400, _field),
    RpcRefused: RefusalRow(502, "execution_failed"),
    ExecutionFailed: RefusalRow(502, "execution_failed"),
}

DATA: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MalformedQuery: RefusalRow(400, "invalid_field"),
    MissingParameter: RefusalRow(400, "missing_field"),
    UnknownParameter: RefusalRow(400, "unknown_field"),
    NotFound: RefusalRow(404, "not_found"),
}

DISCOVERY: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MalformedQuery: RefusalRow(422),
    UnknownSortField: RefusalRow(422, "order fields are not valid"),
    HttpRefusal: RefusalRow(400),
}


def row_of(
    table: Mapping[type[ForetellError], RefusalRow], error: ForetellError
) -> tuple[int, str | None]:
    """Return the status and the words of a refusal, from its own row or its nearest family's."""
    status, words = None, None
    for family in type(error).__mro__:
        if family in table:
            row = table[family]
            status = row.status if status is None else status
            words = row.words if words is None else words
        if status is None:
            status = STATUS_BY_FAMILY.get(family)
    assert status is not None
    return status, words(error) if callable(words) else words


def trading_body(error: ForetellError) -> tuple[int, object]:
    """`{"error": words}` as clients know it, and beside it the machine's code and the numbers."""
    status, words = row_of(TRADING, error)
    body: dict[str, object] = {
        "error": words or error.message,
        "code": error.code,
        "message": error.message,
    }
    if error.details:
        body["details"] = error.details
    if "retry_after_s" in error.details:
        body["retry_after_seconds"] = error.details["retry_after_s"]
    if "heartbeat_id" in error.details:
        body["heartbeat_id"] = error.details["heartbeat_id"]
    return status, body


def trading_l1_body(error: ForetellError) -> tuple[int, object]:
    """The same for routes that a wallet signs: what is not authentic has other words there."""
    status, body = trading_body(error)
    assert isinstance(body, dict)
    return status, body | {"error": TRADING_L1_WORDS}


def worker_code(error: ForetellError) -> str:
    """Return the code of a refusal in the worker's words."""
    return row_of(WORKER, error)[1] or error.code


def worker_body(error: ForetellError) -> tuple[int, object]:
    """`{"error": {"code", "message", "details"}}`, all three always there."""
    status, _ = row_of(WORKER, error)
    return status, {
        "error": {
            "code": worker_code(error),
            "message": error.message,
            "details": _worker_details(error),
        }
    }


def _worker_details(error: ForetellError) -> object:
    """Return a list of what is wrong where there can be several, else the numbers, or null."""
    details = error.details
    if isinstance(error, InvalidInput):
        one = (
            [{"field": details["field"], "message": error.message}] if "field" in details else None
        )
        return details.get("problems", one)
    if isinstance(error, TxInvalid | TxPending):
        return details["txs"]
    return details or None


def relayer_body(error: ForetellError) -> tuple[int, object]:
    """`{"error": "words: message"}`, and beside it the machine's code and the numbers."""
    status, words = row_of(RELAYER, error)
    body: dict[str, object] = {
        "error": f"{words or error.code}: {error.message}",
        "code": error.code,
    }
    return status, body | ({"details": error.details} if error.details else {})


def data_body(error: ForetellError) -> tuple[int, object]:
    """`{"error": "code: message"}`."""
    status, words = row_of(DATA, error)
    return status, {"error": f"{words or error.code}: {error.message}"}


def discovery_body(error: ForetellError) -> tuple[int, object]:
    """`{"type", "error"}`."""
    status, words = row_of(DISCOVERY, error)
    kinds = {
        400: "bad request",
        404: "not found error",
        405: "bad request",
        422: "validation error",
    }
    return status, {"type": kinds.get(status, "server error"), "error": words or error.message}


def handlers(
    body_of: Callable[[ForetellError], tuple[int, object]],
) -> dict[int | type[Exception], Handler]:
    """Return Litestar's exception handlers for an API's style of body."""

    def refuse(_: Request[Any, Any, State], error: ForetellError) -> Response[bytes]:
        status, body = body_of(error)
        response = json_response(body, status)
        if "retry_after_s" in error.details:
            response.headers["retry-after"] = str(error.details["retry_after_s"])
        return response

    def fail(request: Request[Any, Any, State], error: Exception) -> Response[bytes]:
        log.error("unhandled", path=request.url.path, exc_info=error)
        status, body = body_of(InternalError())
        return json_response(body, status)

    def refuse_http(request: Request[Any, Any, State], error: HTTPException) -> Response[bytes]:
        if error.status_code >= 500:  # noqa: PLR2004 - HTTP's own number
            return fail(request, error)
        refusal = _http_refusal(request, error)
        response = json_response(body_of(refusal)[1], error.status_code)
        if isinstance(refusal, MethodNotAllowed):
            response.headers["allow"] = ", ".join(refusal.allowed)
        return response

    return {ForetellError: refuse, HTTPException: refuse_http, Exception: fail}


def _http_refusal(request: Request[Any, Any, State], error: HTTPException) -> ForetellError:
    """Return in our words what the framework refused before a route saw it."""
    if isinstance(error, MethodNotAllowedException):
        allowed = (error.headers or {}).get("allow", "").split(", ")
        return MethodNotAllowed(request.method, sorted(allowed))
    if isinstance(error, NotFoundException):
        return UnknownRoute(error.detail)
    return HttpRefusal(error.detail)
