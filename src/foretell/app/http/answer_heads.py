"""The heads of answers that are written without the framework."""

from functools import lru_cache
from http import HTTPStatus
from typing import Final, Protocol

from foretell.edge.fast_route import FastResponse
from foretell.edge.security_headers import SECURITY_LINES

_STATUS_LINES: Final = {
    status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus
}
_SERVERS_KEPT_MAX: Final = 16


class ServerState(Protocol):
    """What a server knows of itself, as far as heads have it."""

    default_headers: list[tuple[bytes, bytes]]


class AnswerHeads:
    """Writes heads with a server's default headers, whose list the server replaces each second."""

    def __init__(self, server_state: ServerState) -> None:
        self._server_state = server_state
        self._default_headers: list[tuple[bytes, bytes]] = []
        self._default_lines = ""

    def head(self, answer: FastResponse, request_id: str, limits: str, *, is_last: bool) -> bytes:
        """Return the head of an answer; `limits` are the header lines of its rate limits."""
        retry = "" if answer.retry_after_s is None else f"retry-after: {answer.retry_after_s}\r\n"
        close = "connection: close\r\n" if is_last else ""
        return (
            f"{_STATUS_LINES[answer.status]}{self._defaults()}content-type: application/json\r\n"
            f"content-length: {len(answer.body)}\r\n{retry}{limits}{close}x-request-id: {request_id}\r\n\r\n"
        ).encode("latin-1")

    def _defaults(self) -> str:
        headers = self._server_state.default_headers
        if headers is not self._default_headers:
            self._default_headers = headers
            lines = (f"{name.decode()}: {value.decode()}\r\n" for name, value in headers)
            self._default_lines = "".join(lines) + SECURITY_LINES
        return self._default_lines


@lru_cache(_SERVERS_KEPT_MAX)
def heads_of(server_state: ServerState) -> AnswerHeads:
    """Return the heads of a server's answers; all of its connections have them in common."""
    return AnswerHeads(server_state)
