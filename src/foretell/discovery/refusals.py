"""Refusals of the discovery API: status and words for each class."""

from collections.abc import Mapping
from typing import Final

import msgspec

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedQuery, UnknownSortField
from foretell.edge.documents.errors import PUBLIC_READ, Refusals
from foretell.edge.refusals import HttpRefusal, RefusalRow, row_of, status_of

DISCOVERY: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MalformedQuery: RefusalRow(422),
    UnknownSortField: RefusalRow(422, "order fields are not valid"),
    HttpRefusal: RefusalRow(400),
}


def discovery_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"type", "error"}`."""
    status, words = row_of(DISCOVERY, error)
    return status, {"type": _type_of(status), "error": words or error.message}


def _type_of(status: int) -> str:
    types = {
        400: "bad request",
        404: "not found error",
        405: "bad request",
        422: "validation error",
        429: "too many requests",
    }
    return types.get(status, "server error")


def _code_of(kind: type[ForetellError]) -> str:
    return _type_of(status_of(DISCOVERY, kind))


class DiscoveryError(msgspec.Struct):
    """A refusal: its type and its message."""

    type: str
    error: str


DOCUMENTED: Final = Refusals(DISCOVERY, DiscoveryError, _code_of, PUBLIC_READ)
