"""Streams whose connections, or whose server, are cut off or stand still, and clients that follow them."""

import asyncio
import contextlib
import json
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.faults.people import MARKETS
from tests.faults.processes import Processes
from tests.faults.rig import FaultRig, a_fault_rig
from tests.rigs.values import an_asset
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("faults")]

KILLS = max(1, int(os.environ.get("FORETELL_TEST_CYCLES", "3")) // 20)
CUTS = 2
MESSAGES = 10
WITHIN_S = 180.0
LOOK_S = 0.02
HANDSHAKE_S = 10.0
PING_S = 10.0
STILL_S = 3.0
"""Within which a server that is not frozen answers a ping; a busy one may be left for nothing."""
TOKENS = [an_asset(is_yes=is_yes, market=market) for market in MARKETS for is_yes in (True, False)]

Book = dict[str, dict[str, str]]


@dataclass
class Follower:
    """A client that keeps books from a stream, and goes on with the stream whenever its connection ends.

    It asks for the number of the newest message now and then, and leaves a connection that does not answer.
    """

    exchange: FaultRig
    ping_s: float = PING_S
    books: dict[str, Book] = field(default_factory=dict)
    connections: int = 0
    messages: int = 0
    resumptions: int = 0
    restarts: int = 0
    """Connections whose stream could not be resumed, so that the books came again."""
    heartbeats: int = 0
    connection: ClientConnection | None = None
    stream_id: str = ""
    sequence: int = 0

    async def follow(self) -> None:
        """Follow until cancelled."""
        while True:
            with contextlib.suppress(OSError, ConnectionClosed, InvalidStatus, TimeoutError):
                url = f"ws://127.0.0.1:{self.exchange.port}/ws/market"
                async with connect(
                    url,
                    proxy=None,
                    open_timeout=HANDSHAKE_S,
                    close_timeout=LOOK_S,
                    ping_interval=None,
                ) as connection:
                    await self._read(connection)
            self.connection = None
            await asyncio.sleep(LOOK_S)

    async def _read(self, connection: ClientConnection) -> None:
        """Subscribe, and take messages until the connection ends or stands still."""
        resumption = {"stream_id": self.stream_id, "sequence": self.sequence}
        request = {"type": "market", "assets_ids": TOKENS}
        await connection.send(json.dumps(request | (resumption if self.stream_id else {})))
        watching = asyncio.create_task(self._watch(connection))
        try:
            async for frame in connection:
                message = json.loads(frame)
                for each in message if isinstance(message, list) else [message]:
                    self._take(each)
                if self.connection is None:
                    self.connection = connection
                    self.connections += 1
        finally:
            watching.cancel()

    async def _watch(self, connection: ClientConnection) -> None:
        """End a connection that does not say its newest number when it is asked to."""
        while True:
            before = self.heartbeats
            await connection.send(json.dumps({"operation": "ping"}))
            await asyncio.sleep(self.ping_s)
            if self.heartbeats == before:
                connection.transport.abort()

    def _take(self, message: dict[str, Any]) -> None:
        """Take a message, whose numbers in a stream have no gap, or a reply."""
        match message["event_type"]:
            case "heartbeat":
                assert message["last_sequence"] == self.sequence
                self.heartbeats += 1
            case "resumed":
                self.resumptions += 1
            case "not_resumed":
                self.restarts += 1
                self.books.clear()
                self.sequence = 0
            case _:
                self.sequence += 1
                assert message["sequence"] == self.sequence
                self.stream_id = message["stream_id"]
                self.messages += 1
                self._apply(message)

    def _apply(self, message: dict[str, Any]) -> None:
        if message["event_type"] == "book":
            self.books[message["asset_id"]] = book_of(message)
        for change in message.get("price_changes", ()):
            side = self.books[change["asset_id"]][change["side"]]
            side.pop(change["price"], None)
            if change["size"] != "0":
                side[change["price"]] = change["size"]

    async def served(self) -> dict[str, Book]:
        """Return the books as the API has them."""
        http = self.exchange.https[0]
        return {token: book_of(await http.get("/book", token_id=token)) for token in TOKENS}

    async def agrees(self) -> None:
        """Return when the books of the stream are those that the API has."""

        async def is_equal() -> bool:
            return self.books == await self.served()

        await until(is_equal)


def book_of(message: dict[str, Any]) -> Book:
    return {
        side: {level["price"]: level["size"] for level in message[name]}
        for side, name in (("BUY", "bids"), ("SELL", "asks"))
    }


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await is_so():  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(LOOK_S)


@pytest.fixture
async def exchange(
    made: Processes, tmp_path: Path, empty_database: Path
) -> AsyncIterator[FaultRig]:
    async with a_fault_rig(tmp_path, empty_database, made, random.Random(1)) as exchange:
        yield exchange


@contextlib.asynccontextmanager
async def following(exchange: FaultRig, ping_s: float = PING_S) -> AsyncIterator[Follower]:
    """Give a follower of a serving exchange; a fault of its own fails the test."""
    follower = Follower(exchange, ping_s)
    task = asyncio.create_task(follower.follow())
    try:
        yield follower
        assert not task.done(), task.exception()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def more(follower: Follower, *, beyond: int = 0) -> None:
    """Return when the follower opened more connections than these, and then got more messages."""

    async def is_open() -> bool:
        return follower.connection is not None and follower.connections > beyond

    await until(is_open)
    wanted = follower.messages + MESSAGES

    async def has_more() -> bool:
        return follower.connection is not None and follower.messages >= wanted

    await until(has_more)


@pytest.mark.case("H-01")
async def test_books_of_a_stream_that_is_cut_off_repeatedly_end_as_the_engine_has_them(
    exchange: FaultRig,
) -> None:
    """The client cuts it while orders come, and the server is killed and started again."""
    serving = await exchange.start()
    trading = asyncio.create_task(exchange.trade_on())
    async with following(exchange) as follower:
        for _ in range(KILLS):
            for _ in range(CUTS):
                await more(follower)
                cut = follower.connections
                assert follower.connection is not None
                follower.connection.transport.abort()
                await more(follower, beyond=cut)
            cut = follower.connections
            await serving.kill()
            serving = await exchange.start()
            await more(follower, beyond=cut)
        exchange.is_over = True
        await trading
        await follower.agrees()
        assert follower.connections > KILLS * (CUTS + 1)
        assert follower.resumptions > 0, "while the server lives, streams go on where they stopped"
        assert follower.restarts >= KILLS, "a server that was killed keeps no stream"
    assert any(book["BUY"] for book in follower.books.values())


@pytest.mark.case("H-04")
async def test_a_stream_that_stands_still_is_noticed_by_heartbeats_and_goes_on_when_its_server_does(
    exchange: FaultRig,
) -> None:
    serving = await exchange.start()
    trading = asyncio.create_task(exchange.trade_on())
    async with following(exchange, ping_s=STILL_S) as follower:
        await more(follower)

        async def is_answered() -> bool:
            return follower.heartbeats > 0

        await until(is_answered)
        cut = follower.connections
        await serving.signal(signal.SIGSTOP)

        async def is_noticed() -> bool:
            return follower.connection is None

        try:
            await until(is_noticed)
        finally:
            await serving.signal(signal.SIGCONT)
        await more(follower, beyond=cut)
        exchange.is_over = True
        await trading
        await follower.agrees()
