"""Refusals of the discovery API: status and words for each class."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.edge.refusals import HttpRefusal, RefusalRow, row_of

DISCOVERY: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MalformedQuery: RefusalRow(422),
    UnknownSortField: RefusalRow(422, "order fields are not valid"),
    HttpRefusal: RefusalRow(400),
}


def discovery_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"type", "error"}`."""
    status, words = row_of(DISCOVERY, error)
    kinds = {
        400: "bad request",
        404: "not found error",
        405: "bad request",
        422: "validation error",
        429: "too many requests",
    }
    return status, {"type": kinds.get(status, "server error"), "error": words or error.message}
