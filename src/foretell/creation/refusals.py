"""Refusals of market creation: status and code for each class, and the classes that routes refuse with."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from foretell.domain.errors.chain import (
    ChainInconsistent,
    ChainUnavailable,
    RpcRefused,
    SandboxOnly,
)
from foretell.domain.errors.creation import (
    AlreadyInitialized,
    AuthExpired,
    AuthInvalid,
    ChallengeUsed,
    CreatorNotWhitelisted,
    CreatorUnderfunded,
    ImagesBusy,
    PreparationsBusy,
    RequestNotFound,
    TooManyPreparations,
    TooManyUnpaid,
    TxInvalid,
    TxPending,
)
from foretell.domain.errors.families import (
    ForetellError,
    IllegalTransition,
    InvalidFields,
    InvalidInput,
    code_of,
)
from foretell.domain.errors.http import (
    BodyTooLarge,
    MethodNotAllowed,
    OriginRefused,
    UnsupportedMedia,
    UploadsBusy,
    UploadTooLarge,
    UploadTooSlow,
)
from foretell.domain.errors.storage import (
    BlobDamaged,
    BlobNotFound,
    ItemTooLarge,
    StorageFull,
    StorageUnavailable,
)
from foretell.edge.documents.errors import PUBLIC_READ, Refusals
from foretell.edge.refusals import RefusalRow, row_of, words_of

WORKER: Final[Mapping[type[ForetellError], RefusalRow]] = {
    InvalidInput: RefusalRow(400, "validation_error"),
    MethodNotAllowed: RefusalRow(words="method_not_allowed"),
    OriginRefused: RefusalRow(403, "origin_not_allowed"),
    BodyTooLarge: RefusalRow(413, "payload_too_large"),
    UploadTooLarge: RefusalRow(413, "payload_too_large"),
    UploadTooSlow: RefusalRow(408, "upload_too_slow"),
    UnsupportedMedia: RefusalRow(415, "unsupported_media_type"),
    CreatorNotWhitelisted: RefusalRow(403),
    CreatorUnderfunded: RefusalRow(403),
    TooManyPreparations: RefusalRow(429),
    TooManyUnpaid: RefusalRow(429),
    IllegalTransition: RefusalRow(409, "invalid_state"),
    ChallengeUsed: RefusalRow(409, "invalid_state"),
    TxInvalid: RefusalRow(422),
    TxPending: RefusalRow(425),
    ChainUnavailable: RefusalRow(502, "chain_unavailable"),
    ChainInconsistent: RefusalRow(502, "chain_unavailable"),
    RpcRefused: RefusalRow(502, "chain_unavailable"),
    StorageUnavailable: RefusalRow(502, "storage_unavailable"),
    StorageFull: RefusalRow(502, "storage_unavailable"),
    ItemTooLarge: RefusalRow(502, "storage_unavailable"),
    BlobDamaged: RefusalRow(502, "storage_unavailable"),
}


def worker_code(error: ForetellError) -> str:
    """Return the wire code of a refusal."""
    return row_of(WORKER, error)[1] or error.code


def worker_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"error": {"code", "message", "details"}}`."""
    status, _ = row_of(WORKER, error)
    return status, {
        "error": {
            "code": worker_code(error),
            "message": error.message,
            "details": _worker_details(error),
        }
    }


def _worker_details(error: ForetellError) -> object:
    """Return a list of problems if there can be several, else the values, or null."""
    details = error.details
    if isinstance(error, InvalidInput):
        return details.get("problems", _problem(error))
    if isinstance(error, TxInvalid | TxPending):
        return details["txs"]
    return details or None


def _problem(error: ForetellError) -> list[dict[str, object]] | None:
    """Return the problem of one field, which its message does not name again; None if no field is named."""
    field = error.details.get("field")
    if field is None:
        return None
    return [{"field": field, "message": error.message.removeprefix(f"{field} ")}]


def _code_of(kind: type[ForetellError]) -> str:
    words = words_of(WORKER, kind)
    return words if isinstance(words, str) else code_of(kind)


class WorkerError(msgspec.Struct):
    """A refusal: its code, its message, and its problems or values."""

    code: str
    message: str
    details: list[Any] | dict[str, Any] | None


class WorkerRefusal(msgspec.Struct):
    """The body of a refusal."""

    error: WorkerError


DOCUMENTED: Final = Refusals(WORKER, WorkerRefusal, _code_of)

Refused = tuple[type[ForetellError], ...]

CHAIN: Final[Refused] = (ChainUnavailable, ChainInconsistent, RpcRefused)
STORAGE: Final[Refused] = (StorageUnavailable, BlobDamaged)
BLOB: Final[Refused] = (BlobNotFound, *STORAGE)
PREPARE: Final[Refused] = (
    *PUBLIC_READ,
    InvalidFields,
    AuthInvalid,
    AuthExpired,
    RequestNotFound,
    ChallengeUsed,
    AlreadyInitialized,
    UnsupportedMedia,
    UploadTooLarge,
    UploadTooSlow,
    UploadsBusy,
    TooManyPreparations,
    TooManyUnpaid,
    PreparationsBusy,
    ImagesBusy,
    OriginRefused,
    SandboxOnly,
    *CHAIN,
    *STORAGE,
    StorageFull,
)
FINALIZE: Final[Refused] = (
    *PUBLIC_READ,
    InvalidFields,
    RequestNotFound,
    IllegalTransition,
    TxInvalid,
    TxPending,
    OriginRefused,
    *CHAIN,
)
