"""The books after subscriptions: few in a turn, in fair turns, and never after a change of theirs."""

import asyncio
import contextlib
import json
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import TickingLoop, VirtualLoop, run_virtually
from tests.rigs.trading import TradingRig
from tests.rigs.values import NOW_MS, a_buy, a_sell, an_open_market
from tests.trading.rig import Listener, listening
from tests.trading.streams.dumps_rig import Taker, books_of, both_tokens, names, turns_until

from foretell.runtime.pauses import TICK_S, Pauses
from foretell.trading.streams.book_dumps import DUMP_LIMITS, BookDumps, DumpLimits
from foretell.trading.streams.connection import BYTES_QUEUED_MAX, CLOSE_POLICY, Connection
from foretell.trading.streams.flush_queue import SendBudget
from foretell.trading.streams.market_channel import MarketChannel
from foretell.trading.streams.open_streams import OpenStreams

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
ADDRESS, OTHER = "203.0.113.1", "203.0.113.2"


NO_BOOKS = DumpLimits(markets_per_turn=0)


def ignore(_connection: Connection, _token_id: str) -> None:
    """Begin nothing."""


def dumps_of(markets: int, levels: int = 0) -> BookDumps:
    return BookDumps(books_of(names(markets), levels), OpenStreams(lambda: NOW_MS), ignore)


async def subscribe(channel: MarketChannel, taker: Taker, *tokens: str, **fields: Any) -> None:
    await channel.handle(taker.connection, json.dumps({"assets_ids": tokens, **fields}))


async def until(is_so: Callable[[], bool]) -> None:
    """Turn the event loop until something is so, of which nothing notifies."""
    async with asyncio.timeout(WITHIN_S):
        while not is_so():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0)


async def taken(taker: Taker, count: int) -> list[dict[str, Any]]:
    """Return the messages of a client, once there are as many."""
    await until(lambda: len(taker.messages) >= count)
    assert len(taker.messages) == count
    return taker.messages


@pytest.mark.case("H-03")
async def test_attack_h1_three_hundred_subscriptions_send_few_books_a_turn_and_a_ping_is_answered(
    rig: TradingRig,
) -> None:
    """All books of a subscription were made in one turn, and each connection had one a second."""
    markets = names(20)
    for name in markets:
        await rig.open_in_memory(name)
    channel, tokens = rig.context.streams.market, both_tokens(*markets)
    async with (
        contextlib.AsyncExitStack() as stack,
        serving(rig.app) as host,
        listening(host, "/ws/market") as listener,
    ):
        await listener.silence()
        takers = [Taker(f"{number}", ADDRESS) for number in range(300)]
        for each in takers:
            await stack.enter_async_context(each)
            channel.join(each.connection)
        for each in takers:
            await subscribe(channel, each, *tokens)
        pinging = asyncio.create_task(listener.silence())
        counts, waiting_at_pong = list[int](), 0
        async with asyncio.timeout(WITHIN_S):
            async for count in turns_until(channel.dumps):
                counts.append(count)
                if pinging.done() and not waiting_at_pong:
                    waiting_at_pong = len(channel.dumps)
        await pinging
        for each in takers:
            assert sorted(book["asset_id"] for book in await taken(each, 40)) == sorted(tokens)
            channel.leave(each.connection)
    assert sum(counts) == 300 * 40
    assert max(counts) <= 2 * DUMP_LIMITS.markets_per_turn == 32
    assert waiting_at_pong > 0, "the ping waited for all books"


@pytest.mark.parametrize("levels", [0, 20, 98, 998])
async def test_attack_h1_a_frame_of_books_is_small(levels: int) -> None:
    """500 books of 998 levels were one frame of 17.7 MB."""
    markets = 32
    dumps, tokens = dumps_of(markets, levels), both_tokens(*names(markets))
    async with Taker("one") as taker:
        dumps.add(taker.connection, tokens)
        messages = await taken(taker, 2 * markets)
    assert [each["sequence"] for each in messages] == list(range(1, 2 * markets + 1))
    assert sorted(taker.tokens) == sorted(tokens)
    assert all(isinstance(json.loads(frame), list) for frame in taker.frames)
    numbering = 200 * 2 * DUMP_LIMITS.markets_per_turn
    of_market = max(len(json.dumps(each)) for each in messages) * 2
    largest = max(map(len, taker.frames))
    assert largest <= max(DUMP_LIMITS.bytes_per_turn, of_market) + numbering


async def test_attack_m2_the_books_of_a_client_that_reads_nothing_wait_unmade() -> None:
    """What waits counts from the first byte; it once counted from the second frame."""
    budget, markets = SendBudget(), names(200)
    dumps = dumps_of(200, levels=98)
    async with Taker("slow", budget=budget, is_held=True) as slow, Taker("quick") as quick:
        for each in (slow, quick):
            dumps.add(each.connection, both_tokens(*markets))
        await until(lambda: len(quick.tokens) == 400)
        held = slow.connection.bytes_queued
        assert 0 < held == budget.bytes_queued <= 2 * DUMP_LIMITS.bytes_per_turn < BYTES_QUEUED_MAX
        assert len(dumps) > 300
        slow.taking.set()
        assert len({each["asset_id"] for each in await taken(slow, 400)}) == 400
    assert (slow.connection.close_code, budget.bytes_queued, len(dumps)) == (None, 0, 0)


@pytest.mark.case("H-03")
async def test_attack_h1_an_address_with_many_streams_delays_no_other_address() -> None:
    dumps, markets = dumps_of(30), names(30)
    async with contextlib.AsyncExitStack() as stack:
        many = [await stack.enter_async_context(Taker(f"{n}", ADDRESS)) for n in range(250)]
        other = await stack.enter_async_context(Taker("other", OTHER))
        for each in (*many, other):
            dumps.add(each.connection, both_tokens(*markets))
        await until(lambda: len(other.tokens) == 60)
        counts = [len(each.tokens) for each in many]
    # More than as many, because the other one is left out until it has taken a frame.
    assert sum(counts) <= 60 * 4
    assert max(counts) - min(counts) <= 4, "the streams of an address take turns"


async def test_the_books_behind_a_proxy_take_turns_by_stream() -> None:
    dumps, markets = dumps_of(30), names(30)
    async with Taker("many") as many, Taker("few") as few:
        dumps.add(many.connection, both_tokens(*markets))
        dumps.add(few.connection, both_tokens(*markets[:3]))
        await taken(few, 6)
        assert len(many.tokens) < 60


async def test_unsubscribing_drops_the_books_that_wait(rig: TradingRig) -> None:
    channel, markets = rig.context.streams.market, names(4)
    for name in markets:
        await rig.open_in_memory(name)
    channel.dumps.limits = DumpLimits(markets_per_turn=1)
    async with Taker("one", is_held=True) as taker:
        channel.join(taker.connection)
        await subscribe(channel, taker, *both_tokens(*markets))
        async for _ in turns_until(channel.dumps, waiting=6):
            pass
        dropped = both_tokens(*markets[2:])
        await subscribe(channel, taker, *dropped, operation="unsubscribe")
        assert len(channel.dumps) == 2
        taker.taking.set()
        await taken(taker, 4)
        assert taker.tokens == both_tokens(*markets[:2])
        channel.leave(taker.connection)
    assert channel.is_idle


@pytest.mark.parametrize("is_held", [False, True])
async def test_closing_drops_the_books_that_wait(
    rig: TradingRig,
    is_held: bool,  # noqa: FBT001 - pytest passes it by position
) -> None:
    channel, markets = rig.context.streams.market, names(4)
    for name in markets:
        await rig.open_in_memory(name)
    channel.dumps.limits = DumpLimits(markets_per_turn=1)
    async with Taker("one", is_held=is_held) as taker:
        channel.join(taker.connection)
        await subscribe(channel, taker, *both_tokens(*markets))
        async for _ in turns_until(channel.dumps, waiting=6):
            pass
        taker.connection.close(CLOSE_POLICY)
        sent = taker.connection.sequence
        for _ in range(100):
            await asyncio.sleep(0)
        assert (taker.connection.sequence, len(channel.dumps)) == (sent, 6)
        channel.leave(taker.connection)
        assert (len(channel.dumps), channel.is_idle) == (0, True)


async def test_another_connection_gets_the_books_that_a_lost_one_waited_for(
    rig: TradingRig,
) -> None:
    streams, markets = rig.context.streams, names(3)
    channel = streams.market
    for name in markets:
        await rig.open_in_memory(name)
    channel.dumps.limits = DumpLimits(markets_per_turn=1)
    async with Taker("former", is_held=True) as former, Taker("next") as taker:
        for each in (former, taker):
            channel.join(each.connection)
            streams.open.add(each.connection)
        await subscribe(channel, former, *both_tokens(*markets))
        async for _ in turns_until(channel.dumps, waiting=4):
            pass
        former.taking.set()
        await taken(former, 2)
        former.taking.clear()
        streams.open.part(former.connection, "", channel.leave)
        read = len(former.messages)
        await subscribe(channel, taker, stream_id="former", sequence=read)
        _, *books = await taken(taker, 1 + 6 - read)
        assert [each["sequence"] for each in books] == list(range(read + 1, 7))
        assert former.tokens + taker.tokens == both_tokens(*markets)
        streams.open.part(taker.connection, "", channel.leave)
        streams.open.drop_kept()
    assert channel.is_idle


def test_turns_take_a_bounded_share_of_the_time() -> None:
    loop, at_s = VirtualLoop(), list[float]()

    def spend(_connection: Connection, _token_id: str) -> None:
        at_s.append(loop.time())
        loop.selector.now_s += 0.1

    async def play() -> None:
        dumps = BookDumps(books_of(names(3)), OpenStreams(lambda: NOW_MS), spend, Pauses(loop.time))
        dumps.limits = DumpLimits(markets_per_turn=1, pause_factor=3.0)
        async with Taker("one") as taker, Taker("two") as other:
            dumps.add(taker.connection, both_tokens(*names(3))[::2])
            await asyncio.sleep(0.5)
            dumps.add(other.connection, both_tokens(*names(3))[:1])
            await asyncio.sleep(5.0)

    run_virtually(play(), loop)
    assert at_s == pytest.approx([0.0, 0.4, 0.8, 1.2])


def test_turns_of_less_than_a_millisecond_are_measured_and_paid() -> None:
    """A finding: the clock of uvloop's loop counts whole milliseconds, and so do its timers: most pauses were none."""
    loop, sent_at_s = TickingLoop(), list[float]()
    turn_s, markets = 0.0001, 50

    def spend(_connection: Connection, _token_id: str) -> None:
        loop.selector.now_s += turn_s / 2
        sent_at_s.append(loop.time())

    async def play() -> None:
        streams = OpenStreams(lambda: NOW_MS)
        dumps = BookDumps(books_of(names(markets)), streams, spend, Pauses(loop.time))
        dumps.limits = DumpLimits(markets_per_turn=1, pause_factor=3.0)
        async with Taker("one") as taker:
            dumps.add(taker.connection, both_tokens(*names(markets)))
            await asyncio.sleep(1.0)

    run_virtually(play(), loop)
    assert len(sent_at_s) == 2 * markets
    assert sent_at_s[-1] == pytest.approx(markets * turn_s * (1 + 3.0), abs=2 * TICK_S)


class Books:
    """The books of a client that knows nothing but its messages."""

    def __init__(self, listener: Listener, tokens: list[str]) -> None:
        self._listener = listener
        self.tokens = set(tokens)
        self._sequence = 0
        self.by_token: dict[str, dict[str, dict[str, str]]] = {}

    async def read_until_pong(self) -> None:
        await self._listener.send("PING")
        while (text := await self._listener.text()) != "PONG":
            parsed = json.loads(text)
            for message in parsed if isinstance(parsed, list) else [parsed]:
                self._take(message)

    def _take(self, message: dict[str, Any]) -> None:
        self._sequence += 1
        assert message["sequence"] == self._sequence
        if message["event_type"] == "book":
            self.by_token[message["asset_id"]] = {
                side: {each["price"]: each["size"] for each in message[key]}
                for side, key in (("BUY", "bids"), ("SELL", "asks"))
            }
        for change in message.get("price_changes", ()):
            if change["asset_id"] in self.tokens:
                levels = self.by_token[change["asset_id"]][change["side"]]  # after its book
                levels.pop(change["price"], None)
                if change["size"] != "0":
                    levels[change["price"]] = change["size"]


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    async with serving(rig.app) as host:
        yield host


@pytest.mark.case("H-05")
@pytest.mark.parametrize("seed", range(3))
async def test_books_that_come_while_orders_are_matched_are_exact(
    rig: TradingRig, host: str, seed: int
) -> None:
    """Orders match between any two books of the subscriptions, which come one market at a time."""
    draw, markets = random.Random(seed), names(6)
    for name in markets:
        await rig.open_in_memory(name, "alice", "bob")
    tokens, dumps = both_tokens(*markets), rig.context.streams.market.dumps
    dumps.limits = NO_BOOKS
    async with contextlib.AsyncExitStack() as stack:
        clients = list[Books]()
        for number in range(90):
            if number % 20 == 5:
                listener = await stack.enter_async_context(listening(host, "/ws/market"))
                wanted = draw.sample(tokens, draw.randint(4, len(tokens)))
                clients.append(Books(listener, wanted))
                await subscribed(dumps, listener, wanted)
            name, a_side = draw.choice(markets), draw.choice([a_buy, a_sell])
            trader = "alice" if a_side is a_buy else "bob"
            price_ticks = draw.randrange(40, 50)
            order = a_side(trader, price_ticks=price_ticks, salt=str(number), market=name)
            await rig.rest(order, market=an_open_market(name))
            if draw.random() < 0.4:
                await one_market(dumps)
        dumps.limits = DumpLimits(markets_per_turn=1)
        await until(lambda: not len(dumps))
        for client in clients:
            await client.read_until_pong()
            assert client.by_token.keys() == client.tokens
            for token_id, kept in client.by_token.items():
                response = await rig.client.get("/book", params={"token_id": token_id})
                book = response.json()
                assert kept["BUY"] == {each["price"]: each["size"] for each in book["bids"]}
                assert kept["SELL"] == {each["price"]: each["size"] for each in book["asks"]}


async def subscribed(dumps: BookDumps, listener: Listener, tokens: list[str]) -> None:
    """Subscribe, and wait until the books are to be sent; a repetition changes nothing."""
    waiting = len(dumps)
    await listener.subscribe(*tokens)
    await listener.subscribe(*tokens[:2], initial_dump=False)
    await until(lambda: len(dumps) == waiting + len(tokens))


async def one_market(dumps: BookDumps) -> None:
    """Have the books of one market sent, if any wait."""
    waiting = len(dumps)
    dumps.limits = DumpLimits(markets_per_turn=1)
    await until(lambda: not waiting or len(dumps) < waiting)
    dumps.limits = NO_BOOKS
