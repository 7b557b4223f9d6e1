"""The bounds of HTTP connections."""

from typing import Final, NamedTuple

from foretell.app.http.request_head import HEADERS_MAX


class StreamLimits(NamedTuple):
    """Bounds of a WebSocket connection, in frames, bytes and seconds.

    The allowances suit a client that subscribes to all that one connection may have, in one burst, and
    sends a heartbeat each second after that.
    """

    frames_burst: int = 200
    frames_per_s: float = 20.0
    bytes_burst: int = 512 * 1024
    bytes_per_s: float = 64.0 * 1024
    piece_bytes: int = 1024
    """Parsed in one turn of the event loop."""
    receive_buffer_bytes: int = 32 * 1024
    """Of the socket, of which one read takes all; that is held until its turn."""
    message_s: float = 60.0
    """From the first byte of a message to its last; a stream whose client is not waited for is looked at again after it."""
    write_buffer_bytes: int = 16 * 1024
    """Of what the socket has not taken; while there is more, frames are queued, where they count."""
    handshake_s: float = 75.0
    """From the request to its answer, which may wait its turn for a minute."""
    closing_s: float = 2.0
    """From the close frame, or the end of the application, to the end of the connection."""


STREAM_LIMITS: Final = StreamLimits()


class ConnectionLimits(NamedTuple):
    """Bounds of one connection, in bytes and seconds."""

    head_bytes_max: int = 64 * 1024
    """Of a path with its query, and of them with all headers; and, with their objects, of the heads that wait for answers
    to earlier ones, beyond which no further one is begun."""
    headers_max: int = HEADERS_MAX
    silence_deadline_s: float = 20.0
    """Until the first byte of a new connection."""
    request_deadline_s: float = 60.0
    """From the first byte of a request to its last, without the time in which it is not read."""
    keep_alive_s: float = 75.0
    """From an answer to the first byte of the next request."""
    linger_s: float = 2.0
    """From a refusal that ends the connection to its end, unless the client closes it before."""
    write_buffer_bytes: int = 16 * 1024
    """Of what the socket has not taken; beyond it, what waits counts for the client, and no request is begun."""
    stall_deadline_s: float = 75.0
    """Until a client has read most of what waits to be sent, for which an answer in parts waits; and the rest of a last answer."""
    provisional_s: float = 5.0
    """Until a connection that is admitted provisionally has shown a key."""
    piece_bytes: int = 1024
    """Parsed before it is looked how many requests wait for their turn, which is also done after each head."""
    body_piece_bytes: int = 16 * 1024
    """The same of a body whose length is known: no other request begins in it."""
    pipelined_max: int = 32
    """Requests that are parsed while an earlier one is answered; the piece that has one more is parsed whole."""
    unread_bytes_max: int = 64 * 1024
    """Of a body that its application has not received; beyond it, what has arrived is not parsed."""
    unread_free_bytes: int = 4 * 1024
    """Of the body of the request that is answered next, which do not count in the memory for bodies until they are read."""
    unasked_body_bytes_max: int = 4 * 1024
    """Of the body of a GET or HEAD, which needs none."""
    chunks_free: int = 1024
    """Of a body, however small they are."""
    chunk_bytes_min: int = 64
    """Of a chunk beyond those, on average: each costs as much as many bytes."""
    turn_chunks_max: int = 64
    """Of a body, in one turn of the event loop; the next ones wait for a turn of their address, as a request does."""
    stream: StreamLimits = STREAM_LIMITS
    """Once it has become a WebSocket."""


CONNECTION_LIMITS: Final = ConnectionLimits()
