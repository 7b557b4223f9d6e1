"""A stream belongs to one process: what a client gets that comes back to another one of a real fleet."""

import asyncio
import contextlib
import dataclasses
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from tests.rigs.values import a_key
from tests.trading.rig import ANSWER_WITHIN_S, Listener, listening
from websockets.exceptions import ConnectionClosed

from foretell.bench.rigs.fleet import Size, running_fleet
from foretell.bench.rigs.load import SIZE_UNITS, Offer, requests_of, send_all
from foretell.bench.rigs.world import TICKS_PER_ONE, World, make_world
from foretell.domain.errors.command import BenchFailed
from foretell.domain.values.amounts import UNITS_PER_TOKEN
from foretell.trading.streams.connection import CLOSE_TRY_LATER

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("fleet")]

WORKERS = 2
LOOK_S: Final = 0.1
RETURNS_MAX = 45
"""Returns of a client; that all reach one process happens once in 2^44 runs. Each has a price of its own."""


@pytest.fixture
def world() -> World:
    everything = make_world(a_key("streams"))
    return dataclasses.replace(
        everything,
        users=everything.users[:2],
        conditions=everything.conditions[:1],
        tokens=everything.tokens[:1],
    )


@pytest.fixture
def port(world: World, postgres_url: str, tmp_path: Path) -> Iterator[int]:
    with running_fleet(world, tmp_path, postgres_url, Size(WORKERS, 1)) as fleet:
        yield fleet.port


class Reader:
    """A client that keeps the bids of one token over lost connections, by its stream alone."""

    def __init__(self, port: int, token_id: str) -> None:
        self._host = f"127.0.0.1:{port}"
        self._token_id = token_id
        self._open: Any = None
        self._listener: Listener
        self._last = ("", 0)
        self.bids: dict[int, float] = {}
        self.replies: list[str] = []

    async def connect(self) -> None:
        """Connect, and ask to go on with the stream if there was one."""
        self._open = listening(self._host, "/ws/market")
        self._listener = await self._open.__aenter__()
        subscription = {"type": "market", "assets_ids": [self._token_id]}
        stream_id, sequence = self._last
        resumption = {"stream_id": stream_id, "sequence": sequence} if stream_id else {}
        with contextlib.suppress(ConnectionClosed):  # `read` sees it, too
            await self._listener.send(subscription | resumption)
        await self.read()

    async def lose(self) -> None:
        """Lose the connection, without a word to the server."""
        self._listener.connection.transport.abort()
        await self._open.__aexit__(None, None, None)

    async def read(self) -> None:
        """Read one frame; if the process lost its engine for a moment and asks to come back, connect again."""
        try:
            frame = await self._listener.message()
        except ConnectionClosed as closed:
            if closed.rcvd is None or closed.rcvd.code != CLOSE_TRY_LATER:
                raise
            await self._open.__aexit__(None, None, None)
            await self.connect()
            return
        for each in frame if isinstance(frame, list) else [frame]:
            if "sequence" in each:
                self._take(each)
            else:
                self.replies.append(each["event_type"])
                assert each.get("code") in {None, "unknown_stream"}

    async def read_until(self, bids: dict[int, float]) -> None:
        """Read until the bids are these."""
        while self.bids != bids:
            await self.read()

    def _take(self, message: dict[str, Any]) -> None:
        stream_id, sequence = self._last
        is_same = message["stream_id"] == stream_id
        assert message["sequence"] == (sequence + 1 if is_same else 1), "no gap, nothing twice"
        self._last = (message["stream_id"], message["sequence"])
        if message["event_type"] == "book":
            self.bids = {ticks(each["price"]): float(each["size"]) for each in message["bids"]}
        for each in message.get("price_changes", ()):
            if (each["asset_id"], each["side"]) == (self._token_id, "BUY"):
                self.bids[ticks(each["price"])] = float(each["size"])


async def place(port: int, bid: bytes) -> None:
    """Send an order until it is taken: a process that has no engine for a moment asks to come back.

    An order that was taken and is sent again gets its first answer.
    """
    give_up_at_s = time.monotonic() + ANSWER_WITHIN_S
    while True:
        try:
            await send_all(port, [bid], 1)
        except BenchFailed:
            if time.monotonic() > give_up_at_s:
                raise
            await asyncio.sleep(LOOK_S)
        else:
            return


def ticks(price: str) -> int:
    return round(float(price) * TICKS_PER_ONE)


async def test_a_client_that_comes_back_to_another_process_gets_the_whole_book(
    port: int, world: World
) -> None:
    reader = Reader(port, str(world.tokens[0].yes))
    await reader.connect()
    expected = dict(reader.bids)
    for number in range(1, RETURNS_MAX):
        await reader.lose()
        [bid] = requests_of(
            world, "", [(number, Offer(0, is_buy=True, price_ticks=number))], int(time.time())
        )
        await place(port, bid)
        expected[number] = expected.get(number, 0.0) + SIZE_UNITS / UNITS_PER_TOKEN
        await reader.connect()
        await reader.read_until(expected)
        if {"resumed", "not_resumed"} <= set(reader.replies):
            break
    assert set(reader.replies) == {"resumed", "not_resumed"}
    await reader.lose()
