"""Messages to many streams at the same moment are written to some of them in a turn of the event loop."""

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, an_asset
from tests.trading.streams.test_live_channel import trade

from foretell.trading.streams.connection import Connection, Socket
from foretell.trading.streams.flush_queue import CONNECTIONS_PER_TURN, in_turns

pytestmark = pytest.mark.anyio

STREAMS: Final = CONNECTIONS_PER_TURN + 50
WITHIN_S: Final = 60.0
NEVER_S: Final = 1_000.0


class Crowd:
    """Many streams that take what they are sent at once, and the frames of each turn of the event loop."""

    def __init__(self, first_message: object) -> None:
        self._first_message = json.dumps(first_message)
        self._turn = 0
        self._handled = 0
        """Streams whose first message has been handled."""
        self.frames_by_turn: Counter[int] = Counter()

    @contextlib.asynccontextmanager
    async def serving(
        self, serve: Callable[[Socket], Coroutine[Any, Any, None]]
    ) -> AsyncIterator[None]:
        """Have all streams served, once their message has been handled, which takes turns."""
        tasks = [asyncio.create_task(serve(self._socket())) for _ in range(STREAMS)]
        tasks.append(asyncio.create_task(self._count_turns()))
        async with asyncio.timeout(WITHIN_S):
            while self._handled < STREAMS:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0)
        self.frames_by_turn.clear()
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def got(self, frames: int) -> None:
        """Check that each stream gets so many frames, and that a turn has few of them."""
        async with asyncio.timeout(WITHIN_S):
            while self.frames_by_turn.total() < frames * STREAMS:  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0)
        assert self.frames_by_turn.total() == frames * STREAMS
        assert max(self.frames_by_turn.values()) <= CONNECTIONS_PER_TURN

    def _socket(self) -> Socket:
        messages = iter(
            [
                {"type": "websocket.connect"},
                {"type": "websocket.receive", "text": self._first_message},
            ]
        )

        async def receive() -> Any:
            message = next(messages, None)
            if message is None:
                self._handled += 1
                await asyncio.sleep(NEVER_S)
            return message

        async def send(message: Any) -> None:
            self.frames_by_turn[self._turn] += message["type"] == "websocket.send"

        return Socket(receive, send)

    async def _count_turns(self) -> None:
        while True:
            self._turn += 1
            await asyncio.sleep(0)


async def test_attack_h1_a_trade_goes_to_some_live_streams_in_a_turn(
    rig: TradingRig, alice: Trader
) -> None:
    """A thousand readers of one address had their frames written before an order was read."""
    crowd = Crowd({"action": "subscribe", "subscriptions": [{"topic": "activity"}]})
    async with crowd.serving(rig.context.streams.serve_live):
        await trade(rig, alice)
        await crowd.got(2)


async def test_attack_h1_heartbeats_go_to_some_streams_in_a_turn(rig: TradingRig) -> None:
    crowd = Crowd({"type": "market", "assets_ids": [], "heartbeat": True})
    async with crowd.serving(rig.context.streams.serve_market):
        beating = asyncio.create_task(rig.context.streams.beat(NEVER_S))
        await crowd.got(1)
        beating.cancel()
        await asyncio.gather(beating, return_exceptions=True)


async def test_attack_h1_pings_go_to_some_sports_streams_in_a_turn(rig: TradingRig) -> None:
    crowd = Crowd("pong")
    async with crowd.serving(rig.context.streams.serve_sports):
        crowd.frames_by_turn.clear()
        await rig.context.streams.sports.ping()
        await crowd.got(1)


async def test_attack_h1_a_price_change_goes_to_some_streams_in_a_turn(rig: TradingRig) -> None:
    """A thousand streams of one stranger multiplied the time that each order of anybody takes."""
    crowd = Crowd({"type": "market", "assets_ids": [an_asset(is_yes=True)], "initial_dump": False})
    async with crowd.serving(rig.context.streams.serve_market):
        await rig.rest(a_buy("alice", price_ticks=40))
        await crowd.got(1)


async def test_attack_h1_an_order_goes_to_some_streams_of_its_account_in_a_turn(
    rig: TradingRig, alice: Trader
) -> None:
    auth = {"apiKey": alice.key_id, "secret": alice.secret, "passphrase": alice.passphrase}
    crowd = Crowd({"type": "user", "markets": [], "auth": auth})
    async with crowd.serving(rig.context.streams.serve_user):
        await rig.rest(a_buy("alice", price_ticks=40))
        await crowd.got(1)


async def test_attack_h1_the_first_stream_of_each_address_comes_first() -> None:
    """Frames once went to all streams of a stranger before that of another address."""
    connections = [Connection(f"stranger {number}", client="stranger") for number in range(3)]
    connections += [Connection("own"), Connection("none")]
    connections += [Connection(f"trader {number}", client="trader") for number in range(2)]
    seen = [connection.stream_id async for connection in in_turns(connections, 2)]
    first, second, third = seen[:4], seen[4:6], seen[6:]
    assert first == ["stranger 0", "own", "none", "trader 0"]
    assert (second, third) == (["stranger 1", "trader 1"], ["stranger 2"])


async def test_a_stream_that_ends_meanwhile_gets_nothing() -> None:
    """What it got would count for ever among what waits to be sent."""
    connections = [Connection(str(number)) for number in range(4)]
    seen = []
    async for connection in in_turns(connections, 2):
        seen.append(connection.stream_id)
        connections[2].end_stream()
        connections[3].has_client = False
    assert seen == ["0", "1"]
