import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.applications import serving
from tests.trading.rig import listening
from tests.trading.streams.dumps_rig import Taker

from foretell.app.http.connection_limits import STREAM_LIMITS
from foretell.edge.codec import SINK
from foretell.trading.streams.connection import (
    BYTES_PER_WRITE,
    BYTES_QUEUED_MAX,
    CLOSE_NORMAL,
    CLOSE_TRY_LATER,
    FRAMES_PER_TURN,
    FRAMES_QUEUED_MAX,
    Connection,
    Socket,
)
from foretell.trading.streams.flush_queue import FlushQueue, SendBudget
from foretell.trading.streams.message_turns import MessageTurns
from foretell.trading.streams.recent import Message
from foretell.trading.streams.run_connection import run_connection

pytestmark = pytest.mark.anyio


async def ignore(_connection: Connection, _text: str) -> None:
    """Ignore what a client sends."""


class Served:
    """An application that serves connections, and keeps them for the test."""

    def __init__(self, subscribe_within_s: float = 60.0, *, is_subscribed: bool = False) -> None:
        self.connections: asyncio.Queue[Connection] = asyncio.Queue()
        self.over: asyncio.Queue[BaseException | None] = asyncio.Queue()
        self._subscribe_within_s = subscribe_within_s
        self._is_subscribed = is_subscribed
        self.handle: Any = ignore
        self.budget = SendBudget()
        self.sink: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.sink = scope[SINK]
        connection = Connection("stream", self.budget, flush_queue=FlushQueue())
        connection.is_subscribed = self._is_subscribed
        await self.connections.put(connection)
        outcome: BaseException | None = None
        try:
            await run_connection(
                Socket(receive, send, self.sink),
                connection,
                self.handle,
                MessageTurns(),
                subscribe_within_s=self._subscribe_within_s,
                close_within_s=0.2,
            )
        except BaseException as error:
            outcome = error
            raise
        finally:
            await self.over.put(outcome)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Served, str]]:
    app = Served()
    async with serving(app) as host:
        yield app, host


async def test_messages_are_numbered_without_a_gap(served: tuple[Served, str]) -> None:
    app, host = served
    async with listening(host, "/") as listener:
        connection = await app.connections.get()
        connection.send(Message(b'"at":1,"a":1}'))
        connection.send_together('"at":2,', ['"a":2}', '"a":3}'])
        connection.send_together('"at":3,', [])
        connection.send(Message(b'"at":4,"a":4}'))
        one = await listener.message()
        two, three = await listener.message()
        four = await listener.message()
    assert one == {"sequence": 1, "stream_id": "stream", "at": 1, "a": 1}
    assert [each["sequence"] for each in (two, three, four)] == [2, 3, 4]


async def test_frames_queued_before_the_close_are_still_sent(served: tuple[Served, str]) -> None:
    app, host = served
    async with listening(host, "/") as listener:
        connection = await app.connections.get()
        connection.send_frame("the last word")
        connection.close(CLOSE_NORMAL)
        connection.close(1008)
        connection.send_frame("too late")
        assert await listener.text() == "the last word"
        assert await listener.close_code() == CLOSE_NORMAL
    assert await app.over.get() is None


async def test_a_client_that_leaves_ends_the_connection(served: tuple[Served, str]) -> None:
    app, host = served
    async with listening(host, "/"):
        connection = await app.connections.get()
    assert await app.over.get() is None
    assert connection.close_code is None


async def test_a_connection_without_a_subscription_expires() -> None:
    app = Served(subscribe_within_s=0.05)
    async with serving(app) as host, listening(host, "/") as listener:
        assert await listener.close_code() == 1008


async def test_a_connection_with_a_subscription_stays() -> None:
    app = Served(subscribe_within_s=0.05, is_subscribed=True)
    async with serving(app) as host, listening(host, "/") as listener:
        await asyncio.sleep(0.2)
        await listener.silence()


async def test_a_fault_in_a_channel_is_not_swallowed(served: tuple[Served, str]) -> None:
    app, host = served

    async def fail(_connection: Connection, _text: str) -> None:
        raise ZeroDivisionError

    app.handle = fail
    async with listening(host, "/") as listener:
        await listener.send("anything")
        assert isinstance(await app.over.get(), ZeroDivisionError)


@contextlib.asynccontextmanager
async def unread(host: str) -> AsyncIterator[None]:
    """Open a stream whose socket the client never reads, so that the server's buffers fill up."""
    reader, writer = await asyncio.open_connection(*host.split(":"), limit=1024)
    writer.write(
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    )
    await reader.readuntil(b"\r\n\r\n")
    try:
        yield
    finally:
        writer.transport.abort()


def send_frame(connection: Connection, text: str) -> None:
    """Send a frame that no stream keeps."""
    connection.send_frame(text)


def send_message(connection: Connection, text: str) -> None:
    """Send a message, which takes the direct way to the socket."""
    connection.send(Message(f'"a":"{text}"}}'.encode()))


@pytest.mark.case("H-02")
@pytest.mark.parametrize("send", [send_frame, send_message])
async def test_a_client_that_reads_nothing_is_disconnected(
    send: Callable[[Connection, str], None],
) -> None:
    app = Served()
    async with serving(app) as host, unread(host):
        connection = await app.connections.get()
        sent = 0
        async with asyncio.timeout(60):
            while connection.close_code is None:
                send(connection, "x" * 64 * 1024)
                sent += 1
                await asyncio.sleep(0)
        assert connection.close_code == 1013
        assert sent * 64 * 1024 > BYTES_QUEUED_MAX
        assert await app.over.get() is None


@pytest.mark.case("H-02")
async def test_attack_m2_messages_count_as_soon_as_the_socket_takes_no_more() -> None:
    """64 KiB on each stream were once written without being counted."""
    app = Served()
    async with serving(app) as host, unread(host):
        connection = await app.connections.get()
        async with asyncio.timeout(60):
            while not connection.bytes_queued:
                send_message(connection, "x" * 1024)
                connection.flush()  # turns of a busy machine are far apart: too much would wait for them
                await asyncio.sleep(0)
        assert connection.bytes_queued == app.budget.bytes_queued > 0
        assert (
            app.sink.transport.get_write_buffer_size()
            <= STREAM_LIMITS.write_buffer_bytes + BYTES_PER_WRITE + 2 * 1024
        )


async def test_attack_h1_a_connection_sends_few_queued_frames_a_turn() -> None:
    async with Taker("stream") as taker:
        for _ in range(FRAMES_QUEUED_MAX):
            taker.connection.send_frame("{}")
        counts = list[int]()
        while taker.connection.bytes_queued:
            before = len(taker.frames)
            await asyncio.sleep(0)
            counts.append(len(taker.frames) - before)
    assert sum(counts) == FRAMES_QUEUED_MAX
    assert max(counts) <= FRAMES_PER_TURN


async def test_a_client_that_reads_late_receives_the_close_code(
    served: tuple[Served, str],
) -> None:
    app, host = served
    async with listening(host, "/") as listener:
        connection = await app.connections.get()
        for _ in range(FRAMES_QUEUED_MAX + 1):
            connection.send_frame("x")
        assert await listener.close_code() == 1013


@pytest.mark.case("H-02")
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 50))
def test_a_queue_never_holds_more_than_its_bound(sizes: list[int], frames_max: int) -> None:
    connection = Connection("stream", frames_queued_max=frames_max)
    for size in sizes:
        connection.send_together("", ['"a":1}'] * size)
        assert connection.frames_queued <= frames_max
    assert connection.sequence == sum(sizes)
    frames = sum(size > 0 for size in sizes)
    assert (connection.close_code == CLOSE_TRY_LATER) == (frames > frames_max)


@pytest.mark.case("H-02")
@pytest.mark.parametrize("sizes", [(BYTES_QUEUED_MAX + 1,), (1, BYTES_QUEUED_MAX)])
def test_attack_m2_a_queue_has_bounded_bytes_from_its_first_frame_on(sizes: tuple[int]) -> None:
    """A frame of any size was once queued where no other one waited."""
    connection = Connection("stream")
    for size in sizes:
        connection.send_frame("x" * size)
    assert (connection.close_code, connection.bytes_queued) == (CLOSE_TRY_LATER, 0)


@pytest.mark.case("H-02")
def test_attack_m2_slow_readers_together_are_bounded_and_the_slowest_is_closed() -> None:
    """300 of them once took 290 MB, and more with more markets."""
    budget = SendBudget(bytes_max=100)
    slow, quick, third = (Connection(name, budget) for name in ("slow", "quick", "third"))
    slow.send_frame("x" * 60)
    quick.send_frame("x" * 40)
    before = [slow.close_code, quick.close_code]

    third.send_frame("x")

    assert before == [None, None]
    assert [each.close_code for each in (slow, quick, third)] == [CLOSE_TRY_LATER, None, None]
    assert budget.bytes_queued == 41
    quick.drop()
    third.drop()
    assert budget.bytes_queued == 0
