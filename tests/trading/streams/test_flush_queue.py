"""Messages go to the socket together, in order, and a turn writes to some connections only."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import VirtualLoop, run_virtually
from tests.trading.rig import Listener, listening
from typing_extensions import override

from foretell.edge.codec import SINK
from foretell.runtime.pauses import Pauses
from foretell.trading.streams.connection import (
    BYTES_PER_WRITE,
    BYTES_QUEUED_MAX,
    CLOSE_TRY_LATER,
    Connection,
    FrameSink,
    Socket,
)
from foretell.trading.streams.flush_queue import FlushLimits, FlushQueue
from foretell.trading.streams.message_turns import MessageTurns
from foretell.trading.streams.recent import Message
from foretell.trading.streams.run_connection import run_connection

pytestmark = pytest.mark.anyio

NEVER_S = 1_000.0


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


async def numbers(listener: Listener, count: int) -> list[Any]:
    return [(await listener.message())["sequence"] for _ in range(count)]


async def test_messages_of_one_turn_are_written_at_once(served: tuple[Served, Listener]) -> None:
    app, listener = served
    for _ in range(50):
        app.connection.send(a_message())
    assert await numbers(listener, 50) == list(range(1, 51))
    assert len(app.sink.sizes) == 1


async def test_a_write_has_few_bytes_and_the_rest_other_turns(
    served: tuple[Served, Listener],
) -> None:
    app, listener = served
    sizes = [BYTES_PER_WRITE // 2, BYTES_PER_WRITE // 4, 2 * BYTES_PER_WRITE, 1, 1]
    for size in sizes:
        app.connection.send(a_message(size))
    before = list(app.sink.sizes)
    assert await numbers(listener, 5) == [1, 2, 3, 4, 5]
    assert before == []
    assert len(app.sink.sizes) == 3


async def test_attack_h1_messages_of_many_bytes_wait_for_their_turn(
    served: tuple[Served, Listener],
) -> None:
    """More than 16 KiB were once written at once, for all connections in the same turn of the loop."""
    app, _listener = served
    app.connection.send(a_message(BYTES_PER_WRITE + 1))
    assert app.sink.sizes == []


def test_messages_that_wait_for_their_turn_are_bounded() -> None:
    async def play() -> None:
        connection = Connection("stream", flush_queue=FlushQueue())
        for _ in range(4):
            connection.send(a_message(BYTES_QUEUED_MAX // 4 - 100))
        before = connection.close_code
        connection.send(a_message(400))
        assert (before, connection.close_code) == (None, CLOSE_TRY_LATER)

    asyncio.run(play())


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

    def __init__(
        self, name: int, flushed: list[int], *, client: str = "", is_broken: bool = False
    ) -> None:
        self._name, self._flushed, self._is_broken = name, flushed, is_broken
        self.client = client

    def flush_in_turn(self) -> None:
        if self._is_broken:
            raise ZeroDivisionError
        self._flushed.append(self._name)

    def overflow(self) -> None:
        raise NotImplementedError


def a_queue(connections_per_turn: int) -> FlushQueue:
    """Return a queue whose turns take no time, so that no pauses follow them."""
    flush_queue = FlushQueue(Pauses(lambda: 0.0))
    flush_queue.limits = FlushLimits(connections_per_turn, turn_s=NEVER_S)
    return flush_queue


async def turns(flush_queue: FlushQueue, flushed: Sequence[int]) -> list[int]:
    """Return the number of flushed connections after each turn of the event loop, until none waits."""
    counts = []
    while len(flush_queue):
        await asyncio.sleep(0)
        counts.append(len(flushed))
    return counts


async def test_a_turn_writes_to_some_connections_in_their_order() -> None:
    flush_queue, flushed = a_queue(connections_per_turn=2), list[int]()
    for name in range(5):
        flush_queue.add(Sender(name, flushed))
    assert await turns(flush_queue, flushed) == [2, 4, 5]
    assert flushed == list(range(5))


async def test_attack_h1_addresses_take_turns_by_connections() -> None:
    """All thousand streams of a stranger were once written to before that of a trader."""
    flush_queue, flushed = a_queue(connections_per_turn=3), list[int]()
    for name in range(10):
        flush_queue.add(Sender(name, flushed, client="stranger"))
    for name in (100, 101):
        flush_queue.add(Sender(name, flushed, client="trader"))
    flush_queue.add(Sender(200, flushed, client="other"))
    await asyncio.sleep(0)
    flush_queue.add(Sender(300, flushed, client="late"))
    await turns(flush_queue, flushed)
    assert flushed == [0, 100, 200, 1, 101, 300, *range(2, 10)]


class TimedSender(Sender):
    """A connection that takes time to be flushed, and notes when it began."""

    def __init__(self, loop: VirtualLoop, at_s: list[float], takes_s: float, client: str) -> None:
        super().__init__(0, [], client=client)
        self._loop, self._at_s, self._takes_s = loop, at_s, takes_s

    @override
    def flush_in_turn(self) -> None:
        self._at_s.append(self._loop.time())
        self._loop.selector.now_s += self._takes_s


def flush_times(
    connections: int, takes_s: float, limits: FlushLimits, client: str = "stranger"
) -> list[float]:
    """Return when each of many connections is flushed, by a clock that only their flushes and pauses move."""
    loop, at_s = VirtualLoop(), list[float]()

    async def play() -> None:
        flush_queue = FlushQueue(Pauses(loop.time))
        flush_queue.limits = limits
        for _ in range(connections):
            flush_queue.add(TimedSender(loop, at_s, takes_s, client))
        await asyncio.sleep(NEVER_S)

    run_virtually(play(), loop)
    return at_s


def test_attack_h1_turns_take_a_bounded_share_of_the_time() -> None:
    """The thousand streams of one stranger once took all the time of the loop after each order."""
    limits = FlushLimits(2, NEVER_S, 1.0, crowd_pause_factor=3.0, pause_s_max=NEVER_S)
    at_s = flush_times(6, 0.1, limits)
    assert at_s == pytest.approx([0.0, 0.1, 0.8, 0.9, 1.6, 1.7])


def test_turns_of_different_addresses_have_shorter_pauses() -> None:
    limits = FlushLimits(2, NEVER_S, 1.0, crowd_pause_factor=3.0, pause_s_max=NEVER_S)
    at_s = flush_times(6, 0.1, limits, client="")
    assert at_s == pytest.approx([0.0, 0.1, 0.4, 0.5, 0.8, 0.9])


def test_attack_h1_a_turn_ends_when_it_has_taken_its_time() -> None:
    limits = FlushLimits(100, 0.25, crowd_pause_factor=1.0, pause_s_max=NEVER_S)
    at_s = flush_times(5, 0.1, limits)
    assert at_s == pytest.approx([0.0, 0.1, 0.2, 0.6, 0.7])


def test_a_process_that_stood_still_in_a_turn_holds_no_message_back_for_long() -> None:
    limits = FlushLimits(1, pause_factor=3.0, pause_s_max=0.2)
    assert flush_times(2, 1.0, limits) == pytest.approx([0.0, 1.2])


def test_attack_h1_messages_that_wait_for_a_pause_are_written_together() -> None:
    """Each of the messages was once a write of its own on each of a stranger's thousand streams."""
    loop, writes = VirtualLoop(), list[int]()

    class Sink:
        is_ready = True

        def write_frames(self, frames: bytes) -> None:
            loop.selector.now_s += 0.01
            writes.append(frames.count(b'"sequence"'))

    async def never(*_: object) -> None:
        await asyncio.sleep(NEVER_S)

    async def play() -> None:
        flush_queue = FlushQueue(Pauses(loop.time))
        flush_queue.limits = FlushLimits(pause_factor=3.0, pause_s_max=NEVER_S)
        connection = Connection("stream", flush_queue=flush_queue)
        writing = asyncio.create_task(connection.write(Socket(never, never, Sink())))
        await asyncio.sleep(0)
        for _ in range(8):
            connection.send(a_message())
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.0)
        writing.cancel()

    run_virtually(play(), loop)
    assert writes == [1, 3, 3, 1]


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


async def test_a_connection_that_is_flushed_before_its_turn_writes_nothing_in_it(
    served: tuple[Served, Listener],
) -> None:
    app, listener = served
    app.connection.send(a_message())
    app.connection.send_frame('{"sequence":"frame"}')
    assert await numbers(listener, 2) == [1, "frame"]
    assert 0 not in app.sink.sizes
    assert len(app.sink.sizes) == 1


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
    flush_queue, flushed = a_queue(connections_per_turn=2), list[int]()
    with noted_faults() as faults:
        for name in range(5):
            flush_queue.add(Sender(name, flushed, is_broken=name == 1))
        await turns(flush_queue, flushed)
        flush_queue.add(Sender(5, flushed))
        await turns(flush_queue, flushed)
    assert flushed == [0, 2, 3, 4, 5]
    assert len(faults) == 1
