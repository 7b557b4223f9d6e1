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


class Row(NamedTuple):
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


TRADING: Final[Mapping[type[ForetellError], Row]] = {
    Unauthenticated: Row(401, "Unauthorized/Invalid api key"),
    L1SignatureMismatch: Row(401, "Invalid L1 Request headers"),
    NonceNotMonotonic: Row(400, "Could not create api key"),
    NoSuchCredentials: Row(400, "Could not derive api key!"),
    MalformedOrder: Row(400, "Invalid order payload"),
    MalformedSignature: Row(400, "Invalid order payload"),
    SignerMismatch: Row(400, "Invalid order payload"),
    PriceOffTick: Row(400, _off_tick),
    SizeBelowMinimum: Row(400, _too_small),
    OrderDuplicated: Row(400, _duplicated),
    OrderCanceledOnChain: Row(400, "order was canceled on chain"),
    OrderPlacedBefore: Row(400, _duplicated),
    NotEnoughFunds: Row(400, "not enough balance / allowance"),
    InvalidExpiration: Row(400, "invalid expiration"),
    PostOnlyWouldCross: Row(400, "invalid post-only order: order crosses book"),
    FillOrKillUnfilled: Row(
        400, "order couldn't be fully filled. FOK orders are fully filled or killed."
    ),
    FillAndKillUnmatched: Row(
        400,
        "no orders found to match with FAK order. FAK orders are partially filled or killed if no"
        " match is found.",
    ),
    UnknownMarket: Row(404, "No orderbook exists for the requested token id"),
    MarketClosed: Row(404, "No orderbook exists for the requested token id"),
    EngineRestarting: Row(425, "the matching engine is restarting"),
    InvalidFeeRate: Row(400, "Invalid order payload"),
    MalformedBody: Row(400, "Invalid payload"),
    BodyTooLarge: Row(400, "Payload exceeds the limit"),
    MethodNotAllowed: Row(words="Method Not Allowed"),
    OrderVersionMismatch: Row(400, "order_version_mismatch"),
    OwnerMismatch: Row(400, "the order owner has to be the owner of the API KEY"),
    SignerNotCaller: Row(400, "the order signer address has to be the address of the API KEY"),
    UnsupportedSignatureType: Row(400, "Invalid order payload"),
    WrongWallet: Row(400, "Invalid order payload"),
    PrivateOrder: Row(400, "Invalid order payload"),
    InvalidOrderNonce: Row(400, "invalid nonce"),
    InvalidTokenId: Row(400, "Invalid token id"),
    InvalidSide: Row(400, "Invalid side"),
    MalformedBatch: Row(400, "Invalid payload"),
    BatchTooLong: Row(400, "Payload exceeds the limit"),
    TooManyOrders: Row(400, _too_many_orders),
    TooManyCancels: Row(400, _too_many_cancels),
    InvalidOrderId: Row(400, "Invalid orderID"),
    NothingNamed: Row(400, "Invalid order payload"),
    InvalidOrderFilter: Row(400, "invalid order params payload"),
    InvalidTradeFilter: Row(400, "Invalid trade params payload"),
    InvalidMarketId: Row(400, "Invalid market"),
    InvalidAssetType: Row(400, "Invalid asset type"),
    InvalidSignatureType: Row(400, "Invalid signature_type"),
    OrderNotFound: Row(404, "order not found"),
    MarketNotFound: Row(404, "market not found"),
    NeverTraded: Row(404, "No trades found for the requested token id"),
    HeartbeatMismatch: Row(400, "Invalid Heartbeat ID"),
    InternalError: Row(500, "Internal server error"),
}

TRADING_L1_WORDS: Final = "Invalid L1 Request headers"

WORKER: Final[Mapping[type[ForetellError], Row]] = {
    InvalidInput: Row(400, "validation_error"),
    MethodNotAllowed: Row(words="method_not_allowed"),
    BodyTooLarge: Row(413, "payload_too_large"),
    UploadTooLarge: Row(413, "payload_too_large"),
    UploadTooSlow: Row(408, "upload_too_slow"),
    UnsupportedMedia: Row(415, "unsupported_media_type"),
    CreatorNotWhitelisted: Row(403),
    IllegalTransition: Row(409, "invalid_state"),
    ChallengeUsed: Row(409, "invalid_state"),
    TxInvalid: Row(422),
    TxPending: Row(425),
    ChainUnavailable: Row(502, "chain_unavailable"),
    ChainInconsistent: Row(502, "chain_unavailable"),
    RpcRefused: Row(502, "chain_unavailable"),
    StorageUnavailable: Row(502, "storage_unavailable"),
    BlobDamaged: Row(502, "storage_unavailable"),
}


def _field(error: ForetellError) -> str:
    return f"invalid_field {error.details['field']}" if "field" in error.details else error.code


RELAYER: Final[Mapping[type[ForetellError], Row]] = {
    Unauthenticated: Row(401, "unauthorized"),
    InvalidInput: Row(400, _field),
    RpcRefused: Row(502, "execution_failed"),
    ExecutionFailed: Row(502, "execution_failed"),
}

DATA: Final[Mapping[type[ForetellError], Row]] = {
    MalformedQuery: Row(400, "invalid_field"),
    MissingParameter: Row(400, "missing_field"),
    UnknownParameter: Row(400, "unknown_field"),
    NotFound: Row(404, "not_found"),
}

DISCOVERY: Final[Mapping[type[ForetellError], Row]] = {
    MalformedQuery: Row(422),
    UnknownSortField: Row(422, "order fields are not valid"),
    HttpRefusal: Row(400),
}


def row_of(
    table: Mapping[type[ForetellError], Row], error: ForetellError
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
