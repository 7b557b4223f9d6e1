"""Memory that a burst of bodies used is given back to the system, in a process of its own."""

import asyncio
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

pytestmark = pytest.mark.anyio

ADDRESSES = 10
CONNECTIONS = 400
BODY_BYTES = 256 * 1024
"""All bodies together are less than strangers may hold, and those of an address less than one may."""
MEMORY_BYTES_MAX = 2 * 1024**3
WITHIN_S = 90.0
GROWTH_MAX = 1.2
SERVER = """
import asyncio, sys
from pathlib import Path
from foretell.app.gateway import bind, build_server
from foretell.runtime.garbage_collection import CollectionLimits, collect_when_idle, settle_memory

kept = []

async def app(scope, receive, send):
    pieces, more = [], True
    while more:
        message = await receive()
        pieces.append(message.get("body", b""))
        kept.append(bytes(600))  # what stays is spread among what goes
        more = message.get("more_body", False)
    size = int(Path("/proc/self/statm").read_text().split()[1])
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

async def main():
    listener = bind("127.0.0.1", 0, "FORETELL_PORT")
    server = build_server(app, "127.0.0.1", 0)
    serving = asyncio.create_task(server.serve([listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    settle_memory()
    print(listener.getsockname()[1], flush=True)
    limits = CollectionLimits(check_s=0.1, idle_share_max=0.5, trim_every_s=float(sys.argv[1]), trim_share_max=1.0)
    await collect_when_idle(limits)

asyncio.run(main())
"""


@pytest.fixture
def port() -> Iterator[int]:
    """Run a server that gives memory back every half second."""
    command = (sys.executable, "-c", SERVER, "0.5")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


async def pages(port: int) -> int:
    """Return the pages that the server has in memory."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(WITHIN_S):
        head = await reader.readuntil(b"\r\n\r\n")
        (length,) = re.findall(rb"content-length: (\d+)", head)
        size = int(await reader.readexactly(int(length)))
    writer.close()
    return size


async def test_attack_h5_memory_is_given_back_after_a_burst_of_bodies(port: int) -> None:
    """After bodies of 2.2 GiB, 1.7 GiB stayed with the process."""
    before = await pages(port)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % BODY_BYTES
    streams = [
        await asyncio.open_connection(
            "127.0.0.1", port, local_addr=(f"127.0.0.{2 + number % ADDRESSES}", 0)
        )
        for number in range(CONNECTIONS)
    ]
    for _, writer in streams:
        writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        writer.write(head)
    for piece in range(4):
        for _, writer in streams:
            writer.write(bytes(BODY_BYTES // 4 - (piece == 3)))
            await writer.drain()
    ends_at_s = time.monotonic() + WITHIN_S
    while (during := await pages(port)) <= 2 * before and time.monotonic() < ends_at_s:  # noqa: ASYNC110 - the system has a part of the bodies until the server reads it
        await asyncio.sleep(0.05)
    for _, writer in streams:
        writer.transport.abort()
    ends_at_s = time.monotonic() + WITHIN_S
    while (after := await pages(port)) > GROWTH_MAX * before and time.monotonic() < ends_at_s:  # noqa: ASYNC110 - memory notifies no one
        await asyncio.sleep(0.2)
    assert during > 2 * before, "the bodies take memory"
    assert after <= GROWTH_MAX * before
