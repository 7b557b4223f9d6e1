"""A stranger who wants to stop the exchange: a process that attacks one port in one way.

Arguments: the way, the port, how many connections, for how many seconds. It prints a line when the
attack is on. Its connections come from another loopback address than those of the tests.
"""

import asyncio
import contextlib
import resource
import struct
import sys
from collections.abc import Awaitable, Callable
from typing import Final

SOURCE: Final = "127.0.0.9"
HOST: Final = "127.0.0.1"
BODY_BYTES: Final = 1024 * 1024 - 2
PIECE_BYTES: Final = 64 * 1024
DRIP_S: Final = 0.5
AGAIN_S: Final = 0.05
OPENED_AT_ONCE: Final = 100

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
UPGRADE: Final = (
    b"GET /clob/ws/market HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def a_frame(text: bytes) -> bytes:
    """Return a masked text frame; the mask is zero, so the text is sent as it is."""
    length = len(text)
    size = bytes([0x80 | length]) if length < 126 else b"\xfe" + struct.pack(">H", length)
    return b"\x81" + size + bytes(4) + text


async def idle(stream: Stream) -> None:
    await stream[0].read()


async def slow_head(stream: Stream) -> None:
    reader, writer = stream
    for byte in b"GET /clob/time HTTP/1.1\r\nHost: x\r\nX-Long: " + b"x" * 200:
        writer.write(bytes([byte]))
        await writer.drain()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRIP_S):
                if not await reader.read(1):
                    return


async def upgrade_with_body(stream: Stream) -> None:
    stream[1].write(UPGRADE + b"Content-Length: 100\r\n\r\nabc")
    await stream[0].read()


async def body(stream: Stream) -> None:
    reader, writer = stream
    head = f"POST /clob/order HTTP/1.1\r\nHost: x\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    writer.write(head.encode())
    for _ in range(BODY_BYTES // PIECE_BYTES):
        writer.write(bytes(PIECE_BYTES))
        await writer.drain()
    await reader.read()


async def _open_stream(stream: Stream) -> None:
    stream[1].write(UPGRADE + b"\r\n")
    await stream[0].readuntil(b"\r\n\r\n")


async def frames(stream: Stream) -> None:
    await _open_stream(stream)
    reading = asyncio.create_task(_drop(stream[0]))
    flood = a_frame(b"PING") * 8_000
    try:
        while not reading.done():
            stream[1].write(flood)
            await stream[1].drain()
    finally:
        reading.cancel()


async def pipelined(stream: Stream) -> None:
    """Send the shortest requests without reading an answer."""
    requests = b"GET / HTTP/1.1\r\n\r\n" * 10_000
    while True:
        stream[1].write(requests)
        await stream[1].drain()


async def _drop(reader: asyncio.StreamReader) -> None:
    while await reader.read(1024 * 1024):
        pass


async def slow_reader(stream: Stream) -> None:
    """Ask for books again and again, and read nothing of them."""
    await _open_stream(stream)
    tokens = b",".join(b'"%d"' % number for number in range(200))
    ask = a_frame(b'{"type":"market","assets_ids":[%b]}' % tokens)
    while True:
        stream[1].write(ask)
        await stream[1].drain()
        await asyncio.sleep(AGAIN_S)


WAYS: Final[dict[str, Callable[[Stream], Awaitable[None]]]] = {
    "idle": idle,
    "slow-heads": slow_head,
    "upgrades-with-body": upgrade_with_body,
    "bodies": body,
    "frames": frames,
    "pipelined": pipelined,
    "slow-readers": slow_reader,
}


async def attack(way: str, port: int, connections: int, seconds: float) -> None:
    """Keep this many connections at it; each that is closed is opened again."""
    opening = asyncio.Semaphore(OPENED_AT_ONCE)
    began = asyncio.Event()

    async def keep() -> None:
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                async with opening:
                    stream = await asyncio.open_connection(HOST, port, local_addr=(SOURCE, 0))
                began.set()
                try:
                    await WAYS[way](stream)
                finally:
                    stream[1].transport.abort()
            await asyncio.sleep(AGAIN_S)

    tasks = [asyncio.create_task(keep()) for _ in range(connections)]
    await began.wait()
    sys.stdout.write("began\n")
    sys.stdout.flush()
    await asyncio.sleep(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


if __name__ == "__main__":
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(attack(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
