"""Streams against a real WebSocket server that drops connections and leaves numbers out."""

import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from tests.sdk.streaming.test_book import TOKEN, a_book, a_change
from websockets.asyncio.server import ServerConnection, serve

from foretell.bench.rigs.ports import free_port
from foretell.domain.errors.command import ApiRefused, StreamLost
from foretell.domain.values.credentials import Credentials
from foretell.sdk.streaming.streams import (
    Restarted,
    Stream,
    market_subscription,
    user_subscription,
    watch_books,
)

pytestmark = pytest.mark.anyio

Frames = list[Any]


@asynccontextmanager
async def a_server(*connections: Frames) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve each connection its frames, then close it; the last one stays open. Give the subscriptions."""
    waiting, subscriptions = list(connections), []

    async def handle(connection: ServerConnection) -> None:
        subscriptions.append(json.loads(await connection.recv()))
        frames = waiting.pop(0)
        for frame in frames:
            await connection.send(frame if isinstance(frame, str) else json.dumps(frame))
        if not waiting:
            await connection.wait_closed()

    async with serve(handle, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"ws://127.0.0.1:{port}", subscriptions


def numbered(*messages: dict[str, Any], first: int = 1) -> Frames:
    return [each | {"sequence": number} for number, each in enumerate(messages, first)]


async def events_of(stream: Stream, count: int) -> list[Any]:
    """Return the first events of a stream."""
    seen: list[Any] = []
    async with aclosing(stream.events()) as events:
        async for event in events:
            seen.append(event)
            if len(seen) == count:
                break
    return seen


async def test_messages_arrive_in_order_and_other_frames_are_skipped() -> None:
    array = json.dumps(numbered({"a": 1}, {"a": 2}))
    async with a_server([array, "PONG", "INVALID OPERATION", *numbered({"a": 3}, first=3)]) as (
        url,
        subscriptions,
    ):
        stream = Stream(url, lambda: market_subscription(["1", "2"]))
        assert [event["a"] for event in await events_of(stream, 3)] == [1, 2, 3]
    assert subscriptions == [
        {"type": "market", "assets_ids": ["1", "2"], "custom_feature_enabled": False}
    ]


async def test_a_lost_connection_is_opened_again_and_marked() -> None:
    async with a_server(numbered({"a": 1}), numbered({"a": 2})) as (url, subscriptions):
        stream = Stream(url, lambda: market_subscription(["1"]))
        first, mark, second = await events_of(stream, 3)
    assert (first["a"], mark, second["a"]) == (1, Restarted(1), 2)
    assert (len(subscriptions), stream.reconnects) == (2, 1)


async def test_a_stream_that_the_server_kept_goes_on_without_a_gap() -> None:
    named = {"stream_id": "4f6c", "market": "0x01"}
    resumed = {"event_type": "resumed", "stream_id": "4f6c", "last_sequence": 3, "missed": 1}
    first = numbered({"a": 1} | named, {"a": 2} | named)
    second = [resumed, *numbered({"a": 3} | named, {"a": 4} | named, first=3)]
    async with a_server(first, second) as (url, subscriptions):
        stream = Stream(url, lambda: market_subscription(["1"]))
        events = await events_of(stream, 4)
    assert [event["a"] for event in events] == [1, 2, 3, 4]
    assert (subscriptions[1]["stream_id"], subscriptions[1]["sequence"]) == ("4f6c", 2)
    assert "stream_id" not in subscriptions[0]


async def test_a_stream_that_the_server_did_not_keep_begins_again() -> None:
    gone = {"event_type": "not_resumed", "stream_id": "a", "code": "unknown_stream"}
    first = numbered({"a": 1, "stream_id": "a"}, {"a": 2, "stream_id": "a"})
    second = [gone, *numbered({"a": 3, "stream_id": "b"})]
    async with a_server(first, second) as (url, _):
        events = await events_of(Stream(url, lambda: market_subscription(["1"])), 4)
    assert [event if isinstance(event, Restarted) else event["a"] for event in events] == [
        1,
        2,
        Restarted(1),
        3,
    ]


async def test_a_missing_number_ends_the_connection() -> None:
    gap = [*numbered({"a": 1}), *numbered({"a": 3}, first=3)]
    async with a_server(gap, numbered({"a": 4})) as (url, _):
        events = await events_of(Stream(url, lambda: market_subscription(["1"])), 3)
    assert events == [{"a": 1, "sequence": 1}, Restarted(1), {"a": 4, "sequence": 1}]


async def test_a_server_that_stays_away_is_given_up_after_the_attempts() -> None:
    stream = Stream(f"ws://127.0.0.1:{free_port()}", lambda: market_subscription(["1"]), 2)
    with pytest.raises(StreamLost, match="is lost"):
        await events_of(stream, 1)
    assert stream.reconnects == 3


async def test_a_refused_login_is_not_tried_again() -> None:
    refusal = {"error": "Unauthorized/Invalid api key", "code": "wrong_passphrase"}
    async with a_server([refusal], []) as (url, subscriptions):
        stream = Stream(url, lambda: user_subscription(Credentials("key", "secret", "pass")))
        with pytest.raises(ApiRefused, match="wrong_passphrase"):
            await events_of(stream, 1)
    assert len(subscriptions) == 1
    assert subscriptions[0]["auth"] == {"apiKey": "key", "secret": "secret", "passphrase": "pass"}


@pytest.mark.parametrize("missed", [[], [a_change("0.5", "9") | {"sequence": 3}]], ids=len)
async def test_a_book_is_whole_again_after_a_gap(missed: Frames) -> None:
    """The change that came after a missing one is in no book."""
    first = [*numbered(a_book()), *missed]
    second = numbered(a_book(bids=[{"price": "0.2", "size": "1"}]), a_change("0.25", "4"))
    async with a_server(first, second) as (url, _):
        best = []
        async with aclosing(watch_books(url, [TOKEN])) as changes:
            async for change in changes:
                assert change.book.best_bid is not None
                best.append(change.book.best_bid.price)
                if len(best) == 3:
                    break
    assert best == ["0.4", "0.2", "0.25"]
