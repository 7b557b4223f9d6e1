"""Connections that count the frames they get: of an exchange's stream, or of bare sockets.

Both count in the same way, so that the reading costs the same. The lag of one frame in some is read: the time from its
publication, which it has in milliseconds, until its bytes are here.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import Final, cast

import msgspec
from typing_extensions import override

from foretell.app.clock_and_ids import now_ms
from foretell.domain.errors.command import BenchFailed

LAG_OF_ONE_IN: Final = 16
CONNECTIONS_PER_ADDRESS: Final = 500
"""An exchange bounds the connections of one address, and this machine has many."""
CONNECTING_AT_ONCE: Final = 50
DEADLINE_S: Final = 120.0
_HEAD_END: Final = b"\r\n\r\n"
_STAMP: Final = b'"server_ts_ms":'
_STAMP_DIGITS: Final = 13
_TEXT: Final = 0x81
_PING: Final = 0x89
_PONG: Final = 0x8A
_MASK: Final = 0x80
_SHORT_MAX: Final = 125
_LONG: Final = 126
_LENGTH_BITS: Final = 0x7F


class Audience:
    """All connections of a measurement, and what they got."""

    def __init__(self) -> None:
        self.readers: list[StreamReader] = []
        self.lags_ms: list[float] = []
        self.frame = b""
        """The last frame of which the lag was read, with its head."""
        self._left = 0
        self._is_broken = False
        self._all_read = asyncio.Event()

    async def open(self, port: int, count: int, opening: Sequence[bytes] = ()) -> None:
        """Open connections; each sends its opening, if there are any, and waits for a frame."""
        for start in range(0, count, CONNECTING_AT_ONCE):
            numbers = range(start, min(start + CONNECTING_AT_ONCE, count))
            async with asyncio.timeout(DEADLINE_S):
                await asyncio.gather(*(self._open(port, each, opening) for each in numbers))

    def expect(self, frames: int) -> None:
        """Count down from this number of frames, over all connections."""
        self._left += frames
        self._all_read.clear()

    async def wait(self) -> float:
        """Return the time at which the last frame that is expected came."""
        try:
            async with asyncio.timeout(DEADLINE_S):
                await self._all_read.wait()
        except TimeoutError as error:
            raise BenchFailed(f"{self._left} frames did not come in {DEADLINE_S:.0f} s") from error
        if self._is_broken:
            raise BenchFailed("a connection was closed before all frames had come")
        return time.perf_counter()

    def take(self, frames: int) -> None:
        """Count frames."""
        self._left -= frames
        if self._left <= 0:
            self._all_read.set()

    def fail(self) -> None:
        """End a wait with a failure: a connection was lost."""
        self._is_broken = True
        self._all_read.set()

    def close(self) -> None:
        """Close all connections."""
        for reader in self.readers:
            reader.close()

    async def _open(self, port: int, number: int, opening: Sequence[bytes]) -> None:
        loop = asyncio.get_running_loop()
        address = f"127.0.0.{2 + number // CONNECTIONS_PER_ADDRESS}"
        sent = opening[number] if opening else b""
        _, reader = await loop.create_connection(
            lambda: StreamReader(self, sent), "127.0.0.1", port, local_addr=(address, 0)
        )
        self.readers.append(reader)
        await reader.ready


class StreamReader(asyncio.Protocol):
    """One connection; with an opening it first gets the head of a response and one frame."""

    def __init__(self, audience: Audience, opening: bytes) -> None:
        self._audience = audience
        self._opening = opening
        self._rest = b""
        self._has_head = not opening
        self._frames = 0
        self._is_closing = False
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        if self._opening:
            head, mark, _ = self._opening.partition(_HEAD_END)
            self._transport.write(head + mark)
        else:
            self.ready.set_result(None)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ready.done():
            self.ready.set_exception(BenchFailed("a connection was refused"))
        elif not self._is_closing:
            self._audience.fail()

    @override
    def data_received(self, data: bytes) -> None:
        data = self._rest + data if self._rest else data
        if not self._has_head:
            end = data.find(_HEAD_END)
            if end < 0:
                self._rest = data
                return
            self._has_head, data = True, data[end + len(_HEAD_END) :]
            self._transport.write(self._opening.partition(_HEAD_END)[2])
        frames = self._count(data)
        if frames and not self.ready.done():
            self.ready.set_result(None)
        elif frames:
            self._audience.take(frames)

    def close(self) -> None:
        """Close the connection."""
        self._is_closing = True
        self._transport.close()

    def _count(self, data: bytes) -> int:
        """Return the number of whole frames of text, answer pings, and keep the rest."""
        place, frames, size = 0, 0, len(data)
        while size - place >= 4:  # noqa: PLR2004 - the longest head of a frame below 64 KiB
            length = data[place + 1] & _LENGTH_BITS
            begin = place + 2
            if length == _LONG:
                length, begin = int.from_bytes(data[begin : begin + 2]), begin + 2
            end = begin + length
            if end > size:
                break
            if data[place] == _PING:
                self._transport.write(_masked(data[begin:end], _PONG))
                place = end
                continue
            self._frames += 1
            if self._frames % LAG_OF_ONE_IN == 0:
                self._note_lag(data[place:end])
            frames, place = frames + 1, end
        self._rest = data[place:]
        return frames

    def _note_lag(self, frame: bytes) -> None:
        begin = frame.find(_STAMP) + len(_STAMP)
        if begin >= len(_STAMP):
            published_ms = int(frame[begin : begin + _STAMP_DIGITS])
            self._audience.lags_ms.append(float(max(now_ms() - published_ms, 0)))
            self._audience.frame = frame


def opening_of(path: str, tokens: Sequence[int]) -> bytes:
    """Return the bytes with which a connection of the market channel begins: it subscribes, and sends a ping."""
    head = (
        f"GET {path}/ws/market HTTP/1.1\r\nHost: bench\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    request = {"type": "market", "assets_ids": list(map(str, tokens)), "initial_dump": False}
    return head.encode() + _masked(msgspec.json.encode(request)) + _masked(b"PING")


def _masked(payload: bytes, kind: int = _TEXT) -> bytes:
    """Return a frame of a client, whose mask is zero."""
    if len(payload) <= _SHORT_MAX:
        head = bytes((kind, _MASK | len(payload)))
    else:
        head = bytes((kind, _MASK | _LONG)) + len(payload).to_bytes(2)
    return head + bytes(4) + payload
