"""Bodies that do not come with their requests are read in turns of their clients, in half of the loop's time."""

import asyncio
from collections import Counter
from typing import Final

import pytest
from tests.app.http.test_connection_places import Stream, connect
from tests.app.http.test_malformed_requests import POST, a_request
from tests.app.http.test_request_pace import OTHER, connected_from
from tests.app.http.test_slow_bodies import STRANGERS, budget_used_up
from tests.app.http.test_stream_pace import StreamServer
from tests.rigs.clock import CountingLoop

from foretell.app.http.connection_limits import CONNECTION_LIMITS
from foretell.app.http.framework_connection import FrameworkConnection
from foretell.edge.telemetry import Receive, Scope, Send

CONNECTIONS: Final = 20
READ_S: Final = 0.0005
"""That one read takes of the loop."""
BODY_BYTES: Final = 1024 * 1024
HEAD: Final = a_request(POST, b"Content-Length: %d" % BODY_BYTES, body=b"x" * 100)
LEFT_BYTES: Final = BODY_BYTES - 100


async def refuse(send: Send) -> None:
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


class Refusing:
    """An application that refuses every request, and reads nothing of its body."""

    def __init__(self) -> None:
        self.refused = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        self.refused += 1
        await refuse(send)


class Reading:
    """An application that refuses every request when it has read its body."""

    def __init__(self) -> None:
        self.read_bytes = 0
        self.ended_by_turn: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        is_whole = False
        while not is_whole:
            message = await receive()
            self.read_bytes += len(message.get("body", b""))
            is_whole = not message.get("more_body", False)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, CountingLoop)
        self.ended_by_turn[loop.turns] += 1
        await refuse(send)


class Reads:
    """The reads of bodies in each turn of the loop, each of which takes time of it."""

    def __init__(self, loop: CountingLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_turn: Counter[int] = Counter()
        receive = FrameworkConnection._receive

        def receive_slowly(connection: FrameworkConnection, data: bytes) -> None:
            if connection.is_read_in_turns:
                self.by_turn[loop.turns] += 1
            receive(connection, data)
            loop.selector.now_s += READ_S

        monkeypatch.setattr(FrameworkConnection, "_receive", receive_slowly)


async def is_answered(stream: Stream) -> None:
    head = await stream[0].readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 401")


def test_attack_h1_bodies_on_many_connections_are_read_one_in_a_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Eight hundred bodies of a mebibyte were read as fast as they came, and an order waited for a part of each."""
    app = Refusing()
    server = StreamServer(app=app)
    reads = Reads(server.loop, monkeypatch)

    async def flood() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        for _, writer in streams:
            writer.write(HEAD + bytes(LEFT_BYTES))
        for stream in streams:
            await is_answered(stream)
        await asyncio.gather(*(writer.drain() for _, writer in streams))
        for stream in streams:
            stream[1].write(HEAD)
            await is_answered(stream)
            stream[1].close()

    server.run(flood)
    assert app.refused == 2 * CONNECTIONS
    assert reads.by_turn.total() > CONNECTIONS
    assert max(reads.by_turn.values()) <= 2


def test_attack_h1_a_client_with_one_body_waits_for_one_read_of_another_client(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = StreamServer(app=Refusing())
    reads = Reads(server.loop, monkeypatch)

    async def flood() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        single = await connected_from(server.host, OTHER)
        for stream in (*streams, single):
            stream[1].write(HEAD)
            await is_answered(stream)
        for _, writer in streams:
            writer.write(bytes(LEFT_BYTES))
        single[1].write(bytes(LEFT_BYTES) + HEAD)
        await is_answered(single)
        assert reads.by_turn.total() < CONNECTIONS * LEFT_BYTES / 2**18
        for _, writer in (*streams, single):
            writer.close()

    server.run(flood)


OF_LENGTH: Final = a_request(POST, b"Content-Length: 101", body=b"x" * 100)
IN_CHUNKS: Final = a_request(
    POST, b"Transfer-Encoding: chunked", body=b"64\r\n" + b"x" * 100 + b"\r\n"
)


@pytest.mark.parametrize(
    ("begin", "rest", "end"),
    [
        (OF_LENGTH, b"", b"x"),
        (OF_LENGTH, b"", b"xGET"),
        (IN_CHUNKS, b"", b"0\r\n\r\n"),
        (IN_CHUNKS, b"", b"0\r\n\r\nGET"),
        (IN_CHUNKS, b"0\r\n", b"\r\nGET"),
        (IN_CHUNKS, b"0\r\n\r", b"\nGET"),
    ],
    ids=[
        "length",
        "length and more",
        "chunks",
        "chunks and more",
        "half of a line",
        "half of its end",
    ],
)
def test_attack_h1_last_bytes_of_many_bodies_are_read_one_in_a_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch, begin: bytes, rest: bytes, end: bytes
) -> None:
    """Three hundred bodies that ended at the same moment woke as many applications in one turn, and orders waited."""
    app = Reading()
    server = StreamServer(app=app)
    reads = Reads(server.loop, monkeypatch)

    async def end_together() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        for _, writer in streams:
            writer.write(begin + rest)
        while app.read_bytes < 100 * CONNECTIONS:  # noqa: ASYNC110 - counted in turns of the loop
            await asyncio.sleep(0)
        reads.by_turn.clear()
        for _, writer in streams:
            writer.write(end)
        for stream in streams:
            await is_answered(stream)
            stream[1].close()

    server.run(end_together)
    assert reads.by_turn.total() == app.ended_by_turn.total() == CONNECTIONS
    assert max(reads.by_turn.values()) <= 2
    assert max(app.ended_by_turn.values()) <= 2


def test_attack_h1_a_body_that_its_application_does_not_read_takes_no_turns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each of its turns kept the same bytes again and asked for the next one, all the time."""
    may_read, reading = asyncio.Event(), Reading()

    async def read_later(scope: Scope, receive: Receive, send: Send) -> None:
        await may_read.wait()
        await reading(scope, receive, send)

    server = StreamServer(app=read_later)
    reads = Reads(server.loop, monkeypatch)
    size = 2 * CONNECTION_LIMITS.unread_bytes_max

    async def wait() -> None:
        streams = [await connect(server.host) for _ in range(3)]
        for _, writer in streams:
            writer.write(a_request(POST, b"Content-Length: %d" % size, body=b"x"))
        await asyncio.sleep(1.0)
        for _, writer in streams:
            writer.write(bytes(size - 1))
        await asyncio.sleep(10.0)
        assert reads.by_turn.total() <= 3 * len(streams)
        may_read.set()
        for stream in streams:
            await is_answered(stream)
            stream[1].close()

    server.run(wait)
    assert reading.read_bytes == 3 * size


@pytest.mark.parametrize("proxies", [(), (OTHER,)])
def test_the_small_end_of_a_body_that_waits_for_its_turn_does_not_count(
    monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...]
) -> None:
    """Its request may have a key that is not verified yet, and strangers may hold all the memory that they may."""
    reading = Reading()
    server = StreamServer(app=reading, proxies=proxies)
    Reads(server.loop, monkeypatch)
    forwarded = [b"X-Forwarded-For: 10.9.9.9"] if proxies else []

    async def end_beside_strangers() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        single = await connected_from(server.host, OTHER)
        for _, writer in streams:
            writer.write(a_request(POST, b"Content-Length: 2"))
        single[1].write(a_request(POST, b"Content-Length: 200", *forwarded))
        await asyncio.sleep(1.0)
        with budget_used_up(*(f"203.0.113.{number}" for number in range(STRANGERS))):
            for _, writer in streams:
                writer.write(b"xx")
            single[1].write(bytes(200))
            for stream in (*streams, single):
                await is_answered(stream)
                stream[1].close()

    server.run(end_beside_strangers)
    assert reading.read_bytes == 2 * CONNECTIONS + 200


def test_the_deadline_of_a_body_runs_on_after_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that waited for a turn, and then sends nothing more, does not hold its place for ever."""
    server = StreamServer(app=Refusing())
    Reads(server.loop, monkeypatch)

    async def stop_halfway() -> None:
        streams = [await connect(server.host) for _ in range(CONNECTIONS)]
        for stream in streams:
            stream[1].write(HEAD)
            await is_answered(stream)
        for _, writer in streams:
            writer.write(bytes(1000))
        async with asyncio.timeout(2 * CONNECTION_LIMITS.request_deadline_s):
            for reader, writer in streams:
                await reader.read()
                writer.close()

    server.run(stop_halfway)
