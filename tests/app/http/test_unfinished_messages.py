"""The bytes that streams hold of messages whose end does not come are bounded, and so is the time."""

import asyncio
import contextlib
import struct
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.app.http.test_connection_places import PROXY, UPGRADE, Held, Stream, connect
from tests.app.http.test_request_pace import close
from tests.app.http.test_stream_connection import PING, TEXT, a_frame, silent
from tests.app.http.test_stream_pace import StreamServer

from foretell.app.http import stream_connection
from foretell.app.http.connection_limits import STREAM_LIMITS, ConnectionLimits, StreamLimits
from foretell.app.http.connection_places import ConnectionPlaces, Place, PlaceLimits
from foretell.app.http.stream_connection import UNFINISHED
from foretell.app.http.unfinished_messages import (
    UNFINISHED_BYTES_BY_CLIENT_MAX,
    UNFINISHED_BYTES_MAX,
    UnfinishedMessages,
)
from foretell.edge.client_addresses import ClientAddresses

BEGINNING: Final = TEXT & 0x7F
"""The kind of a frame that begins a message which others go on with."""
MORE: Final = 0x00
HEADS_BYTES: Final = 1_000
"""As many as the heads of a stream's frames, which are held until they are parsed."""
REFERENCE: Final = Path(__file__).parents[3] / "docs" / "reference"
END: Final = 0x80
WITHIN_S: Final = 60.0
"""Of the machine's clock, which goes on while that of a loop waits."""
CLOSING: Final = bytes([0x88, 2 + len(UNFINISHED)]) + struct.pack("!H", 1008) + UNFINISHED.encode()
LIMITS: Final = ConnectionLimits(stream=StreamLimits(message_s=10.0))
"""So that a client that answers no ping is not closed for that before."""


def a_server() -> StreamServer:
    return StreamServer(PlaceLimits(), limits=LIMITS)


class Streams:
    """Streams of clients that hold bytes, and the names of those that were closed."""

    def __init__(self, client_bytes_max: int, bytes_max: int) -> None:
        self.messages = UnfinishedMessages(bytes_max, client_bytes_max)
        self.closed: list[str] = []
        self._places = ConnectionPlaces(addresses=lambda: ClientAddresses([PROXY]))
        self._streams: dict[str, tuple[Place, HeldStream]] = {}

    def hold(self, client: str, name: str, size: int) -> None:
        if name not in self._streams:
            place = self._places.take(client, Held())
            assert place is not None
            self._streams[name] = place, HeldStream(name, self.closed.append)
        self.messages.hold(*self._streams[name], size)


class HeldStream:
    """A stream that notes that it was closed."""

    def __init__(self, name: str, close: Callable[[str], None]) -> None:
        self._name, self._close = name, close

    def give_up(self) -> None:
        self._close(self._name)


def test_bytes_are_held_until_the_stream_has_none() -> None:
    streams = Streams(100, 100)
    for size in (10, 100, 30):
        streams.hold("a", "first", size)
    streams.hold("b", "second", 5)
    assert streams.messages.bytes_held == 35
    for name in ("first", "second", "first"):
        streams.hold("a", name, 0)
    assert (streams.messages.bytes_held, streams.closed) == (0, [])


def test_beyond_the_bytes_of_a_client_its_stream_that_waits_longest_is_closed() -> None:
    streams = Streams(100, 1_000)
    streams.hold("b", "other", 90)
    streams.hold("a", "oldest", 40)
    streams.hold("a", "second", 50)
    streams.hold("a", "oldest", 45)
    streams.hold("a", "newest", 6)
    assert streams.closed == ["oldest"]
    assert streams.messages.bytes_held == 90 + 50 + 6


def test_beyond_the_bytes_of_all_the_client_with_most_loses_a_stream() -> None:
    streams = Streams(100, 150)
    streams.hold("b", "one", 50)
    for name in ("first", "second"):
        streams.hold("a", name, 40)
    streams.hold("c", "another", 25)
    assert streams.closed == ["first"]


def test_each_stream_of_a_proxy_is_a_client_of_its_own() -> None:
    streams = Streams(100, 1_000)
    for number in range(5):
        streams.hold(PROXY, str(number), 90)
    assert streams.closed == []


def test_the_page_of_the_streams_has_these_bounds() -> None:
    page = " ".join((REFERENCE / "websockets.md").read_text().split())
    of_all, of_client = (
        each // 2**20 for each in (UNFINISHED_BYTES_MAX, UNFINISHED_BYTES_BY_CLIENT_MAX)
    )
    burst, per_s = PlaceLimits().stream_bytes_burst, PlaceLimits().stream_bytes_per_s
    assert f"has {of_all} MiB of memory in a process, that of one address {of_client} MiB" in page
    assert f"A message has {STREAM_LIMITS.message_s:.0f} s from its first byte" in page
    assert f"frames and {burst / 2**20:.0f} MiB at once" in page
    assert f"frames and {per_s / 2**20:.0f} MiB a second after that" in page


async def answer_to(stream: Stream) -> bytes:
    """Return what the server sends until the end of a stream."""
    seen = b""
    with contextlib.suppress(ConnectionError):
        while more := await stream[0].read(1_000):
            seen += more
    return seen


async def held(messages: UnfinishedMessages, size: int) -> None:
    """Return once so many bytes are held."""
    until_s = time.monotonic() + WITHIN_S
    while messages.bytes_held != size:
        assert time.monotonic() < until_s, messages.bytes_held
        await asyncio.sleep(0)


@pytest.mark.parametrize(
    ("frames", "held_bytes"),
    [
        pytest.param([a_frame(b"x" * 9_990, BEGINNING)], 9_990 + 128, id="fragments"),
        pytest.param([a_frame(b"x" * 9_990)[:-1]], 9_990 - 1, id="part of a frame"),
        pytest.param([a_frame(b"", BEGINNING)] + [a_frame(b"", MORE)] * 100, 101 * 128, id="empty"),
    ],
)
def test_attack_h5_the_unfinished_messages_of_an_address_have_one_budget(
    frames: Sequence[bytes], held_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand streams held 256 KiB each for as long as they answered pings."""
    messages = UnfinishedMessages(client_bytes_max=2 * held_bytes + HEADS_BYTES)
    monkeypatch.setattr(stream_connection, "UNFINISHED_MESSAGES", messages)
    server = a_server()

    async def begin() -> None:
        streams = [await server.upgraded(await connect(server.host)) for _ in range(3)]
        for count, (_, writer) in enumerate(streams[:2], 1):
            writer.write(b"".join(frames))
            await held(messages, count * held_bytes)
        streams[2][1].write(b"".join(frames))
        assert await answer_to(streams[0]) == CLOSING
        await held(messages, 2 * held_bytes)
        close(*streams)

    server.run(begin)
    assert messages.bytes_held == 0


def test_a_message_is_held_until_it_is_handled(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = UnfinishedMessages()
    monkeypatch.setattr(stream_connection, "UNFINISHED_MESSAGES", messages)
    server = a_server()

    async def send_in_parts() -> None:
        stream = await server.upgraded(await connect(server.host))
        for kind, size in ((BEGINNING, 5_128), (MORE, 10_256), (END, 0), (TEXT, 0)):
            stream[1].write(a_frame(b"x" * 5_000, kind))
            await held(messages, size)
        await server.app.reached(2)
        await held(messages, 0)
        stream[1].close()

    server.run(send_in_parts)


def test_attack_h5_a_message_that_never_ends_closes_its_stream() -> None:
    """It was held for as long as the client sent pings."""
    server = a_server()

    async def never_end() -> None:
        stream = await server.upgraded(await connect(server.host))
        began_s = server.loop.time()
        stream[1].write(a_frame(b"x", BEGINNING))
        answering = asyncio.create_task(answer_to(stream))
        while not answering.done():
            stream[1].write(a_frame(b"", PING))
            await asyncio.sleep(1.0)
        assert (await answering).endswith(CLOSING)
        assert server.loop.time() - began_s <= LIMITS.stream.message_s + 2
        stream[1].close()

    server.run(never_end)


def test_a_message_that_takes_less_than_its_time_after_another_one_is_handled() -> None:
    server = a_server()

    async def send_slowly() -> None:
        stream = await server.upgraded(await connect(server.host))
        for _ in range(3):
            stream[1].write(a_frame(b"x", BEGINNING))
            await asyncio.sleep(0.7 * LIMITS.stream.message_s)
            stream[1].write(a_frame(b"x", END))
        await server.app.reached(3)
        stream[1].close()

    server.run(send_slowly)


def test_a_message_whose_parts_wait_for_their_turn_has_more_time() -> None:
    """The client has sent all of it: what is late is its address's allowance."""
    places = PlaceLimits(stream_bytes_burst=500, stream_bytes_per_s=250)
    server = StreamServer(places, limits=LIMITS)

    async def wait_for_it() -> None:
        stream = await server.upgraded(await connect(server.host))
        began_s = server.loop.time()
        stream[1].write(a_frame(b"x" * 5_000))
        await server.app.reached(1)
        assert server.loop.time() - began_s > LIMITS.stream.message_s
        stream[1].close()

    server.run(wait_for_it)


def test_a_stream_that_has_no_room_before_it_is_accepted_ends_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    messages = UnfinishedMessages(client_bytes_max=1_000)
    monkeypatch.setattr(stream_connection, "UNFINISHED_MESSAGES", messages)
    server = StreamServer(PlaceLimits(), app=silent)

    async def send_early() -> None:
        stream = await connect(server.host)
        stream[1].write(UPGRADE)
        await asyncio.sleep(1.0)
        stream[1].write(a_frame(b"x" * 5_000)[:-1])
        assert await answer_to(stream) == b""
        assert server.loop.time() < STREAM_LIMITS.handshake_s
        stream[1].close()

    server.run(send_early)
    assert messages.bytes_held == 0
    assert not [record for record in caplog.records if record.exc_info]
