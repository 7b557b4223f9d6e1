"""Messages go to the socket together, in order, and a turn writes to some connections only."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.trading.rig import Listener, listening

from foretell.edge.codec import SINK
from foretell.trading.streams.connection import (
    BYTES_UNSENT_MAX,
    Connection,
    FrameSink,
    Socket,
)
from foretell.trading.streams.flush_queue import FlushQueue
from foretell.trading.streams.message_turns import MessageTurns
from foretell.trading.streams.recent import Message
from foretell.trading.streams.run_connection import run_connection

pytestmark = pytest.mark.anyio


class NotedSink:
    """The sink of a real connection, with the sizes of what was written to it."""

    def __init__(self, sink: FrameSink) -> None:
        self._sink = sink
        self.sizes: list[int] = []

    @property
    def is_ready(self) -> bool:
        return self._sink.is_ready

    def write_frames(self, frames: bytes) -> None:
        self.sizes.append(len(frames))
        self._sink.write_frames(frames)


class Served:
    """An application that serves one connection."""

    def __init__(self) -> None:
        self.connection = Connection("stream", flush_queue=FlushQueue())
        self.sink: NotedSink

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.sink = NotedSink(scope[SINK])
        socket = Socket(receive, send, self.sink)
        await run_connection(socket, self.connection, echo, MessageTurns())


async def echo(connection: Connection, text: str) -> None:
    """Answer with the same text, by a frame."""
    connection.send_frame(text)


@pytest.fixture
async def served() -> AsyncIterator[tuple[Served, Listener]]:
    app = Served()
    async with serving(app) as host, listening(host, "/") as listener:
        await listener.send("ready")
        assert await listener.text() == "ready"
        yield app, listener


def a_message(size: int = 1) -> Message:
    return Message(b'"a":"%b"}' % (b"x" * size))


async def numbers(listener: Listener, count: int) -> list[int]:
    return [(await listener.message())["sequence"] for _ in range(count)]


async def test_messages_of_one_turn_are_written_at_once(served: tuple[Served, Listener]) -> None:
    app, listener = served
    for _ in range(50):
        app.connection.send(a_message())
    assert await numbers(listener, 50) == list(range(1, 51))
    assert len(app.sink.sizes) == 1


async def test_many_bytes_do_not_wait_for_the_next_turn(served: tuple[Served, Listener]) -> None:
    app, listener = served
    app.connection.send(a_message())
    before = list(app.sink.sizes)
    app.connection.send(a_message(BYTES_UNSENT_MAX))
    assert (before, len(app.sink.sizes)) == ([], 1)
    assert await numbers(listener, 2) == [1, 2]


async def test_messages_and_frames_keep_their_order(served: tuple[Served, Listener]) -> None:
    app, listener = served
    expected: list[Any] = []
    for turn in range(100):
        for _ in range(turn % 3):
            app.connection.send(a_message(turn * 100))
            expected.append(app.connection.sequence)
        if turn % 4 == 0:
            app.connection.send_frame(f'{{"sequence":"frame {turn}"}}')
            expected.append(f"frame {turn}")
        if turn % 5 == 0:
            await asyncio.sleep(0)
    assert await numbers(listener, len(expected)) == expected
    assert app.sink.sizes, "no message went the direct way"


async def test_messages_before_a_close_are_sent(served: tuple[Served, Listener]) -> None:
    app, listener = served
    app.connection.send(a_message())
    app.connection.close(1008)
    app.connection.send(a_message())
    assert await numbers(listener, 1) == [1]
    assert await listener.close_code() == 1008


class Sender:
    """A connection that notes when it is flushed, or fails."""

    def __init__(self, name: int, flushed: list[int], *, is_broken: bool) -> None:
        self._name, self._flushed, self._is_broken = name, flushed, is_broken

    def flush_in_turn(self) -> None:
        if self._is_broken:
            raise ZeroDivisionError
        self._flushed.append(self._name)

    def overflow(self) -> None:
        raise NotImplementedError


async def turns(flush_queue: FlushQueue, flushed: Sequence[int]) -> list[int]:
    """Return the number of flushed connections after each turn of the event loop, until none waits."""
    counts = []
    while len(flush_queue):
        await asyncio.sleep(0)
        counts.append(len(flushed))
    return counts


async def test_a_turn_writes_to_some_connections_in_their_order() -> None:
    flush_queue, flushed = FlushQueue(connections_per_turn=2), list[int]()
    for name in range(5):
        flush_queue.add(Sender(name, flushed, is_broken=False))
    assert await turns(flush_queue, flushed) == [2, 4, 5]
    assert flushed == list(range(5))


async def test_a_connection_that_is_flushed_before_its_turn_is_queued_once() -> None:
    """A client that sends PING after every message would else fill the queue before the others."""
    flush_queue = FlushQueue()
    connection = Connection("stream", flush_queue=flush_queue)
    for _ in range(5):
        connection.send(a_message())
        connection.send_frame("PONG")
    assert len(flush_queue) == 1
    await asyncio.sleep(0)
    assert len(flush_queue) == 0
    connection.send(a_message())
    assert len(flush_queue) == 1


@contextlib.contextmanager
def noted_faults() -> Iterator[list[object]]:
    """Note the faults of the event loop, which other tests share, during a block."""
    loop, faults = asyncio.get_running_loop(), list[object]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, found: faults.append(found))
    try:
        yield faults
    finally:
        loop.set_exception_handler(before)


async def test_a_fault_of_a_connection_leaves_the_others_alone() -> None:
    flush_queue, flushed = FlushQueue(connections_per_turn=2), list[int]()
    with noted_faults() as faults:
        for name in range(5):
            flush_queue.add(Sender(name, flushed, is_broken=name == 1))
        await turns(flush_queue, flushed)
        flush_queue.add(Sender(5, flushed, is_broken=False))
        await turns(flush_queue, flushed)
    assert flushed == [0, 2, 3, 4, 5]
    assert len(faults) == 1
