"""A connection of messages, each after its length; all messages of one turn are written at once."""

import asyncio
from abc import ABC, abstractmethod
from typing import Final, cast

import msgspec
import structlog
from typing_extensions import override

LENGTH_BYTES: Final = 4
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""How much the peer may leave unread before it is disconnected."""

log = structlog.get_logger(__name__)


def framed(message: bytes) -> bytes:
    """Return a message with its length before it."""
    return len(message).to_bytes(LENGTH_BYTES, "little") + message


class FramedConnection(asyncio.Protocol, ABC):
    """One end of a connection; subclasses handle the messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None

    @abstractmethod
    def take(self, message: bytes) -> None:
        """Handle a message; ValueError and msgspec.MsgspecError end the connection."""

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    @override
    def data_received(self, data: bytes) -> None:
        self._buffer += data
        start = 0
        try:
            while (end := self._end(start)) is not None:
                self.take(bytes(self._buffer[start + LENGTH_BYTES : end]))
                start = end
        except (ValueError, msgspec.MsgspecError) as error:
            log.warning("peer disconnected", cause=str(error))
            self.disconnect()
        del self._buffer[:start]

    def send(self, frame: bytes) -> None:
        """Send a framed message, together with all others of this turn of the event loop."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frame)

    def disconnect(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self, start: int) -> int | None:
        """Return where the message that starts here ends, or None while it is incomplete."""
        if len(self._buffer) < start + LENGTH_BYTES:
            return None
        length = int.from_bytes(self._buffer[start : start + LENGTH_BYTES], "little")
        if length > MESSAGE_BYTES_MAX:
            raise ValueError(f"a message of {length} bytes")
        end = start + LENGTH_BYTES + length
        return end if end <= len(self._buffer) else None

    def _flush(self) -> None:
        unsent, self._unsent = self._unsent, []
        if self._transport is None or self._transport.is_closing():
            return
        self._transport.write(b"".join(unsent))
        unread_bytes = self._transport.get_write_buffer_size()
        if unread_bytes > UNREAD_BYTES_MAX:
            log.error("peer disconnected", cause="it does not read", unread_bytes=unread_bytes)
            self.disconnect()
