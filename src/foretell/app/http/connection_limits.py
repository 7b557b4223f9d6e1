"""The bounds of HTTP connections."""

from typing import Final, NamedTuple

from foretell.app.http.request_head import HEADERS_MAX


class ConnectionLimits(NamedTuple):
    """Bounds of one connection, in bytes and seconds."""

    head_bytes_max: int = 64 * 1024
    """Of a path with its query, and of them with all headers."""
    headers_max: int = HEADERS_MAX
    silence_deadline_s: float = 20.0
    """Until the first byte of a new connection."""
    request_deadline_s: float = 60.0
    """From the first byte of a request to its last."""
    keep_alive_s: float = 75.0
    """From an answer to the first byte of the next request."""
    linger_s: float = 2.0
    """From a refusal that ends the connection to its end, unless the client closes it before."""
    stall_deadline_s: float = 75.0
    """Until a client has read most of what waits to be sent; an answer in parts waits for that."""
    provisional_s: float = 5.0
    """Until a connection that is admitted provisionally has shown a key."""
    piece_bytes: int = 1024
    """Parsed before it is looked how many requests wait for their turn."""
    pipelined_max: int = 32
    """Requests that are parsed while an earlier one is answered; the piece that has one more is parsed whole."""


CONNECTION_LIMITS: Final = ConnectionLimits()
