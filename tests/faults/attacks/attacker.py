"""Strangers who want to stop the exchange: a process that attacks one port in one way.

Arguments: the way, the port, how many connections. The first line of its standard input has the condition
ids of markets, as JSON; the attack ends with the input. It prints a line when each connection has been open, one
when the exchange has closed one, and in the end what became of all, as JSON. Its connections come from other loopback
addresses than those of the tests.

Strangers come over a network and use no processor of the exchange, so this process has the lowest priority.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import resource
import socket
import struct
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

from foretell.domain.values.strict_json import VALUES_MAX

SOURCES: Final = tuple(f"127.0.1.{number}" for number in range(1, 21))
"""One address may have 1,000 connections; twenty may have more than the exchange keeps for strangers."""
HOST: Final = "127.0.0.1"
LOWEST_PRIORITY: Final = 19
BUFFERED_BYTES: Final = 4096
"""What the system and this process take of an answer that nobody reads."""
BODY_BYTES: Final = 1024 * 1024 - 2
PIECE_BYTES: Final = 64 * 1024
DRIP_S: Final = 0.5
AGAIN_S: Final = 0.05
OPENED_AT_ONCE: Final = 100

DEAR_READS: Final = (
    "/data/trades?limit=10000&takerOnly=false",
    "/discovery/markets?limit=500&order=liquidity",
)
PAGES: Final = ("/clob/markets",)
"""Reads that are not dear, and whose answers are large."""
SLOW_READERS: Final = "slow-readers"
UNREAD: Final = "unread-answers"
UNREAD_OF_ONE: Final = "unread-answers-of-one-address"
UNREAD_PAGES: Final = "unread-pages-of-one-address"
REQUESTS: Final = "requests-of-one-address"
PAYLOADS: Final = "payloads-of-one-address"
CHUNKS: Final = "tiny-chunks"
UNLIMITED: Final = (f"/relayer/deployed?address=0x{40 * '1'}", "/create-market/")
"""Requests that no rate limit counts by default."""
PAYLOAD: Final = b'{"markets":[' + b'{"a":1},' * (VALUES_MAX // 4) + b"1]}"
"""As many values as a payload may have, in few bytes: longer ones take more memory and wait for that."""
TOGETHER_S: Final = 2.0
"""Bodies that are kept back end at the same moments."""
TINY: Final = b"1\r\nx\r\n" * 10_000

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Way = Callable[[Stream], Awaitable[None]]
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
    """Send one request, after which a connection may be silent for longer than before its first one."""
    stream[1].write(b"GET /nothing HTTP/1.1\r\nHost: x\r\n\r\n")
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
    requests = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 10_000
    while True:
        stream[1].write(requests)
        await stream[1].drain()


def unread_of(targets: Sequence[str]) -> Way:
    """Return a way that asks for large answers again and again, and reads nothing of them."""

    async def leave_unread(stream: Stream) -> None:
        for target in itertools.cycle(random.sample(targets, len(targets))):
            stream[1].write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            await stream[1].drain()
            await asyncio.sleep(DRIP_S)

    return leave_unread


async def flood(stream: Stream) -> None:
    """Send a request as soon as the one before it is answered."""
    reader, writer = stream
    for target in itertools.cycle(UNLIMITED):
        writer.write(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        await _answer(reader)


async def payloads(stream: Stream) -> None:
    """Send payloads whose last bytes are kept back until those of all others."""
    reader, writer = stream
    head = b"POST /create-market/validate HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    while True:
        writer.write(head % len(PAYLOAD) + PAYLOAD[:-1])
        await writer.drain()
        await asyncio.sleep(TOGETHER_S - time.time() % TOGETHER_S)
        writer.write(PAYLOAD[-1:])
        await _answer(reader)


async def tiny_chunks(stream: Stream) -> None:
    """Send bodies in chunks of a byte each."""
    reader, writer = stream
    head = b"POST /create-market/validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    dropping = asyncio.create_task(_drop(reader))
    try:
        writer.write(head)
        while not dropping.done():
            writer.write(TINY)
            await writer.drain()
    finally:
        dropping.cancel()


async def _answer(reader: asyncio.StreamReader) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    _, _, length = head.partition(b"content-length: ")
    await reader.readexactly(int(length.partition(b"\r\n")[0]))


async def _drop(reader: asyncio.StreamReader) -> None:
    while await reader.read(1024 * 1024):
        pass


def slow_reader_of(condition_ids: list[str]) -> Way:
    """Return a way that asks for the books of markets again and again, and reads nothing of them."""
    requests = [
        a_frame(json.dumps({"operation": each, "markets": condition_ids}).encode())
        for each in ("subscribe", "unsubscribe")
    ]

    async def read_slowly(stream: Stream) -> None:
        await _open_stream(stream)
        for request in itertools.cycle(requests):
            stream[1].write(request)
            await stream[1].drain()

    return read_slowly


WAYS: Final[dict[str, Way]] = {
    "idle": idle,
    "slow-heads": slow_head,
    "upgrades-with-body": upgrade_with_body,
    "bodies": body,
    "frames": frames,
    "pipelined": pipelined,
    UNREAD: unread_of(DEAR_READS),
    UNREAD_OF_ONE: unread_of(DEAR_READS),
    UNREAD_PAGES: unread_of(PAGES),
    REQUESTS: flood,
    PAYLOADS: payloads,
    CHUNKS: tiny_chunks,
}
OF_ONE: Final = frozenset({UNREAD_OF_ONE, UNREAD_PAGES, REQUESTS, PAYLOADS, CHUNKS})
"""Ways whose connections all come from one address."""


class Strangers:
    """Connections that are kept at it: each that is closed is opened again."""

    def __init__(self, way: Way, port: int, sources: Sequence[str]) -> None:
        self._way = way
        self._port = port
        self._opening = asyncio.Semaphore(OPENED_AT_ONCE)
        self._sources: Iterator[str] = itertools.cycle(sources)
        self.opened = 0
        self.closed = 0
        """By the exchange."""
        self._one_closed = asyncio.Event()

    async def attack(self, connections: int) -> None:
        """Attack until the end of the input, or longer until each connection has been open."""
        began = [asyncio.Event() for _ in range(connections)]
        tasks = [asyncio.create_task(self._keep(each)) for each in began]
        for each in began:
            await each.wait()
        _print("began")
        reporting = asyncio.create_task(self._report_one_closed())
        await asyncio.to_thread(sys.stdin.read)
        reporting.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)

    async def _keep(self, began: asyncio.Event) -> None:
        source = next(self._sources)
        while True:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                async with self._opening:
                    stream = await self._open(source)
                began.set()
                self.opened += 1
                try:
                    await self._way(stream)
                finally:
                    stream[1].transport.abort()
            self.closed += 1
            self._one_closed.set()
            await asyncio.sleep(AGAIN_S)

    async def _report_one_closed(self) -> None:
        await self._one_closed.wait()
        _print("closed")

    async def _open(self, source: str) -> Stream:
        client = socket.socket()
        try:
            client.settimeout(0)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFERED_BYTES)
            client.bind((source, 0))
            await asyncio.get_running_loop().sock_connect(client, (HOST, self._port))
            return await asyncio.open_connection(sock=client, limit=BUFFERED_BYTES)
        except BaseException:
            client.close()
            raise


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(way: str, port: int, connections: int) -> None:
    """Attack, and print what became of it."""
    condition_ids = json.loads(sys.stdin.readline())
    sources = SOURCES[:1] if way in OF_ONE else SOURCES
    strangers = Strangers(WAYS.get(way) or slow_reader_of(condition_ids), port, sources)
    await strangers.attack(connections)
    _print(json.dumps({"opened": strangers.opened, "closed": strangers.closed}))


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
