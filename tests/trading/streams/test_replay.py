"""Missed messages come in small frames, at a bounded pace, and before all that is newer."""

import asyncio
import json

import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import VirtualLoop, run_virtually
from tests.rigs.trading import TradingRig
from tests.rigs.values import a_buy, an_asset
from tests.trading.rig import listening
from tests.trading.streams.dumps_rig import Taker

from foretell.trading.streams.connection import (
    BYTES_QUEUED_MAX,
    CLOSE_NORMAL,
    CLOSE_TRY_LATER,
    Connection,
)
from foretell.trading.streams.flush_queue import SendBudget
from foretell.trading.streams.recent import STREAM_BYTES_MAX, Message
from foretell.trading.streams.replay import ReplayLimits, ReplayPace

pytestmark = pytest.mark.anyio

ADDRESS, OTHER = "203.0.113.1", "203.0.113.2"
MESSAGE_BYTES = 1_200
FRAME_BYTES_MAX = 64 * 1024
"""As the reference says."""
KEPT = STREAM_BYTES_MAX // MESSAGE_BYTES
PER_S = 100_000.0
SLOW = ReplayLimits(bytes_burst=0.0, bytes_per_s=PER_S)


def a_message(size: int = MESSAGE_BYTES) -> Message:
    """Return a message whose tail has this size."""
    head, end = b'"event_type":"x","pad":"', b'"}'
    return Message(head + b"x" * (size - len(head) - len(end)) + end)


def a_lost_stream(messages: int = KEPT, size: int = MESSAGE_BYTES) -> Connection:
    """Return the connection of a stream without a client."""
    lost = Connection("lost", channel="market")
    lost.is_subscribed, lost.has_client = True, False
    for _ in range(messages):
        lost.send(a_message(size))
    return lost


def arrays(taker: Taker) -> list[str]:
    return [frame for frame in taker.frames if frame.startswith("[")]


def numbers(taker: Taker) -> list[int]:
    return [each["sequence"] for each in taker.messages if "sequence" in each]


async def reached(taker: Taker, sequence: int) -> None:
    """Return once a client has the message with a number."""
    async with asyncio.timeout(60):
        while sequence not in numbers(taker)[-1:]:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0.01)


async def test_attack_h1_what_was_missed_is_one_small_frame_a_turn_before_what_is_new() -> None:
    """A resumption made one frame of 1.1 MiB in one turn of the event loop."""
    async with asyncio.timeout(60), Taker("new", ADDRESS) as taker:
        taker.connection.resume(a_lost_stream(), 0)
        published, in_turns = 0, list[int]()
        while sum(in_turns) == 0 or len(numbers(taker)) < KEPT + published:
            before = len(arrays(taker))
            if published < 20:
                taker.connection.send(a_message())
                published += 1
            await asyncio.sleep(0)
            in_turns.append(len(arrays(taker)) - before)
    assert taker.messages[0]["missed"] == KEPT
    assert numbers(taker) == list(range(1, KEPT + published + 1))
    assert max(map(len, arrays(taker))) <= FRAME_BYTES_MAX
    assert len(arrays(taker)) >= STREAM_BYTES_MAX // FRAME_BYTES_MAX
    assert max(in_turns) == 1
    assert taker.connection.bytes_queued == 0


async def test_a_message_that_is_larger_than_a_frame_comes_alone() -> None:
    async with asyncio.timeout(60), Taker("new", ADDRESS) as taker:
        taker.connection.resume(a_lost_stream(3, 2 * FRAME_BYTES_MAX), 0)
        await reached(taker, 3)
    assert [len(json.loads(each)) for each in arrays(taker)] == [1, 1, 1]


def test_attack_h1_streams_that_one_address_resumes_again_and_again_share_a_pace() -> None:
    """The same megabyte was sent to every connection that asked, as fast as they came."""

    async def play() -> tuple[float, float]:
        budget, loop = SendBudget(replays=ReplayPace(SLOW)), asyncio.get_running_loop()
        async with (
            Taker("first", ADDRESS, budget) as first,
            Taker("second", ADDRESS, budget) as second,
            Taker("other", OTHER, budget) as other,
        ):
            for each in (first, second, other):
                each.connection.resume(a_lost_stream(100), 0)
            await reached(other, 100)
            other_s = loop.time()
            await asyncio.gather(reached(first, 100), reached(second, 100))
            return other_s, loop.time()

    other_s, both_s = run_virtually(play(), VirtualLoop())
    assert other_s >= 100 * MESSAGE_BYTES / PER_S
    assert both_s == pytest.approx(2 * other_s, rel=0.1)


def test_answers_come_between_missed_messages_and_a_heartbeat_says_how_far_those_are() -> None:
    async def play() -> None:
        budget = SendBudget(replays=ReplayPace(SLOW))
        async with Taker("new", ADDRESS, budget) as taker:
            taker.connection.resume(a_lost_stream(100), 0)
            while not arrays(taker):  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.01)
            taker.connection.beat(0)
            await asyncio.sleep(0.01)
            last = numbers(taker)[-1]
            assert last < 100
            assert taker.messages[-1]["event_type"] == "heartbeat"
            assert taker.messages[-1]["last_sequence"] == last
            await reached(taker, 100)

    run_virtually(play(), VirtualLoop())


async def test_a_connection_whose_stream_another_one_resumes_is_sent_nothing_more() -> None:
    budget = SendBudget()
    async with asyncio.timeout(60), Taker("first", ADDRESS, budget, is_held=True) as first:
        first.connection.resume(a_lost_stream(), 0)
        async with Taker("second", ADDRESS, budget) as second:
            second.connection.resume(first.connection, 0)
            await reached(second, KEPT)
        assert first.connection.close_code == CLOSE_NORMAL
        first.taking.set()
        while first.connection.bytes_queued:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0)
        assert arrays(first) == []
    assert budget.bytes_queued == 0


async def test_messages_that_wait_behind_missed_ones_are_bounded() -> None:
    budget = SendBudget()
    async with Taker("new", ADDRESS, budget, is_held=True) as taker:
        taker.connection.resume(a_lost_stream(), 0)
        while taker.connection.close_code is None:
            taker.connection.send(a_message(20_000))
            assert taker.connection.bytes_queued <= BYTES_QUEUED_MAX
        assert taker.connection.close_code == CLOSE_TRY_LATER
    assert budget.bytes_queued == 0


async def test_missed_messages_over_http_count_for_the_address_too(rig: TradingRig) -> None:
    async with serving(rig.app) as host, listening(host, "/ws/market") as listener:
        await listener.subscribe(an_asset(is_yes=True))
        (book,) = await listener.message()
        await rig.rest(a_buy("alice", price_ticks=40))
        await listener.message()
        rig.context.streams.replays.limits = ReplayLimits(bytes_burst=1.0, bytes_per_s=1.0)
        wanted = {"stream_id": book["stream_id"], "after": 1}
        first = await rig.client.get("/events", params=wanted)
        again = await rig.client.get("/events", params=wanted)
    assert [first.status_code, again.status_code] == [200, 429]
    assert int(again.headers["retry-after"]) > 60
    assert again.json()["code"] == "too_many_requests"
