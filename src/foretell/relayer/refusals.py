"""Refusals of the relayer: status and words for each class."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from foretell.domain.errors.chain import RpcRefused
from foretell.domain.errors.families import ForetellError, InvalidInput, Unauthenticated, code_of
from foretell.domain.errors.relayer import (
    BuilderGasReached,
    BuilderLimitReached,
    ExecutionFailed,
    OwnerGasReached,
    OwnerLimitReached,
)
from foretell.edge.documents.errors import Refusals
from foretell.edge.refusals import RefusalRow, row_of


def _field(error: ForetellError) -> str:
    return f"invalid_field {error.details['field']}" if "field" in error.details else error.code


RELAYER: Final[Mapping[type[ForetellError], RefusalRow]] = {
    Unauthenticated: RefusalRow(401, "unauthorized"),
    InvalidInput: RefusalRow(400, _field),
    RpcRefused: RefusalRow(502, "execution_failed"),
    ExecutionFailed: RefusalRow(502, "execution_failed"),
    OwnerLimitReached: RefusalRow(429),
    OwnerGasReached: RefusalRow(429),
    BuilderLimitReached: RefusalRow(429),
    BuilderGasReached: RefusalRow(429),
}


def relayer_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"error": "words: message", "code", "details"}`."""
    status, words = row_of(RELAYER, error)
    body: dict[str, object] = {
        "error": f"{words or error.code}: {error.message}",
        "code": error.code,
    }
    return status, body | ({"details": error.details} if error.details else {})


class RelayerError(msgspec.Struct):
    """A refusal: its words and its message in one text, its code, and its values."""

    error: str
    code: str
    details: dict[str, Any] | UnsetType = UNSET


DOCUMENTED: Final = Refusals(RELAYER, RelayerError, code_of)
