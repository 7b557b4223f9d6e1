"""Refusals of the discovery API: status and type."""

from typing import Any

import pytest

from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.families import ForetellError
from foretell.domain.errors.http import MalformedBody, MalformedQuery, UnknownRoute
from foretell.domain.errors.storage import StoreUnavailable


def refused(error: ForetellError) -> tuple[int, Any]:
    status, body = discovery_body(error)
    return status, body


@pytest.mark.parametrize(
    ("error", "status", "kind"),
    [
        (UnknownRoute("Not Found"), 404, "not found error"),
        (MalformedQuery("limit", "an integer"), 422, "validation error"),
        (MalformedBody("?"), 400, "bad request"),
        (StoreUnavailable("?"), 503, "server error"),
    ],
    ids=["unknown route", "malformed query", "malformed body", "store unavailable"],
)
def test_a_discovery_refusal_has_the_type_of_its_status(
    error: ForetellError, status: int, kind: str
) -> None:
    seen, body = refused(error)
    assert (seen, body["type"]) == (status, kind)
