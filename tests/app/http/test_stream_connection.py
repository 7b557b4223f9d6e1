"""WebSocket connections read no faster than their allowance, end in time, and leave others alone."""

import asyncio
import contextlib
import struct
import time
from collections.abc import AsyncIterator
from typing import cast

import pytest
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from tests.rigs.applications import serving

from foretell.app.http.connection_limits import STREAM_LIMITS, ConnectionLimits, StreamLimits
from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.stream_pace import StreamPace
from foretell.edge.codec import SINK
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.runtime.allowance import GrowingAllowance
from foretell.trading.streams.connection import FrameSink

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
PAUSE_S = 3.0
"""A deadline that a slow machine keeps, where a test waits until it has passed."""
BUFFERED_BY_SOCKETS_MAX = 64
"""Megabytes: more than the kernel takes for two sockets."""
HANDSHAKE = (
    b"GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MASK = b"\x00\x00\x00\x00"
TEXT, CLOSE, PING = 0x81, 0x88, 0x89


def a_frame(payload: bytes, kind: int = TEXT) -> bytes:
    """Return a client's frame, masked with zeros."""
    assert len(payload) < 2**16
    if len(payload) < 126:
        return bytes([kind, 0x80 | len(payload)]) + MASK + payload
    return bytes([kind, 0x80 | 126]) + struct.pack("!H", len(payload)) + MASK + payload


class Application:
    """Counts the messages of its streams, and answers HTTP requests."""

    def __init__(self) -> None:
        self.messages = 0
        self.sends = b""
        self.sent = 0
        self.sink: FrameSink
        self.task: asyncio.Task[object]
        self._handled = asyncio.Condition()

    async def reached(self, messages: int) -> None:
        """Return once this many messages were handled."""
        async with self._handled:
            await self._handled.wait_for(lambda: self.messages >= messages)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            headers = [(b"content-length", b"2")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"OK"})
            return
        assert (await receive())["type"] == "websocket.connect"
        self.sink = scope[SINK]
        await send({"type": "websocket.accept"})
        self.task = cast("asyncio.Task[object]", asyncio.current_task())
        while self.sends:
            await send({"type": "websocket.send", "text": self.sends.decode()})
            self.sent += 1
            await asyncio.sleep(0)  # so that only the client can stop it
        while (await receive())["type"] == "websocket.receive":
            async with self._handled:
                self.messages += 1
                self._handled.notify_all()


@pytest.fixture
def app() -> Application:
    return Application()


@pytest.fixture
async def host(app: Application) -> AsyncIterator[str]:
    async with serving(app) as place:
        yield place


@contextlib.asynccontextmanager
async def a_stream(
    place: str, head: bytes = HANDSHAKE
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address, port = place.split(":")
    reader, writer = await asyncio.open_connection(address, int(port))
    writer.write(head)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def flood(writer: asyncio.StreamWriter, frame: bytes) -> None:
    """Send frames as fast as the server reads them."""
    batch = frame * (64 * 1024 // len(frame))
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(batch)
            await writer.drain()


async def is_ended(reader: asyncio.StreamReader) -> bool:
    """Read to the end of a connection; a reset is an end."""
    async with asyncio.timeout(WITHIN_S):
        with contextlib.suppress(ConnectionError):
            await reader.read()
        return True


async def answered(place: str) -> bytes:
    async with a_stream(place, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n") as (r, _):
        async with asyncio.timeout(WITHIN_S):
            return await r.read()


async def take_nothing(reader: asyncio.StreamReader, app: Application) -> None:
    """Take nothing more of what the application sends, until the server waits for that."""
    await reader.readuntil(b"\r\n\r\n")
    reader._transport.pause_reading()  # type: ignore[attr-defined]  # not public
    async with asyncio.timeout(WITHIN_S):
        while app.sink.is_ready:  # noqa: ASYNC110 - no event to wait for
            await asyncio.sleep(0)


class Taken:
    """The frames and bytes that streams have parsed; control frames never become messages."""

    def __init__(self) -> None:
        self.frames = self.size = 0


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> Taken:
    counted, take = Taken(), StreamPace.take

    def counting(pace: StreamPace, *, frames: int = 0, size: int = 0) -> None:
        counted.frames += frames
        counted.size += size
        take(pace, frames=frames, size=size)

    monkeypatch.setattr(StreamPace, "take", counting)
    return counted


@pytest.mark.case("H-03")
@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(a_frame(b"PING"), id="text"),
        pytest.param(a_frame(b""), id="empty"),
        pytest.param(a_frame(b"", PING), id="ping"),
        pytest.param(a_frame(b"x" * 60_000), id="large"),
    ],
)
async def test_attack_h1_a_flood_of_frames_is_read_at_the_allowance(
    host: str, app: Application, taken: Taken, frame: bytes
) -> None:
    """One connection that floods once stopped the exchange for ten seconds."""
    limits = STREAM_LIMITS
    started_s = time.monotonic()
    async with a_stream(host) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        flooding = asyncio.create_task(flood(writer, frame))
        answers = [await answered(host) for _ in range(20)]
        async with asyncio.timeout(WITHIN_S):
            while not taken.frames:  # noqa: ASYNC110 - no event to wait for
                await asyncio.sleep(0.01)
        flooding.cancel()
        passed_s = time.monotonic() - started_s
    in_piece = limits.piece_bytes // len(frame) + 1
    assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
    assert app.messages <= taken.frames
    assert 0 < taken.frames <= limits.frames_burst + limits.frames_per_s * passed_s + in_piece
    size_max = limits.bytes_burst + limits.bytes_per_s * passed_s + limits.piece_bytes
    assert taken.frames * len(frame) <= taken.size <= size_max


async def test_attack_h1_the_streams_of_an_address_share_an_allowance(app: Application) -> None:
    """Three hundred streams, each within its own allowance, took most of a processor."""
    limits = PlaceLimits(frames_burst=300, frames_per_s=50)
    streams, started_s = 4, time.monotonic()
    async with (
        serving(app, places=ConnectionPlaces(limits)) as place,
        contextlib.AsyncExitStack() as stack,
    ):
        floods = []
        for _ in range(streams):
            reader, writer = await stack.enter_async_context(a_stream(place))
            await reader.readuntil(b"\r\n\r\n")
            floods.append(asyncio.create_task(flood(writer, a_frame(b"PING"))))
        async with asyncio.timeout(WITHIN_S):
            await app.reached(300)
        await asyncio.sleep(1.0)
        for each in floods:
            each.cancel()
    passed_s = time.monotonic() - started_s
    in_pieces = streams * (STREAM_LIMITS.piece_bytes // len(a_frame(b"PING")) + 1)
    assert app.messages <= limits.frames_burst + limits.frames_per_s * passed_s + in_pieces


@pytest.mark.case("H-03")
def test_a_stream_opens_on_the_event_loop_of_the_commands() -> None:
    """A finding: what was set of asyncio's transport, uvloop's has not, so that no stream opened."""

    async def opened() -> bytes:
        async with serving(Application()) as place, a_stream(place) as (reader, _):
            return await reader.readuntil(b"\r\n\r\n")

    assert uvloop.run(opened()).startswith(b"HTTP/1.1 101 ")


async def test_messages_are_not_compressed(host: str) -> None:
    """A frame of a kilobyte could hold a message of 256 kB, for the price of a small one."""
    offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Key"
    async with a_stream(host, HANDSHAKE.replace(b"Sec-WebSocket-Key", offer)) as (reader, _):
        answer = await reader.readuntil(b"\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 101")
    assert b"extensions" not in answer.lower()


async def test_a_burst_within_the_allowance_is_handled_at_once(host: str, app: Application) -> None:
    async with a_stream(host) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(a_frame(b"x" * 2_000) * 150)
        async with asyncio.timeout(WITHIN_S):
            await app.reached(150)


async def test_frames_beyond_the_burst_are_handled_later_and_in_order(
    host: str, app: Application
) -> None:
    count = STREAM_LIMITS.frames_burst + 10
    async with a_stream(host) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(a_frame(b"x") * count)
        async with asyncio.timeout(WITHIN_S):
            await app.reached(count)


@pytest.mark.case("G-02")
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(
            HANDSHAKE.replace(b"\r\n\r\n", b"\r\nContent-Length: 100\r\n\r\nabc"), id="get"
        ),
        pytest.param(
            HANDSHAKE.replace(b"GET", b"POST").replace(
                b"\r\n\r\n", b"\r\nContent-Length: 100\r\n\r\nabc"
            ),
            id="post",
        ),
        pytest.param(
            HANDSHAKE.replace(b"GET", b"DELETE").replace(
                b"\r\n\r\n", b"\r\nTransfer-Encoding: chunked\r\n\r\n"
            ),
            id="delete",
        ),
        pytest.param(HANDSHAKE.replace(b"GET", b"POST"), id="post without a body"),
    ],
)
async def test_attack_h2_an_upgrade_with_a_body_is_refused_and_closed(
    host: str, head: bytes
) -> None:
    async with a_stream(host, head) as (reader, _), asyncio.timeout(WITHIN_S):
        assert (await reader.read()).startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "head",
    [
        HANDSHAKE.replace(b"Version: 13", b"Version: 12"),
        HANDSHAKE.replace(b"dGhlIHNhbXBsZSBub25jZQ==", b"short"),
        HANDSHAKE.replace(b"Sec-WebSocket-Key: ", b"X-Key: "),
    ],
)
async def test_a_broken_handshake_is_answered_and_closed(host: str, head: bytes) -> None:
    async with a_stream(host, head) as (reader, _), asyncio.timeout(WITHIN_S):
        assert (await reader.read()).startswith(b"HTTP/1.1 4")


async def test_sending_waits_for_a_client_that_takes_nothing_and_then_cuts_it_off(
    app: Application,
) -> None:
    """What waits stays with the application, which counts it; the end needs no reader."""
    app.sends = b"x" * 1_000_000
    limits = ConnectionLimits(stream=StreamLimits(closing_s=0.1))
    places = ConnectionPlaces()
    async with serving(app, limits=limits, places=places) as host, a_stream(host) as (reader, _):
        await take_nothing(reader, app)
        for _ in range(10_000):
            await asyncio.sleep(0)
        assert app.sent <= BUFFERED_BY_SOCKETS_MAX
        app.task.cancel()
        async with asyncio.timeout(WITHIN_S):
            while places.taken:  # noqa: ASYNC110 - the server notifies no one
                await asyncio.sleep(0.01)
        reader._transport.resume_reading()  # type: ignore[attr-defined]  # not public
        assert await is_ended(reader)


async def silent(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Answer no handshake until the client has gone."""
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def test_attack_h2_a_handshake_that_is_never_answered_ends_the_connection() -> None:
    """The deadline of the request ended with its last byte, and nothing came after it."""
    limits = ConnectionLimits(stream=StreamLimits(handshake_s=0.1))
    async with serving(silent, limits=limits) as host, a_stream(host) as (reader, _):
        assert await is_ended(reader)


async def test_a_stream_outlives_the_deadline_of_its_handshake(app: Application) -> None:
    limits = ConnectionLimits(stream=StreamLimits(handshake_s=PAUSE_S))
    async with serving(app, limits=limits) as host, a_stream(host) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.2 * PAUSE_S)
        writer.write(a_frame(b"a"))
        async with asyncio.timeout(WITHIN_S):
            await app.reached(1)


async def test_text_that_is_no_utf_8_closes_the_connection_without_a_trace(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with a_stream(host) as (reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(a_frame(b"\xff\xfe"))
        async with asyncio.timeout(WITHIN_S):
            closing = await reader.read()
    assert closing[2:4] == struct.pack("!H", 1007)
    assert not [record for record in caplog.records if record.exc_info]


@given(
    st.lists(st.tuples(st.floats(0, 10), st.integers(0, 50)), max_size=30),
    st.integers(1, 100),
    st.floats(0.5, 50),
)
def test_an_allowance_lets_no_more_pass_than_its_burst_and_rate(
    steps: list[tuple[float, int]], burst: int, per_s: float
) -> None:
    """A client that waits as long as it must takes at most the burst, the growth, and one step."""
    allowance, now_s, taken = GrowingAllowance(burst, per_s, 0.0), 0.0, 0
    for pause_s, amount in steps:
        now_s += pause_s
        assert taken <= burst + per_s * now_s + 1e-6 * (1 + now_s)
        now_s += allowance.take(amount, now_s)
        taken += amount
    assert taken <= burst + per_s * now_s + 1e-6 * (1 + now_s)


@pytest.mark.parametrize(
    ("request_before", "pause_s"),
    [
        pytest.param(b"", 0.2, id="at once"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", PAUSE_S, id="after a request"),
    ],
)
async def test_the_silence_of_a_stream_is_no_pause_between_requests(
    app: Application, request_before: bytes, pause_s: float
) -> None:
    """Every stream once ended after the longest pause that is allowed between two requests."""
    async with (
        serving(app, limits=ConnectionLimits(keep_alive_s=pause_s)) as place,
        a_stream(place, request_before) as (reader, writer),
        asyncio.timeout(WITHIN_S),
    ):
        if request_before:
            await reader.readuntil(b"OK")
        writer.write(HANDSHAKE)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1.5 * pause_s)
        writer.write(a_frame(b"a"))
        await app.reached(1)
    assert app.messages == 1
