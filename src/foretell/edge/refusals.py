"""The mapping from refusals to HTTP statuses and bodies.

A refusal does not know HTTP. Its family gives its status; the table of an API overrides that for
single classes and gives the words that its clients match.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog
from litestar import Request, Response
from litestar.datastructures import State
from litestar.exceptions import HTTPException, MethodNotAllowedException, NotFoundException

from foretell.domain.errors.families import (
    Conflict,
    ForetellError,
    InvalidInput,
    NotFound,
    Unauthenticated,
    Unavailable,
    Upstream,
)
from foretell.domain.errors.http import (
    HeadersTooLarge,
    MalformedRequest,
    MethodNotAllowed,
    RequestTooSlow,
    TooManyRequests,
    UnknownMethod,
    UnknownRoute,
    UnsupportedVersion,
    UrlTooLong,
)
from foretell.edge.codec import json_response, sent_method

log = structlog.get_logger(__name__)

Words = Callable[[ForetellError], str]
BodyOf = Callable[[ForetellError], tuple[int, object]]
"""Returns the status and the body with which a product refuses."""
Handler = Callable[[Request[Any, Any, State], Any], Response[bytes]]

STATUS_BY_FAMILY: Final[Mapping[type[ForetellError], int]] = {
    MalformedRequest: 400,
    MethodNotAllowed: 405,
    RequestTooSlow: 408,
    UrlTooLong: 414,
    HeadersTooLarge: 431,
    UnknownMethod: 501,
    UnsupportedVersion: 505,
    InvalidInput: 400,
    Unauthenticated: 401,
    NotFound: 404,
    Conflict: 409,
    TooManyRequests: 429,
    Unavailable: 503,
    Upstream: 502,
    ForetellError: 500,
}


class RefusalRow(NamedTuple):
    """An API's status of a refusal, where it differs from the family's, and its words."""

    status: int | None = None
    words: Words | str | None = None


class InternalError(ForetellError):
    """A fault of the server; the log has its cause."""

    def __init__(self) -> None:
        super().__init__("internal error")


class HttpRefusal(ForetellError):
    """A request that the framework refused before it reached a route."""


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


def handlers(body_of: BodyOf) -> dict[int | type[Exception], Handler]:
    """Return Litestar's exception handlers for an API's bodies."""

    def refuse(_: Request[Any, Any, State], error: ForetellError) -> Response[bytes]:
        status, body = body_of(error)
        response = json_response(body, status)
        if error.retry_after_s is not None:
            response.headers["retry-after"] = str(error.retry_after_s)
        return response

    def fail(request: Request[Any, Any, State], error: Exception) -> Response[bytes]:
        log.error("unhandled error", path=request.url.path, exc_info=error)
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
    """Return the refusal for an exception of the framework."""
    if isinstance(error, MethodNotAllowedException):
        allowed = (error.headers or {}).get("allow", "").split(", ")
        allowed += ["HEAD"] if "GET" in allowed else []
        return MethodNotAllowed(sent_method(request), sorted(allowed))
    if isinstance(error, NotFoundException):
        return UnknownRoute(error.detail)
    return HttpRefusal(error.detail)
