import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve

from foretell.bench.rigs.ports import free_port
from foretell.domain.errors.command import ApiRefused, ApiUnreachable, NotInTime
from foretell.sandbox.demo import streams
from foretell.sandbox.demo.streams import Frame, MessageStream, subscribed

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
Fits = Callable[[Frame], bool]


def numbered(number: int) -> Fits:
    return lambda frame: frame.get("number") == number


@contextlib.asynccontextmanager
async def publishing(*frames: str) -> AsyncIterator[tuple[str, list[Any]]]:
    """Serve a stream that reads a subscription and then sends the frames; give its URL."""
    subscriptions: list[Any] = []

    async def publish(connection: ServerConnection) -> None:
        subscriptions.append(json.loads(await connection.recv()))
        for frame in frames:
            await connection.send(frame)
        await connection.wait_closed()

    async with serve(publish, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        yield f"ws://127.0.0.1:{port}", subscriptions


async def test_a_message_that_came_earlier_is_found() -> None:
    stream = MessageStream()
    for number in range(3):
        stream.take({"number": number})
    assert await stream.wait_for("a number", numbered(1), WITHIN_S) == {"number": 1}
    assert await stream.wait_for("a number", numbered(0), WITHIN_S) == {"number": 0}


async def test_a_message_that_comes_later_is_awaited() -> None:
    stream = MessageStream()
    waiting = asyncio.create_task(stream.wait_for("a number", numbered(2), WITHIN_S))
    for number in range(3):
        await asyncio.sleep(0)
        assert not waiting.done()
        stream.take({"number": number})
    assert await waiting == {"number": 2}


async def test_the_first_message_that_fits_is_returned() -> None:
    stream = MessageStream()
    stream.take({"number": 1, "copy": "first"})
    stream.take({"number": 1, "copy": "second"})
    assert (await stream.wait_for("a number", numbered(1), WITHIN_S))["copy"] == "first"


async def test_a_message_that_does_not_come_is_named() -> None:
    stream = MessageStream()
    stream.take({"number": 1})
    with pytest.raises(NotInTime, match=r"^timed out after 0\.02 s waiting for a second one$"):
        await stream.wait_for("a second one", numbered(2), 0.02)


async def test_a_subscription_is_sent_first_and_its_messages_are_kept() -> None:
    frames = ['[{"number": 1}, {"number": 2}]', "PONG", '{"number": 3}']
    async with (
        publishing(*frames) as (url, subscriptions),
        subscribed(url, {"type": "market", "assets_ids": ["7"]}) as stream,
    ):
        await stream.wait_for("the last one", numbered(3), WITHIN_S)
        assert await stream.wait_for("one of many", numbered(2), WITHIN_S) == {"number": 2}
    assert subscriptions == [{"type": "market", "assets_ids": ["7"]}]


async def test_a_proxy_of_the_environment_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    async with publishing('{"number": 1}') as (url, _), subscribed(url, {}) as stream:
        await stream.wait_for("a number", numbered(1), WITHIN_S)


async def test_a_closed_stream_is_opened_again_and_what_it_missed_is_read() -> None:
    subscriptions: list[Any] = []
    second = asyncio.Event()

    async def publish(connection: ServerConnection) -> None:
        subscriptions.append(json.loads(await connection.recv()))
        await connection.send(json.dumps({"number": len(subscriptions)}))
        if len(subscriptions) == 1:
            await connection.close(1013)
        else:
            second.set()
            await connection.wait_closed()

    reads = []

    async def read_missed() -> list[Frame]:
        reads.append(len(subscriptions))
        return [{"number": 7}] if len(reads) > 1 else []

    async with serve(publish, "127.0.0.1", 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        async with subscribed(f"ws://127.0.0.1:{port}", {"type": "user"}, read_missed) as stream:
            await stream.wait_for("the first one", numbered(1), WITHIN_S)
            await asyncio.wait_for(second.wait(), WITHIN_S)
            assert (await stream.wait_for("the next one", numbered(2), WITHIN_S)) == {"number": 2}
            assert (await stream.wait_for("the missed one", numbered(7), WITHIN_S)) == {"number": 7}
    assert subscriptions == [{"type": "user"}] * 2


async def test_a_stream_that_was_never_closed_reads_nothing_else() -> None:
    async def read_missed() -> list[Frame]:
        raise AssertionError("nothing was missed")

    async with publishing('{"number": 1}') as (url, _), subscribed(url, {}, read_missed) as stream:
        await stream.wait_for("a number", numbered(1), WITHIN_S)


@pytest.mark.parametrize(
    "away", [ApiUnreachable("http://api", "ConnectError"), ApiRefused("GET /trades", 503, "{}")]
)
async def test_what_was_missed_is_read_again_while_the_api_is_away(
    monkeypatch: pytest.MonkeyPatch, away: Exception
) -> None:
    """A finding: the first read of what was missed ended the demo while the server was away."""
    monkeypatch.setattr(streams, "CATCH_UP_EVERY_S", 0.01)
    reads: list[int] = []

    async def read_missed() -> list[Frame]:
        reads.append(len(reads))
        if len(reads) == 1:
            raise away
        return [{"number": 7}]

    stream = MessageStream(read_missed)
    stream.mark_closed()
    assert await stream.wait_for("the missed one", numbered(7), WITHIN_S) == {"number": 7}
    assert reads == [0, 1]


async def test_a_read_that_the_api_refuses_ends_the_wait() -> None:
    async def read_missed() -> list[Frame]:
        raise ApiRefused("GET /trades", 401, "{}")

    stream = MessageStream(read_missed)
    stream.mark_closed()
    with pytest.raises(ApiRefused):
        await stream.wait_for("the missed one", numbered(7), WITHIN_S)


async def test_a_server_that_is_away_for_a_while_is_found_again() -> None:
    starts: list[int] = []

    async def publish(connection: ServerConnection) -> None:
        await connection.recv()
        await connection.send(json.dumps({"number": len(starts)}))
        await connection.wait_closed()

    port = free_port()
    starts.append(port)
    server = await serve(publish, "127.0.0.1", port)
    async with subscribed(f"ws://127.0.0.1:{port}", {}) as stream:
        await stream.wait_for("the first one", numbered(1), WITHIN_S)
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.3)
        starts.append(port)
        async with serve(publish, "127.0.0.1", port):
            await stream.wait_for("the second one", numbered(2), WITHIN_S)
