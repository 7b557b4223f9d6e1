"""The data that arrives on a connection before it may be parsed."""

import asyncio
from collections.abc import Callable
from functools import partial

from typing_extensions import override
from uvicorn.protocols.http.flow_control import FlowControl

from foretell.edge.codec import HeldBytes
from foretell.runtime.loop_share import FairTurns


class EarlyData(FlowControl):
    """The flow control of a connection, which keeps data that is early and reads nothing more meanwhile.

    The framework reads on whenever an application asks for its body; that has to wait for what is kept, and for the
    turn of the client. Its event, for answers that wait for their client, takes a kilobyte, so it is made when the first
    of them waits.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._is_writable: asyncio.Event | None = None
        self._kept = b""
        self._held = HeldBytes()
        self._is_wanted = True
        """Whether more is to be read, in a turn if it has to wait for one."""
        self.awaits_turn = False
        """Whether what is kept may not be taken, and nothing is read, until it is the client's turn."""

    def __len__(self) -> int:
        """Return how many bytes are kept."""
        return len(self._kept)

    def keep(self, data: bytes, client: str, *, is_known: bool, free_bytes: int = 0) -> None:
        """Keep data of a client, or refuse it when bodies have all the memory; the first bytes may not count."""
        self.pause_reading()
        if not self._held.size:
            self._held.begin(client, is_known=is_known)
        self._held.add(max(0, len(self._kept) + len(data) - free_bytes - self._held.size))
        self._kept += data

    def take(self) -> bytes:
        """Return what is kept, and keep it no longer."""
        data, self._kept = self._kept, b""
        self._held.end()
        return data

    def await_turn(self, turns: FairTurns, client: str, when_due: Callable[[], None]) -> None:
        """Read nothing until it is the client's turn, and call `when_due` then."""
        if not (self.awaits_turn or self._transport.is_closing()):
            self.awaits_turn = True
            super().pause_reading()
            turns.await_turn(client, partial(self._take_turn, when_due))

    def _take_turn(self, when_due: Callable[[], None]) -> None:
        self.awaits_turn = False
        if not self._transport.is_closing():
            if self._is_wanted:
                super().resume_reading()
            when_due()

    @override
    async def drain(self) -> None:
        """Wait until an answer may be written."""
        if self.write_paused:
            if self._is_writable is None:
                self._is_writable = asyncio.Event()
            await self._is_writable.wait()

    @override
    def pause_writing(self) -> None:
        self.write_paused = True

    @override
    def resume_writing(self) -> None:
        self.write_paused = False
        if self._is_writable is not None:
            self._is_writable.set()
            self._is_writable = None

    @override
    def pause_reading(self) -> None:
        self._is_wanted = False
        super().pause_reading()

    @override
    def resume_reading(self) -> None:
        if not self._kept:
            self._is_wanted = True
            if not self.awaits_turn:
                super().resume_reading()
