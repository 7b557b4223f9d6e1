"""The streams of an address are read at its allowances, few pieces in a turn of the loop, and those of others meanwhile."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final

import pytest
from tests.app.http.test_connection_places import PROXY, UPGRADE, Held, Stream, connect
from tests.app.http.test_request_pace import OTHER, close, connected_from, of_time
from tests.app.http.test_stream_connection import Application, a_frame
from tests.rigs.applications import serving
from tests.rigs.clock import CountingLoop, VirtualLoop, run_virtually

from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.stream_pace import (
    PAUSE_FACTOR,
    PIECES_PER_TURN,
    PROXIES_PIECES_PER_TURN,
    TURN_S,
    StreamPace,
    StreamTurns,
)
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.telemetry import AsgiApp
from foretell.runtime.allowance import GrowingAllowance
from foretell.runtime.pauses import Pauses

HERE: Final = "127.0.0.1"
STREAMS: Final = 20
MESSAGE: Final = a_frame(b"x" * 10_232)
"""Of 10 KiB."""
BURST: Final = 20
PER_S: Final = 2
"""Messages of an address."""
LIMITS: Final = PlaceLimits(
    stream_bytes_burst=BURST * len(MESSAGE), stream_bytes_per_s=PER_S * len(MESSAGE)
)
EACH: Final = 5
"""Messages of a stream, which are within its own allowance."""
MESSAGE_PIECES: Final = 50


class StreamServer:
    """A server of streams whose time passes only while everything waits."""

    def __init__(
        self,
        places: PlaceLimits = LIMITS,
        proxies: tuple[str, ...] = (),
        limits: ConnectionLimits = CONNECTION_LIMITS,
        app: AsgiApp | None = None,
    ) -> None:
        self.loop = CountingLoop()
        self.app = Application()
        addresses = ClientAddresses(proxies)
        self._limits = limits
        self._served = app or self.app
        self._places = ConnectionPlaces(places, lambda: addresses, of_time(self.loop.time))
        self.host = ""

    def run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async def served() -> None:
            async with serving(self._served, limits=self._limits, places=self._places) as self.host:
                await work()

        run_virtually(served(), self.loop)

    async def upgraded(self, stream: Stream) -> Stream:
        stream[1].write(UPGRADE)
        await stream[0].readuntil(b"\r\n\r\n")
        return stream

    async def streams(self) -> list[Stream]:
        return [await self.upgraded(await connect(self.host)) for _ in range(STREAMS)]


def test_attack_h1_the_bytes_of_an_address_have_an_allowance_over_all_its_streams() -> None:
    """A thousand streams, each within its own allowance, could send 64 MB a second to be parsed."""
    server = StreamServer()

    async def flood() -> None:
        streams, began_s = await server.streams(), server.loop.time()
        for _, writer in streams:
            writer.write(MESSAGE * EACH)
        await server.app.reached(BURST // 2)
        stranger = await server.upgraded(await connected_from(server.host, OTHER))
        stranger[1].write(MESSAGE)
        await server.app.reached(BURST // 2 + 1)
        assert server.loop.time() - began_s < 1.0
        await server.app.reached(STREAMS * EACH + 1)
        late_s = (STREAMS * EACH - BURST) / PER_S
        assert late_s - 1 <= server.loop.time() - began_s <= late_s + 1
        close(*streams, stranger)

    server.run(flood)


def test_streams_through_a_proxy_have_no_allowance_together() -> None:
    server = StreamServer(proxies=(HERE,))

    async def flood() -> None:
        streams, began_s = await server.streams(), server.loop.time()
        for _, writer in streams:
            writer.write(MESSAGE * EACH)
        await server.app.reached(STREAMS * EACH)
        assert server.loop.time() - began_s < 1.0
        close(*streams)

    server.run(flood)


@pytest.mark.parametrize(
    ("proxies", "more_than", "at_most"),
    [
        pytest.param((), 1, PIECES_PER_TURN, id="alone"),
        pytest.param((HERE,), PIECES_PER_TURN, PROXIES_PIECES_PER_TURN, id="a proxy"),
    ],
)
def test_attack_h1_few_pieces_of_an_address_are_parsed_in_a_turn_of_the_loop(
    monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], more_than: int, at_most: int
) -> None:
    """A thousand streams had a thousand pieces parsed before an order was read."""
    server, pieces_by_turn = StreamServer(PlaceLimits(), proxies), Counter[int]()
    take = StreamPace.take

    def counting(pace: StreamPace, *, frames: int = 0, size: int = 0) -> None:
        pieces_by_turn[server.loop.turns] += size > 0
        take(pace, frames=frames, size=size)

    monkeypatch.setattr(StreamPace, "take", counting)

    async def send_at_once() -> None:
        streams = await server.streams()
        for _, writer in streams:
            writer.write(MESSAGE)
        await server.app.reached(STREAMS)
        close(*streams)

    server.run(send_at_once)
    assert pieces_by_turn.total() >= STREAMS * 10
    assert more_than < max(pieces_by_turn.values()) <= at_most


class PacedStream:
    """A stream with a message of some pieces, which are parsed in its turns."""

    def __init__(self, number: int, pace: StreamPace, pieces: int, parsed: list[int]) -> None:
        self._number, self._pace, self._left, self._parsed = number, pace, pieces, parsed

    def read_on(self, *, has_begun: bool = False) -> None:
        if self._left:
            self._pace.await_turn(self, self._parse, has_begun=has_begun)

    def _parse(self) -> None:
        self._left -= 1
        self._parsed.append(self._number)
        self.read_on(has_begun=True)


def unlimited(loop: VirtualLoop, turns: StreamTurns | None = None) -> StreamPace:
    allowances = GrowingAllowance(1e9, 1e9, 0.0), GrowingAllowance(1e9, 1e9, 0.0)
    return StreamPace(*allowances, loop.time, turns or StreamTurns(Pauses(loop.time)))


def parsed_by(pieces: Sequence[int]) -> list[int]:
    """Return the numbers of streams in the order of their pieces; each has a message, and all arrive at once."""
    loop, parsed = VirtualLoop(), list[int]()

    async def read() -> None:
        pace = unlimited(loop)
        for number, count in enumerate(pieces):
            PacedStream(number, pace, count, parsed).read_on()
        await asyncio.sleep(1.0)

    run_virtually(read(), loop)
    return parsed


def test_of_many_messages_that_arrive_at_once_few_are_held_in_large_part() -> None:
    """A thousand subscriptions at the same moment, whose pieces took turns, were all held nearly whole."""
    parsed, held, held_max = Counter[int](), 0, 0
    for number in parsed_by([MESSAGE_PIECES] * STREAMS):
        parsed[number] += 1
        held += 1
        held_max = max(held_max, held)
        if parsed[number] == MESSAGE_PIECES:
            held -= MESSAGE_PIECES
    assert parsed.total() == STREAMS * MESSAGE_PIECES
    assert held_max <= 2 * STREAMS + MESSAGE_PIECES


def test_large_messages_keep_out_no_small_ones() -> None:
    assert parsed_by([100, 100, 1, 1]).index(3) < 8


def test_small_messages_keep_out_no_large_one() -> None:
    assert parsed_by([100] + [1] * 200)[-1] != 0


ADDRESSES: Final = 50
PIECE_S: Final = 0.4 * TURN_S


def test_attack_h1_addresses_are_read_by_turns_whose_streams_are_many_or_few() -> None:
    """An address with one piece waits for a piece of each other address, not for all of them."""
    loop, parsed = VirtualLoop(), list[str]()

    async def read() -> None:
        turns = StreamTurns(Pauses(loop.time))
        for name, streams in (("a", STREAMS), ("b", STREAMS), ("c", 1)):
            pace = unlimited(loop, turns)
            for stream in range(streams):
                pace.await_turn(stream, partial(parsed.append, name))
        await asyncio.sleep(1.0)

    run_virtually(read(), loop)
    assert "".join(parsed) == "abc" + "ab" * (STREAMS - 1)


def test_attack_h1_streams_of_many_addresses_take_a_bounded_part_of_the_loops_time() -> None:
    """Twenty addresses, each within its allowances, had the loop parse for 6 ms before an order was read."""
    loop, number_by_turn, ended_s = CountingLoop(), Counter[int](), [0.0]

    def parse() -> None:
        loop.selector.now_s += PIECE_S
        number_by_turn[loop.turns] += 1
        ended_s[0] = loop.time()

    async def read() -> None:
        turns = StreamTurns(Pauses(loop.time))
        for _ in range(ADDRESSES):
            pace = unlimited(loop, turns)
            for stream in range(STREAMS):
                pace.await_turn(stream, parse)
        await asyncio.sleep(10.0)

    run_virtually(read(), loop)
    assert number_by_turn.total() == ADDRESSES * STREAMS
    busy_s = ADDRESSES * STREAMS * PIECE_S
    assert ended_s[0] == pytest.approx((1 + PAUSE_FACTOR) * busy_s, rel=0.01)
    assert max(number_by_turn.values()) * PIECE_S < TURN_S + PIECE_S


def test_a_stream_that_has_left_gets_no_turn() -> None:
    loop = VirtualLoop()

    async def read() -> list[int]:
        pace = unlimited(loop)
        parsed = list[int]()
        stream = PacedStream(0, pace, 1, parsed)
        stream.read_on()
        for _ in range(2):
            pace.leave(stream)
        await asyncio.sleep(1.0)
        return parsed

    assert run_virtually(read(), loop) == []


def test_the_pace_of_an_address_outlasts_its_streams() -> None:
    """A client that closed its last stream and opened another one had a whole burst again."""
    limits = PlaceLimits(frames_burst=10, frames_per_s=5, stream_bytes_burst=50)
    places = ConnectionPlaces(limits, clock=of_time(lambda: 0.0))
    one, stranger = places.take("127.0.0.1", Held()), places.take("127.0.0.2", Held())
    assert one is not None
    assert stranger is not None
    one.stream_pace().take(frames=15, size=50)
    one.end()
    again = places.take("127.0.0.1", Held())
    assert again is not None
    assert again.stream_pace().debt_s() == 1.0
    assert stranger.stream_pace().debt_s() == 0.0


def test_streams_through_a_proxy_share_turns_only() -> None:
    places = ConnectionPlaces(PlaceLimits(frames_burst=1), lambda: ClientAddresses((PROXY,)))
    proxied = places.take(PROXY, Held())
    assert proxied is not None
    proxied.stream_pace().take(frames=100, size=2**30)
    assert proxied.stream_pace().debt_s() == 0.0
