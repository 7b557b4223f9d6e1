"""A connection of messages, each with its length before it; what is said at once is sent at once."""

import asyncio
from abc import ABC, abstractmethod
from typing import Final, cast

import msgspec
import structlog
from typing_extensions import override

LENGTH_BYTES: Final = 4
MESSAGE_BYTES_MAX: Final = 64 * 1024 * 1024
UNREAD_BYTES_MAX: Final = 256 * 1024 * 1024
"""How much of what it is told the other end may leave unread before it is hung up on."""

log = structlog.get_logger(__name__)


def framed(message: bytes) -> bytes:
    """Return a message as it goes over the wire."""
    return len(message).to_bytes(LENGTH_BYTES, "little") + message


class FramedConnection(asyncio.Protocol, ABC):
    """One end; subclasses say what a message means."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._unsent: list[bytes] = []
        self._transport: asyncio.Transport | None = None

    @abstractmethod
    def take(self, message: bytes) -> None:
        """Take a message; ValueError and msgspec.MsgspecError hang up."""

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
            log.warning("hung up on the other end", cause=str(error))
            self.disconnect()
        del self._buffer[:start]

    def send(self, frame: bytes) -> None:
        """Send a framed message, with whatever else is said in this turn of the loop."""
        if not self._unsent:
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent.append(frame)

    def disconnect(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.abort()

    def _end(self, start: int) -> int | None:
        """Return where the message that starts here ends, or None when it is not whole yet."""
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
        if self._transport.get_write_buffer_size() > UNREAD_BYTES_MAX:
            log.error("hung up on one who does not read")
            self.disconnect()
