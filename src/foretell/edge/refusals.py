"""The mapping from refusals to HTTP statuses and bodies.

A refusal does not know HTTP. Its family gives its status; the table of an API overrides that for
single classes and gives the words that its clients match.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import structlog
from litestar import Request
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
from foretell.edge.codec import JsonResponse, json_response, sent_method

log = structlog.get_logger(__name__)

Words = Callable[[ForetellError], str]
BodyOf = Callable[[ForetellError], tuple[int, object]]
"""Returns the status and the body with which a product refuses."""
Handler = Callable[[Request[Any, Any, State], Any], JsonResponse]

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
    words = words_of(table, type(error))
    return status_of(table, type(error)), words(error) if callable(words) else words


def status_of(table: Mapping[type[ForetellError], RefusalRow], kind: type[ForetellError]) -> int:
    """Return the status of a class of refusals."""
    for family in kind.__mro__:
        if family in table and (status := table[family].status) is not None:
            return status
        if family in STATUS_BY_FAMILY:
            return STATUS_BY_FAMILY[family]
    raise AssertionError(f"{kind.__name__} is in no family")


def words_of(
    table: Mapping[type[ForetellError], RefusalRow], kind: type[ForetellError]
) -> Words | str | None:
    """Return the words of a class of refusals."""
    rows = (table[family] for family in kind.__mro__ if family in table)
    return next((row.words for row in rows if row.words is not None), None)


def handlers(body_of: BodyOf) -> dict[int | type[Exception], Handler]:
    """Return Litestar's exception handlers for an API's bodies."""

    def refuse(_: Request[Any, Any, State], error: ForetellError) -> JsonResponse:
        status, body = body_of(error)
        response = json_response(body, status)
        if error.retry_after_s is not None:
            response.headers["retry-after"] = str(error.retry_after_s)
        return response

    def fail(request: Request[Any, Any, State], error: Exception) -> JsonResponse:
        log.error("unhandled error", path=request.url.path, exc_info=error)
        status, body = body_of(InternalError())
        return json_response(body, status)

    def refuse_http(request: Request[Any, Any, State], error: HTTPException) -> JsonResponse:
        if error.status_code >= 500:  # noqa: PLR2004 - HTTP's own number
            return fail(request, error)
        refusal = _http_refusal(request, error)
        response = json_response(body_of(refusal)[1], error.status_code)
        if isinstance(refusal, MethodNotAllowed):
            response.headers["allow"] = ", ".join(refusal.allowed)
        return response

    return {ForetellError: refuse, HTTPException: refuse_http, Exception: fail}


def with_head(allowed: str) -> list[str]:
    """Return the methods of a route in their order, among them HEAD, which works where GET does.

    The framework lists those that it knows: the server turns HEAD into GET before.
    """
    names = set(allowed.split(", "))
    return sorted(names | {"HEAD"} if "GET" in names else names)


def _http_refusal(request: Request[Any, Any, State], error: HTTPException) -> ForetellError:
    """Return the refusal for an exception of the framework."""
    if isinstance(error, MethodNotAllowedException):
        allowed = with_head((error.headers or {}).get("allow", ""))
        return MethodNotAllowed(sent_method(request), allowed)
    if isinstance(error, NotFoundException):
        return UnknownRoute(error.detail)
    return HttpRefusal(error.detail)
