"""A transport for answers whose connection may have ended."""

import asyncio


class WhileOpen:
    """A transport that takes what is written after its end: that fails until the end is reported, a turn later."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.close = transport.close
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        """Write, unless the connection has ended."""
        if not self._transport.is_closing():
            self._transport.write(data)
