"""Streams that go on after their connection was lost."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, a_sell, an_asset
from tests.trading.rig import Listener, expect_refusal, listening

from foretell.store.trading.api_keys import revoke_key
from foretell.trading.streams.connection import Connection
from foretell.trading.streams.open_streams import OpenStreams
from foretell.trading.streams.recent import (
    GONE_MAX,
    STREAM_BYTES_MAX,
    STREAM_MESSAGES_MAX,
    Message,
    RecentMessages,
    StreamHistory,
)

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
NO = an_asset(is_yes=False)
OTHER = "0b0dbf1c-0000-4000-8000-000000000000"


class Follower:
    """A client that loses its connection, goes on with its stream, and notes each message."""

    def __init__(self, host: str, path: str, subscription: dict[str, Any]) -> None:
        self._host = host
        self._path = path
        self._subscription = subscription
        self._open: Any = None
        self._pings = 0
        self.listener: Listener
        self.messages: list[dict[str, Any]] = []
        self.replies: list[dict[str, Any]] = []

    async def connect(self) -> None:
        """Connect; after the first message go on with the stream."""
        self._open = listening(self._host, self._path)
        self.listener = await self._open.__aenter__()
        self._pings = 0
        resumption = {}
        if self.messages:
            last = self.messages[-1]
            resumption = {"stream_id": last["stream_id"], "sequence": last["sequence"]}
        await self.listener.send(self._subscription | resumption)

    async def read(self, frames: int | None = None) -> None:
        """Read some frames, or all that were sent until now."""
        await self.listener.send("PING")
        self._pings += 1
        while self._pings and frames != 0:
            text = await self.listener.text()
            if text == "PONG":
                self._pings -= 1
            else:
                self._note(json.loads(text))
                frames = None if frames is None else frames - 1

    async def lose(self) -> None:
        """Lose the connection, without a word to the server."""
        self.listener.connection.transport.abort()
        await self._open.__aexit__(None, None, None)

    def _note(self, frame: Any) -> None:
        for each in frame if isinstance(frame, list) else [frame]:
            (self.messages if "sequence" in each else self.replies).append(each)


def bare(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in each.items() if name not in {"stream_id", "sequence"}}
        for each in messages
    ]


@pytest.fixture
async def host(rig: TradingRig) -> AsyncIterator[str]:
    async with serving(rig.app) as host:
        yield host


def subscription_of(trader: Trader) -> dict[str, Any]:
    auth = {"apiKey": trader.key_id, "secret": trader.secret, "passphrase": trader.passphrase}
    return {"type": "user", "auth": auth}


MARKET = {"type": "market", "assets_ids": [YES, NO], "initial_dump": False}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.case("H-01")
async def test_random_losses_and_resumptions_equal_the_unbroken_stream(
    host: str, alice: Trader, bob: Trader, seed: int
) -> None:
    draw = random.Random(seed)
    subscriptions = {"/ws/market": MARKET, "/ws/user": subscription_of(alice)}
    unbroken = [Follower(host, path, each) for path, each in subscriptions.items()]
    broken = [Follower(host, path, each) for path, each in subscriptions.items()]
    for each in (*unbroken, *broken):
        await each.connect()
        await each.read()
    for number in range(24):
        trader = draw.choice([alice, bob])
        side = a_buy if trader is alice else a_sell
        price = draw.randrange(40, 50)
        await trader.placed(
            side("alice" if trader is alice else "bob", price_ticks=price, salt=str(number))
        )
        for each in broken:
            if draw.random() < 0.4:
                await each.read(draw.choice([0, 1, 3, None]))
            if number == 12:
                await each.read()
            if each.messages and (number == 12 or draw.random() < 0.4):
                await each.lose()
                await asyncio.sleep(draw.choice([0, 0.01]))
                await each.connect()
    for whole, parts in zip(unbroken, broken, strict=True):
        await whole.read()
        await parts.read()
        assert bare(parts.messages) == bare(whole.messages)
        assert [each["sequence"] for each in parts.messages] == list(
            range(1, len(whole.messages) + 1)
        )
        assert {each["event_type"] for each in parts.replies} == {"resumed"}
        assert len(parts.replies) > 1


@pytest.mark.case("H-01")
async def test_a_stream_of_a_lost_connection_goes_on_with_its_subscriptions(
    rig: TradingRig, host: str
) -> None:
    follower = Follower(host, "/ws/market", {"type": "market", "assets_ids": [YES]})
    await follower.connect()
    await follower.read()
    await follower.lose()
    async with asyncio.timeout(60):
        while not rig.context.streams.open.kept_count:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)
    await rig.rest(a_buy("alice", price_ticks=40))
    await follower.connect()
    await follower.read()
    stream_id = follower.messages[0]["stream_id"]
    assert follower.replies == [
        {"event_type": "resumed", "stream_id": stream_id, "last_sequence": 2, "missed": 1}
    ]
    assert [each["event_type"] for each in follower.messages] == ["book", "price_change"]
    assert rig.context.streams.open.kept_count == 0
    assert rig.context.streams.connection_count == 1


async def test_the_former_connection_is_closed_when_another_goes_on(host: str) -> None:
    async with listening(host, "/ws/market") as former:
        await former.subscribe(YES)
        (book,) = await former.message()
        async with listening(host, "/ws/market") as other:
            await other.send({"stream_id": book["stream_id"], "sequence": 1})
            assert (await other.message())["event_type"] == "resumed"
            assert await former.close_code() == 1000


@pytest.mark.parametrize("resumption", [{"stream_id": OTHER}, {"stream_id": "x", "sequence": 9}])
@pytest.mark.case("H-01")
async def test_a_stream_that_nobody_knows_is_a_new_subscription(
    host: str, resumption: dict[str, Any]
) -> None:
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES, **resumption)
        said = await listener.message()
        (book,) = await listener.message()
    assert (said["event_type"], said["code"]) == ("not_resumed", "unknown_stream")
    assert (book["stream_id"], book["sequence"]) == (said["stream_id"], 1)


@pytest.mark.case("H-01")
async def test_messages_that_are_not_kept_are_a_new_subscription(host: str) -> None:
    """Nobody can have the books again that came after a subscription, nor messages of the future."""
    async with listening(host, "/ws/market") as first:
        await first.subscribe(YES)
        (book,) = await first.message()
        for sequence in (0, 2, -1, -(2**40)):
            async with listening(host, "/ws/market") as other:
                await other.subscribe(YES, stream_id=book["stream_id"], sequence=sequence)
                said = await other.message()
                assert (said["event_type"], said["code"]) == ("not_resumed", "messages_not_kept")
                assert (await other.message())[0]["sequence"] == 1
        await first.silence()


async def test_a_stream_is_resumed_by_the_first_message_only(host: str) -> None:
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES)
        (book,) = await listener.message()
        await listener.send({"stream_id": book["stream_id"], "sequence": 1})
        assert "first message" in await expect_refusal(listener)


async def test_a_stream_of_an_account_is_resumed_with_its_key_only(
    rig: TradingRig, host: str, alice: Trader, bob: Trader
) -> None:
    async with listening(host, "/ws/user") as alices:
        await alices.log_in(alice)
        await alice.placed(a_buy("alice"))
        placed = await alices.message()
        stream = {"stream_id": placed["stream_id"], "sequence": 0}
        async with listening(host, "/ws/user") as bobs:
            await bobs.send(subscription_of(bob) | stream)
            assert (await bobs.message())["code"] == "unknown_stream"
        async with listening(host, "/ws/market") as public:
            await public.subscribe(**stream)
            assert (await public.message())["code"] == "unknown_stream"
        path = "/events"
        anonymous = await rig.client.get(path, params=stream)
        assert anonymous.status_code == 401
        assert (await bob.send("GET", path, query=stream)).json()["code"] == "unknown_stream"
        found = await alice.send("GET", path, query={"stream_id": placed["stream_id"]})
        assert found.json()["events"] == [placed]


async def test_a_revoked_key_cannot_go_on_with_a_stream(rig: TradingRig, alice: Trader) -> None:
    async with serving(rig.app) as host:
        follower = Follower(host, "/ws/user", subscription_of(alice))
        await follower.connect()
        await follower.read()
        await follower.lose()
        async with asyncio.timeout(60):
            while not rig.context.streams.open.kept_count:  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.01)
        async with rig.context.database.writing() as tx:
            assert await revoke_key(tx, alice.key_id, rig.clock.at_ms)
        rig.context.streams.revoke(alice.key_id)
        assert (rig.context.streams.open.kept_count, len(rig.context.streams.open)) == (0, 0)
        assert rig.context.streams.user.key_ids() == set()


@pytest.mark.case("H-01")
async def test_a_restart_of_the_engine_ends_all_streams(rig: TradingRig, host: str) -> None:
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES)
        (book,) = await listener.message()
        rig.context.begin(lambda _: True)
        assert await listener.close_code() == 1013
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES, stream_id=book["stream_id"], sequence=1)
        assert (await listener.message())["code"] == "unknown_stream"


async def test_the_messages_of_a_stream_are_served_over_http(rig: TradingRig, host: str) -> None:
    async with listening(host, "/ws/market") as listener:
        await listener.subscribe(YES)
        (book,) = await listener.message()
        await rig.rest(a_buy("alice", price_ticks=40))
        await rig.rest(a_buy("alice", price_ticks=41, salt="2"))
        sent = [await listener.message() for _ in range(2)]
        stream_id = book["stream_id"]
        answer = await rig.client.get("/events", params={"stream_id": stream_id, "after": 1})
        assert answer.json() == {"stream_id": stream_id, "last_sequence": 3, "events": sent}
        gone = await rig.client.get("/events", params={"stream_id": stream_id})
        assert (gone.status_code, gone.json()["code"]) == (409, "messages_not_kept")
    unknown = await rig.client.get("/events", params={"stream_id": OTHER})
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown_stream")


@pytest.mark.case("H-04")
async def test_a_heartbeat_has_the_last_number(rig: TradingRig, host: str, alice: Trader) -> None:
    beating = asyncio.create_task(rig.context.streams.beat(0.02))
    async with listening(host, "/ws/market") as listener, listening(host, "/ws/user") as private:
        await listener.subscribe(YES, heartbeat=True)
        (book,) = await listener.message()
        expected = {
            "event_type": "heartbeat",
            "stream_id": book["stream_id"],
            "last_sequence": 1,
            "server_ts_ms": rig.clock.at_ms,
        }
        assert [await listener.message() for _ in range(2)] == [expected, expected]
        await private.log_in(alice)
        await private.send({"operation": "ping"})
        assert (await private.message())["last_sequence"] == 0
    beating.cancel()
    await asyncio.gather(beating, return_exceptions=True)


async def test_kept_streams_are_bounded_and_their_largest_holder_loses_one() -> None:
    streams, left = OpenStreams(lambda: 0, kept_max=3), list[str]()
    for stream_id, client in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "z")):
        connection = Connection(stream_id, channel="market")
        connection.is_subscribed = True
        streams.add(connection)
        streams.part(connection, client, lambda one: left.append(one.stream_id))
    assert (left, streams.kept_count, len(streams)) == (["a"], 3, 3)
    streams.drop_kept()
    assert (left, streams.kept_count, len(streams)) == (["a", "b", "c", "d"], 0, 0)


async def test_a_kept_stream_is_removed_after_its_time() -> None:
    streams, left = OpenStreams(lambda: 0, kept_for_s=0.01), list[str]()
    connection = Connection("a", channel="market")
    connection.is_subscribed = True
    streams.add(connection)
    streams.part(connection, "", lambda one: left.append(one.stream_id))
    connection.send(Message(b'"a":1}'))
    assert (connection.frames_queued, connection.sequence) == (0, 1)
    async with asyncio.timeout(60):
        while not left:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)
    assert len(streams) == 0


def test_all_streams_together_keep_bounded_bytes() -> None:
    recent = RecentMessages(messages_max=5, bytes_max=100)
    kept = [recent.keep(b"x" * size) for size in (40, 40, 40, 1, 1, 1, 1)]
    assert [each.tail is None for each in kept] == [True, True, False, False, False, False, False]
    assert (len(recent), recent.bytes_kept) == (5, 44)


def test_a_message_that_no_stream_holds_takes_no_memory() -> None:
    recent = RecentMessages()
    held, quiet = StreamHistory(), StreamHistory()
    quiet.append(recent.keep(b"y"))
    for _ in range(20 * STREAM_MESSAGES_MAX):
        held.append(recent.keep(b"x" * 100))
        recent.keep(b"z" * 100)
    assert len(recent) == STREAM_MESSAGES_MAX + 1
    assert recent.bytes_kept == 100 * STREAM_MESSAGES_MAX + 1
    assert quiet.newest(1) == [b"y"]
    assert held.newest(STREAM_MESSAGES_MAX) == [b"x" * 100] * STREAM_MESSAGES_MAX
    assert recent.references <= 2 * len(recent) + GONE_MAX + 1


def test_of_messages_that_are_gone_the_oldest_leave_no_reference() -> None:
    """A finding: those of a steady load grew up to the bound, which a soak took for a growth of the server."""
    recent, one, other = RecentMessages(), StreamHistory(), StreamHistory()
    most = 0
    for _ in range(3 * STREAM_MESSAGES_MAX):
        one.append(recent.keep(b"x"))
        other.append(recent.keep(b"y"))
        recent.keep(b"z")
        most = max(most, recent.references)
    assert most <= 3 * (STREAM_MESSAGES_MAX + 1)


def test_a_message_that_is_larger_than_all_room_is_not_kept() -> None:
    recent = RecentMessages(bytes_max=10)
    message = recent.keep(b"x" * 11)
    assert (message.tail, len(recent), recent.bytes_kept, recent.references) == (None, 0, 0, 0)


def test_room_is_given_back_once_for_each_message() -> None:
    recent = RecentMessages(messages_max=3, bytes_max=100)
    history = StreamHistory()
    for size in (60, 60, 10, 10, 10, 10):
        history.append(recent.keep(b"x" * size))
    assert (len(recent), recent.bytes_kept) == (3, 30)
    del history
    assert (len(recent), recent.bytes_kept) == (0, 0)


@pytest.mark.parametrize(("size", "kept"), [(10, STREAM_MESSAGES_MAX), (200_000, 5)])
def test_a_stream_keeps_a_bounded_number_and_bounded_bytes(size: int, kept: int) -> None:
    history = StreamHistory()
    for _ in range(STREAM_MESSAGES_MAX + 1):
        history.append(Message(b"x" * size))
    assert kept * size <= STREAM_BYTES_MAX
    assert len(history.newest(kept) or ()) == kept
    assert history.newest(kept + 1) is None
