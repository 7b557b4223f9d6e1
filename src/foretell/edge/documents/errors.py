"""The refusals of an operation: those that every route has, and those that its description adds."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import (
    BodiesBusy,
    BodyCutOff,
    BodyTooLarge,
    ClientGone,
    ClockSkew,
    L1SignatureMismatch,
    L2SignatureMismatch,
    MalformedBody,
    MalformedQuery,
    MissingHeader,
    MissingParameter,
    ReadonlyKeyRefused,
    RevokedKey,
    Starting,
    TooManyRequests,
    UnboundSignature,
    UnknownKey,
    UnknownParameter,
    WrongPassphrase,
)
from foretell.domain.errors.storage import ReadsBusy, ReadTooSlow, StoreUnavailable, WritesBusy
from foretell.domain.errors.web import ForeignHost, WrongOperatorToken, WrongSandboxToken
from foretell.edge.documents.description import Described
from foretell.edge.refusals import InternalError, RefusalRow, status_of

Refusal = type[ForetellError]

ALWAYS: Final[tuple[Refusal, ...]] = (
    TooManyRequests,
    ClientGone,
    Starting,
    StoreUnavailable,
    InternalError,
)
PUBLIC_READ: Final[tuple[Refusal, ...]] = (ReadTooSlow, ReadsBusy)
"""Of every route that reads the tables for its answer, and of every one that a key signs."""
QUERY: Final[tuple[Refusal, ...]] = (UnknownParameter, MalformedQuery)
BODY: Final[tuple[Refusal, ...]] = (BodyTooLarge, BodyCutOff, BodiesBusy)
"""Of every route that reads a body, as each does that a key signs."""
SIGNED: Final[tuple[Refusal, ...]] = (MissingHeader, ClockSkew)
BY_LEVEL: Final[Mapping[str, tuple[Refusal, ...]]] = {
    "L1": (*SIGNED, L1SignatureMismatch, UnboundSignature),
    "L2": (
        *SIGNED,
        *BODY,
        UnknownKey,
        RevokedKey,
        ReadonlyKeyRefused,
        WrongPassphrase,
        L2SignatureMismatch,
        *PUBLIC_READ,
    ),
    "Readonly": (MissingHeader, UnknownKey, *PUBLIC_READ),
    "Builder": (
        *SIGNED,
        *BODY,
        UnknownKey,
        RevokedKey,
        WrongPassphrase,
        L2SignatureMismatch,
        *PUBLIC_READ,
    ),
    "Sandbox": (ForeignHost, WrongSandboxToken),
    "Operator": (WrongOperatorToken,),
}


class Refusals(NamedTuple):
    """How an API refuses: its table, the type of its bodies, and what any of its routes may refuse."""

    rows: Mapping[Refusal, RefusalRow]
    body: Any
    code_of: Callable[[Refusal], str]
    """Returns the word that distinguishes refusals of one status."""
    always: Sequence[Refusal] = ()

    def codes_by_status(self, method: str, described: Described) -> dict[int, list[str]]:
        """Return the codes of each status with which an operation may refuse."""
        codes: dict[int, set[str]] = {}
        for refusal in self.of_operation(method, described):
            codes.setdefault(status_of(self.rows, refusal), set()).add(self.code_of(refusal))
        return {status: sorted(codes[status]) for status in sorted(codes)}

    def of_operation(self, method: str, described: Described) -> set[Refusal]:
        """Return the refusals of an operation: its own, and those that its form brings."""
        found = {*ALWAYS, *self.always, *described.refusals}
        if described.is_keyed:
            found.add(WritesBusy)
        if method == "GET" or described.parameters:
            found.update(QUERY)
        if any(parameter.is_required for parameter in described.parameters):
            found.add(MissingParameter)
        if described.body is not None:
            found.update((MalformedBody, *BODY))
        if described.security is not None:
            for level in described.security.levels:
                found.update(BY_LEVEL[level])
        return found


def code_in(body: Any) -> str:
    """Return the code in the body of a refusal, wherever its API puts it."""
    error = body["error"]
    found = error["code"] if isinstance(error, dict) else body.get("code") or body.get("type")
    return str(found or error.partition(":")[0])
