"""Refusals of the web app's server: status and code for each class."""

from collections.abc import Mapping
from typing import Final

from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import BodyTooLarge, MethodNotAllowed
from foretell.domain.errors.web import ForeignHost
from foretell.edge.refusals import RefusalRow, row_of

WEB: Final[Mapping[type[ForetellError], RefusalRow]] = {
    MethodNotAllowed: RefusalRow(),
    BodyTooLarge: RefusalRow(413),
    ForeignHost: RefusalRow(403),
}


def web_body(error: ForetellError) -> tuple[int, object]:
    """Return the status and the body `{"error": {"code", "message", "details"}}`."""
    status, _ = row_of(WEB, error)
    details = dict(error.details) or None
    return status, {"error": {"code": error.code, "message": error.message, "details": details}}
