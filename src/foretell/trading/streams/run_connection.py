"""The reader and the writer of one WebSocket, which run until either side closes it."""

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from foretell.domain.errors.streams import MalformedMessage
from foretell.trading.streams.connection import CLOSE_NORMAL, Connection, Handle, Socket
from foretell.trading.streams.message_turns import MessageTurns

CLOSE_WITHIN_S: Final = 5.0
SUBSCRIBE_WITHIN_S: Final = 120.0

PING: Final = "PING"
PONG: Final = "PONG"


async def run_connection(
    socket: Socket,
    connection: Connection,
    handle: Handle,
    turns: MessageTurns,
    *,
    subscribe_within_s: float = SUBSCRIBE_WITHIN_S,
    close_within_s: float = CLOSE_WITHIN_S,
) -> None:
    """Read and write until either side closes the connection."""
    opening = await socket.receive()
    assert opening["type"] == "websocket.connect"
    await socket.send({"type": "websocket.accept"})
    expiry = asyncio.get_running_loop().call_later(subscribe_within_s, connection.expire)
    writer = asyncio.create_task(connection.write(socket))
    tasks = {
        writer,
        asyncio.create_task(_read(socket, connection, handle, turns)),
        asyncio.create_task(_end(connection)),
    }
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if connection.close_code is not None:
            await asyncio.wait({writer}, timeout=close_within_s)
    finally:
        expiry.cancel()
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
        connection.drop()
    for outcome in outcomes:
        if isinstance(outcome, Exception) and not isinstance(outcome, OSError):
            raise outcome


async def _end(connection: Connection) -> None:
    await connection.ended.wait()


async def _read(
    socket: Socket, connection: Connection, handle: Handle, turns: MessageTurns
) -> None:
    """Handle messages, each in a turn of the client, until the client leaves or the connection is to be closed."""
    while connection.close_code is None:
        message: Mapping[str, Any] = await socket.receive()
        if message["type"] != "websocket.receive":
            connection.has_left = message.get("code") == CLOSE_NORMAL
            return
        await turns.run(
            connection.client or connection,
            partial(_answer, connection, handle, message.get("text")),
        )
        await asyncio.sleep(0)  # the loop turns between two messages


async def _answer(connection: Connection, handle: Handle, text: str | None) -> None:
    if text is None:
        connection.refuse(MalformedMessage("a frame must be text"))
    elif text.strip().upper() == PING:
        connection.send_frame(PONG)
    else:
        await handle(connection, text)
