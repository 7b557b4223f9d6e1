"""Answers of the server itself, to requests that reach no API: malformed, too long or too slow ones.

They have the form of the API that the path belongs to, as far as the path is known, else that of the gateway.
The connection closes after each.
"""

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Final

import msgspec

from foretell.creation.refusals import worker_body
from foretell.domain.errors.families import ForetellError
from foretell.edge.refusals import BodyOf
from foretell.edge.security_headers import SECURITY_LINES
from foretell.edge.telemetry import METRICS, OTHER

API: Final = "none"
"""The label of these answers among the counts of requests."""

NO_APIS: Final[Mapping[str, BodyOf]] = MappingProxyType({})


class ConnectionRefusals:
    """Writes answers in the form of each API, by the prefixes of their paths."""

    def __init__(self, new_id: Callable[[], str], body_by_prefix: Mapping[str, BodyOf] = NO_APIS):
        self._new_id = new_id
        self._body_by_prefix = {prefix.encode(): body for prefix, body in body_by_prefix.items()}

    def answer(
        self, refusal: ForetellError, url: bytes, default_headers: list[tuple[bytes, bytes]]
    ) -> bytes:
        """Return the whole answer to a request for this path, or for a part of it."""
        status, body = self._body_of(url)(refusal)
        content = msgspec.json.encode(body)
        labels = (API, OTHER, OTHER, status)
        METRICS.count_by_labels[labels] = METRICS.count_by_labels.get(labels, 0) + 1
        retry = () if refusal.retry_after_s is None else (f"retry-after: {refusal.retry_after_s}",)
        lines = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
            *(f"{name.decode()}: {value.decode()}" for name, value in default_headers),
            "content-type: application/json",
            f"content-length: {len(content)}",
            *retry,
            "connection: close",
            f"x-request-id: {self._new_id()}",
        )
        head = "\r\n".join((*lines, "")) + SECURITY_LINES
        return f"{head}\r\n".encode("latin-1") + content

    def _body_of(self, url: bytes) -> BodyOf:
        """Return the form of the API that has the path."""
        prefix = b"/" + url[1:].partition(b"?")[0].partition(b"/")[0]
        alone = self._body_by_prefix.get(b"", worker_body)
        return self._body_by_prefix.get(prefix, alone)
