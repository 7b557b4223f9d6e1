import asyncio
from collections.abc import AsyncIterator
from typing import cast

import pytest
from typing_extensions import override

from foretell.engine.protocol.framing import (
    LENGTH_BYTES,
    MESSAGE_BYTES_MAX,
    FramedConnection,
    framed,
)

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0


class Echo(FramedConnection):
    """A server's end that sends every message back, and refuses one."""

    @override
    def take(self, message: bytes) -> None:
        if message == b"refuse":
            raise ValueError("refused")
        self.send(framed(message))


@pytest.fixture
async def port() -> AsyncIterator[int]:
    server = await asyncio.get_running_loop().create_server(Echo, "127.0.0.1", 0)
    async with server:
        yield cast("int", server.sockets[0].getsockname()[1])


async def replies(port: int, *parts: bytes) -> bytes:
    """Return everything that the server sends until it closes the connection."""
    async with asyncio.timeout(WITHIN_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.01)
        try:
            return await reader.read()
        except ConnectionResetError:
            return b"reset"
        finally:
            writer.close()


async def test_messages_arrive_whole_however_their_bytes_are_split(port: int) -> None:
    async with asyncio.timeout(WITHIN_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        raw = framed(b"one") + framed(b"") + framed(b"three")
        for part in (raw[:2], raw[2:9], raw[9:]):
            writer.write(part)
            await asyncio.sleep(0.01)
        assert await reader.readexactly(len(raw)) == raw
        writer.close()


@pytest.mark.parametrize(
    "sent",
    [framed(b"refuse"), (MESSAGE_BYTES_MAX + 1).to_bytes(LENGTH_BYTES, "little")],
    ids=["refused", "too long"],
)
async def test_a_message_that_is_refused_ends_the_connection(port: int, sent: bytes) -> None:
    assert await replies(port, sent) in {b"", b"reset"}
