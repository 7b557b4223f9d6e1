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

from foretell.domain import (
    chain_errors,
    creation_errors,
    errors,
    matching_errors,
    relayer_errors,
    request_errors,
    storage_errors,
    trading_errors,
)
from foretell.domain.amounts import decimal_text, ratio_text, tick_text
from foretell.edge.codec import json_response

log = structlog.get_logger(__name__)

Words = Callable[[errors.ForetellError], str]
Handler = Callable[[Request[Any, Any, State], Any], Response[bytes]]

STATUS_BY_FAMILY: Final[Mapping[type[errors.ForetellError], int]] = {
    request_errors.MethodNotAllowed: 405,
    errors.InvalidInput: 400,
    errors.Unauthenticated: 401,
    errors.NotFound: 404,
    errors.Conflict: 409,
    errors.Unavailable: 503,
    errors.Upstream: 502,
    errors.ForetellError: 500,
}


class Row(NamedTuple):
    """How an API tells of a refusal: the status where its family's is not meant, and the words."""

    status: int | None = None
    words: Words | str | None = None


class InternalError(errors.ForetellError):
    """A fault of ours; what it was stands in the log."""

    def __init__(self) -> None:
        super().__init__("internal error")


class HttpRefusal(errors.ForetellError):
    """What the framework refused before a route saw it."""


def _off_tick(error: errors.ForetellError) -> str:
    details = error.details
    price = ratio_text(details["collateral_units"], details["size_units"])
    tick = tick_text(details["ticks_per_one"])
    return f"order {details['order_id']} is invalid. Price ({price}) breaks minimum tick size rule: {tick}"


def _too_small(error: errors.ForetellError) -> str:
    details = error.details
    size, least = decimal_text(details["size_units"]), decimal_text(details["size_units_min"])
    return f"order {details['order_id']} is invalid. Size ({size}) lower than the minimum: {least}"


def _duplicated(error: errors.ForetellError) -> str:
    return f"order {error.details['order_id']} is invalid. Duplicated."


def _too_many_orders(error: errors.ForetellError) -> str:
    assert isinstance(error, trading_errors.TooManyOrders)
    return f"Too many orders in payload: {error.count}, max allowed: {error.most}"


def _too_many_cancels(error: errors.ForetellError) -> str:
    return f"Too many orders in payload, max allowed: {error.details['most']}"


TRADING: Final[Mapping[type[errors.ForetellError], Row]] = {
    errors.Unauthenticated: Row(401, "Unauthorized/Invalid api key"),
    request_errors.L1SignatureMismatch: Row(401, "Invalid L1 Request headers"),
    request_errors.NonceNotMonotonic: Row(400, "Could not create api key"),
    request_errors.NoSuchCredentials: Row(400, "Could not derive api key!"),
    matching_errors.MalformedOrder: Row(400, "Invalid order payload"),
    errors.MalformedSignature: Row(400, "Invalid order payload"),
    matching_errors.SignerMismatch: Row(400, "Invalid order payload"),
    matching_errors.PriceOffTick: Row(400, _off_tick),
    matching_errors.SizeBelowMinimum: Row(400, _too_small),
    matching_errors.OrderDuplicated: Row(400, _duplicated),
    matching_errors.OrderCanceledOnChain: Row(400, "order was canceled on chain"),
    matching_errors.OrderPlacedBefore: Row(400, _duplicated),
    matching_errors.NotEnoughFunds: Row(400, "not enough balance / allowance"),
    matching_errors.InvalidExpiration: Row(400, "invalid expiration"),
    matching_errors.PostOnlyWouldCross: Row(400, "invalid post-only order: order crosses book"),
    matching_errors.FillOrKillUnfilled: Row(
        400, "order couldn't be fully filled. FOK orders are fully filled or killed."
    ),
    matching_errors.FillAndKillUnmatched: Row(
        400,
        "no orders found to match with FAK order. FAK orders are partially filled or killed if no"
        " match is found.",
    ),
    matching_errors.UnknownMarket: Row(404, "No orderbook exists for the requested token id"),
    matching_errors.MarketClosed: Row(404, "No orderbook exists for the requested token id"),
    matching_errors.EngineRestarting: Row(425, "the matching engine is restarting"),
    matching_errors.InvalidFeeRate: Row(400, "Invalid order payload"),
    request_errors.MalformedBody: Row(400, "Invalid payload"),
    request_errors.BodyTooLarge: Row(400, "Payload exceeds the limit"),
    request_errors.MethodNotAllowed: Row(words="Method Not Allowed"),
    trading_errors.OrderVersionMismatch: Row(400, "order_version_mismatch"),
    trading_errors.OwnerMismatch: Row(400, "the order owner has to be the owner of the API KEY"),
    trading_errors.SignerNotCaller: Row(
        400, "the order signer address has to be the address of the API KEY"
    ),
    trading_errors.UnsupportedSignatureType: Row(400, "Invalid order payload"),
    trading_errors.WrongWallet: Row(400, "Invalid order payload"),
    trading_errors.PrivateOrder: Row(400, "Invalid order payload"),
    trading_errors.InvalidOrderNonce: Row(400, "invalid nonce"),
    trading_errors.InvalidTokenId: Row(400, "Invalid token id"),
    trading_errors.InvalidSide: Row(400, "Invalid side"),
    trading_errors.MalformedBatch: Row(400, "Invalid payload"),
    trading_errors.BatchTooLong: Row(400, "Payload exceeds the limit"),
    trading_errors.TooManyOrders: Row(400, _too_many_orders),
    trading_errors.TooManyCancels: Row(400, _too_many_cancels),
    trading_errors.InvalidOrderId: Row(400, "Invalid orderID"),
    trading_errors.NothingNamed: Row(400, "Invalid order payload"),
    trading_errors.InvalidOrderFilter: Row(400, "invalid order params payload"),
    trading_errors.InvalidTradeFilter: Row(400, "Invalid trade params payload"),
    trading_errors.InvalidMarketId: Row(400, "Invalid market"),
    trading_errors.InvalidAssetType: Row(400, "Invalid asset type"),
    trading_errors.InvalidSignatureType: Row(400, "Invalid signature_type"),
    trading_errors.OrderNotFound: Row(404, "order not found"),
    trading_errors.MarketNotFound: Row(404, "market not found"),
    trading_errors.NeverTraded: Row(404, "No trades found for the requested token id"),
    trading_errors.HeartbeatMismatch: Row(400, "Invalid Heartbeat ID"),
    InternalError: Row(500, "Internal server error"),
}

TRADING_L1_WORDS: Final = "Invalid L1 Request headers"

WORKER: Final[Mapping[type[errors.ForetellError], Row]] = {
    errors.InvalidInput: Row(400, "validation_error"),
    request_errors.MethodNotAllowed: Row(words="method_not_allowed"),
    request_errors.BodyTooLarge: Row(413, "payload_too_large"),
    request_errors.UploadTooLarge: Row(413, "payload_too_large"),
    request_errors.UploadTooSlow: Row(408, "upload_too_slow"),
    request_errors.UnsupportedMedia: Row(415, "unsupported_media_type"),
    creation_errors.CreatorNotWhitelisted: Row(403),
    errors.IllegalTransition: Row(409, "invalid_state"),
    creation_errors.ChallengeUsed: Row(409, "invalid_state"),
    creation_errors.TxInvalid: Row(422),
    creation_errors.TxPending: Row(425),
    chain_errors.ChainUnavailable: Row(502, "chain_unavailable"),
    chain_errors.ChainInconsistent: Row(502, "chain_unavailable"),
    chain_errors.RpcRefused: Row(502, "chain_unavailable"),
    storage_errors.StorageUnavailable: Row(502, "storage_unavailable"),
    storage_errors.BlobDamaged: Row(502, "storage_unavailable"),
}


def _field(error: errors.ForetellError) -> str:
    return f"invalid_field {error.details['field']}" if "field" in error.details else error.code


RELAYER: Final[Mapping[type[errors.ForetellError], Row]] = {
    errors.Unauthenticated: Row(401, "unauthorized"),
    errors.InvalidInput: Row(400, _field),
    chain_errors.RpcRefused: Row(502, "execution_failed"),
    relayer_errors.ExecutionFailed: Row(502, "execution_failed"),
}

DATA: Final[Mapping[type[errors.ForetellError], Row]] = {
    request_errors.MalformedQuery: Row(400, "invalid_field"),
    request_errors.MissingParameter: Row(400, "missing_field"),
    request_errors.UnknownParameter: Row(400, "unknown_field"),
    errors.NotFound: Row(404, "not_found"),
}

DISCOVERY: Final[Mapping[type[errors.ForetellError], Row]] = {
    request_errors.MalformedQuery: Row(422),
    request_errors.UnknownSortField: Row(422, "order fields are not valid"),
    HttpRefusal: Row(400),
}


def row_of(
    table: Mapping[type[errors.ForetellError], Row], error: errors.ForetellError
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


def trading_body(error: errors.ForetellError) -> tuple[int, object]:
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


def trading_l1_body(error: errors.ForetellError) -> tuple[int, object]:
    """The same for routes that a wallet signs: what is not authentic has other words there."""
    status, body = trading_body(error)
    assert isinstance(body, dict)
    return status, body | {"error": TRADING_L1_WORDS}


def worker_code(error: errors.ForetellError) -> str:
    """Return the code of a refusal in the worker's words."""
    return row_of(WORKER, error)[1] or error.code


def worker_body(error: errors.ForetellError) -> tuple[int, object]:
    """`{"error": {"code", "message", "details"}}`, all three always there."""
    status, _ = row_of(WORKER, error)
    return status, {
        "error": {
            "code": worker_code(error),
            "message": error.message,
            "details": _worker_details(error),
        }
    }


def _worker_details(error: errors.ForetellError) -> object:
    """Return a list of what is wrong where there can be several, else the numbers, or null."""
    details = error.details
    if isinstance(error, errors.InvalidInput):
        one = (
            [{"field": details["field"], "message": error.message}] if "field" in details else None
        )
        return details.get("problems", one)
    if isinstance(error, creation_errors.TxInvalid | creation_errors.TxPending):
        return details["txs"]
    return details or None


def relayer_body(error: errors.ForetellError) -> tuple[int, object]:
    """`{"error": "words: message"}`, and beside it the machine's code and the numbers."""
    status, words = row_of(RELAYER, error)
    body: dict[str, object] = {
        "error": f"{words or error.code}: {error.message}",
        "code": error.code,
    }
    return status, body | ({"details": error.details} if error.details else {})


def data_body(error: errors.ForetellError) -> tuple[int, object]:
    """`{"error": "code: message"}`."""
    status, words = row_of(DATA, error)
    return status, {"error": f"{words or error.code}: {error.message}"}


def discovery_body(error: errors.ForetellError) -> tuple[int, object]:
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
    body_of: Callable[[errors.ForetellError], tuple[int, object]],
) -> dict[int | type[Exception], Handler]:
    """Return Litestar's exception handlers for an API's style of body."""

    def refuse(_: Request[Any, Any, State], error: errors.ForetellError) -> Response[bytes]:
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
        if isinstance(refusal, request_errors.MethodNotAllowed):
            response.headers["allow"] = ", ".join(refusal.allowed)
        return response

    return {errors.ForetellError: refuse, HTTPException: refuse_http, Exception: fail}


def _http_refusal(request: Request[Any, Any, State], error: HTTPException) -> errors.ForetellError:
    """Return in our words what the framework refused before a route saw it."""
    if isinstance(error, MethodNotAllowedException):
        allowed = (error.headers or {}).get("allow", "").split(", ")
        return request_errors.MethodNotAllowed(request.method, sorted(allowed))
    if isinstance(error, NotFoundException):
        return request_errors.UnknownRoute(error.detail)
    return HttpRefusal(error.detail)
