import asyncio

import pytest

from foretell.bench.rigs.echo import start_echo

pytestmark = pytest.mark.anyio

REQUEST = b"POST /order HTTP/1.1\r\nHost: bench\r\nContent-Length: 5\r\nKEY: x\r\n\r\nabcde"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde"


@pytest.mark.parametrize("cut", [len(REQUEST), 10, 60, len(REQUEST) - 2])
async def test_a_request_is_answered_with_its_body_however_it_arrives(cut: int) -> None:
    async with await start_echo() as server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for _ in range(2):
            writer.write(REQUEST[:cut])
            await writer.drain()
            await asyncio.sleep(0.01)
            writer.write(REQUEST[cut:])
            assert await reader.readexactly(len(ANSWER)) == ANSWER
        writer.close()
        await writer.wait_closed()
