"""Refusals of the data API: status and code for each class."""

from collections.abc import Mapping
from typing import Final

import msgspec

from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    ExecutionReverted,
    NothingIndexed,
    RpcRefused,
)
from foretell.domain.errors.families import ForetellError, NotFound, code_of
from foretell.domain.errors.http import (
    MalformedQuery,
    MissingParameter,
    NotServed,
    UnknownParameter,
)
from foretell.edge.documents.errors import PUBLIC_READ, Refusals
from foretell.edge.refusals import RefusalRow, row_of, words_of

DATA: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MalformedQuery: RefusalRow(400, "invalid_field"),
    MissingParameter: RefusalRow(400, "missing_field"),
    UnknownParameter: RefusalRow(400, "unknown_field"),
    NotFound: RefusalRow(404, "not_found"),
    NotServed: RefusalRow(403, "not_served"),
    NothingIndexed: RefusalRow(503, "nothing_indexed"),
    ChainUnavailable: RefusalRow(502, "chain_unavailable"),
    ChainInconsistent: RefusalRow(502, "chain_inconsistent"),
    RpcRefused: RefusalRow(502, "chain_refused"),
    ExecutionReverted: RefusalRow(502, "chain_refused"),
}


def data_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"error": "code: message"}`."""
    status, words = row_of(DATA, error)
    return status, {"error": f"{words or error.code}: {error.message}"}


def _code_of(kind: type[ForetellError]) -> str:
    words = words_of(DATA, kind)
    return words if isinstance(words, str) else code_of(kind)


class DataError(msgspec.Struct):
    """A refusal: its code and its message in one text."""

    error: str


DOCUMENTED: Final = Refusals(DATA, DataError, _code_of, PUBLIC_READ)
