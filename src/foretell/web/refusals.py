"""Refusals of the web app's server: status and code for each class."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from foretell.domain.errors.chain import ExecutionReverted, RpcRefused
from foretell.domain.errors.families import ForetellError, code_of
from foretell.domain.errors.http import BodyTooLarge, MethodNotAllowed
from foretell.domain.errors.web import ForeignHost
from foretell.edge.documents.errors import Refusals
from foretell.edge.refusals import RefusalRow, row_of

WEB: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MethodNotAllowed: RefusalRow(),
    BodyTooLarge: RefusalRow(413),
    ForeignHost: RefusalRow(403),
    RpcRefused: RefusalRow(400),
    ExecutionReverted: RefusalRow(400),
}
"""What the chain refuses here is what the page asked of it, so it is the request that is wrong."""


class WebErrorContent(msgspec.Struct):
    """The code, the message and the details of a refusal."""

    code: str
    message: str
    details: dict[str, Any] | None


class WebError(msgspec.Struct):
    """A refusal."""

    error: WebErrorContent


DOCUMENTED: Final = Refusals(WEB, WebError, code_of)


def web_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"error": {"code", "message", "details"}}`."""
    status, _ = row_of(WEB, error)
    details = dict(error.details) or None
    return status, {"error": {"code": error.code, "message": error.message, "details": details}}
