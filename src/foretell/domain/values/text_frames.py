"""Text frames of a WebSocket's server, in bytes (RFC 6455, section 5.2)."""

from typing import Final

SHORT_MAX: Final = 125
LONG_BEGINS: Final = 2**16


def frame_head(size: int) -> bytes:
    """Return the head of a whole text frame whose payload has this size in bytes."""
    if size <= SHORT_MAX:
        return b"\x81%c" % size
    if size < LONG_BEGINS:
        return b"\x81\x7e%b" % size.to_bytes(2)
    return b"\x81\x7f%b" % size.to_bytes(8)


def text_frame(payload: bytes) -> bytes:
    """Return a whole text frame."""
    return frame_head(len(payload)) + payload
