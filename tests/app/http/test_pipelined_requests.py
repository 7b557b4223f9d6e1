"""Requests that are sent without waiting for answers."""

import asyncio
import contextlib
import gc
import itertools
import logging
from collections import Counter
from collections.abc import AsyncIterator
from typing import cast

import pytest
from tests.app.http.test_malformed_requests import ORDER, Peer, a_request, connected
from tests.rigs.applications import serving
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from foretell.app.clock_and_ids import numbered_ids
from foretell.app.http.connection_limits import CONNECTION_LIMITS
from foretell.app.http.connection_places import Place
from foretell.app.http.fast_routes import served_under
from foretell.app.http.framework_connection import FrameworkConnection
from foretell.app.http.open_transport import WhileOpen
from foretell.edge.codec import PLACE
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry

pytestmark = pytest.mark.anyio

REQUESTS = 5_000
PIPELINED = 300
SHORTEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
PARSED_MAX = CONNECTION_LIMITS.pipelined_max + CONNECTION_LIMITS.piece_bytes // len(SHORTEST) + 2


class Gate:
    """An application that answers with the path when the gate is open."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.began = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        self.began.set()
        await self.is_open.wait()
        body = scope["path"].encode()
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
async def peer(gate: Gate) -> AsyncIterator[Peer]:
    def reply(request: FastRequest, reply: SendReply) -> None:
        reply(FastResponse(200, request.path.encode()))

    routes = {("POST", "/order"): FastRoute(lambda query: not query, reply)}
    fast = served_under("/clob", routes, Telemetry(gate, "trading", numbered_ids()))
    async with serving(gate, fast) as place, connected(place) as peer:
        yield peer


def parsed() -> int:
    """Return the number of requests that were parsed and are not answered, in this process."""
    gc.collect()
    return sum(isinstance(each, RequestResponseCycle) for each in gc.get_objects())


def kept_header_bytes() -> int:
    """Return the bytes of the headers of requests that are not answered, in this process."""
    cycles = (each for each in gc.get_objects() if isinstance(each, RequestResponseCycle))
    return sum(len(value) for each in cycles for _, value in each.scope["headers"])


@pytest.mark.case("G-02")
async def test_attack_h5_of_many_pipelined_requests_few_are_parsed_before_their_turn(
    gate: Gate, peer: Peer
) -> None:
    """A quarter of a mebibyte of the shortest requests took fifty of memory, on each connection."""
    writing = asyncio.create_task(peer.send(SHORTEST * REQUESTS))
    await gate.began.wait()
    for _ in range(20):
        await asyncio.sleep(0.01)
        assert parsed() <= PARSED_MAX
    gate.is_open.set()
    for _ in range(REQUESTS):
        assert (await peer.answer()).body == b"/"
    await writing
    assert parsed() <= 1


@pytest.mark.parametrize(
    ("request_of_many", "most"),
    [
        pytest.param(a_request(b"GET / HTTP/1.1", b"X-Large: " + b"a" * 30_000), 5, id="large"),
        pytest.param(a_request(b"GET / HTTP/1.1", *[b"x:y"] * 120), 6, id="many headers"),
        pytest.param(
            a_request(
                b"POST / HTTP/1.1",
                b"Transfer-Encoding: chunked",
                body=b"0\r\nX: " + b"a" * 30_000 + b"\r\n\r\n",
            ),
            PARSED_MAX,
            id="behind bodies",
        ),
    ],
)
async def test_attack_h5_large_heads_of_pipelined_requests_are_bounded(
    gate: Gate, peer: Peer, request_of_many: bytes, most: int
) -> None:
    """A finding: they counted nowhere, and each connection had two mebibytes of them."""
    writing = asyncio.create_task(peer.send(request_of_many * 40))
    await gate.began.wait()
    for _ in range(20):
        await asyncio.sleep(0.01)
        assert parsed() <= most
    assert kept_header_bytes() < 4 * CONNECTION_LIMITS.head_bytes_max
    gate.is_open.set()
    for _ in range(40):
        assert (await peer.answer()).body == b"/"
    await writing


async def test_pipelined_requests_are_all_answered_in_their_order(gate: Gate, peer: Peer) -> None:
    gate.is_open.set()
    order = a_request(ORDER, b"Content-Length: 2", body=b"{}")
    requests = [
        order if number % 7 == 3 else a_request(b"GET /%d HTTP/1.1" % number)
        for number in range(REQUESTS)
    ]
    writing = asyncio.create_task(peer.send(b"".join(requests)))
    for number in range(REQUESTS):
        wanted = b"/order" if number % 7 == 3 else b"/%d" % number
        assert (await peer.answer()).body.endswith(wanted)
    await writing


async def test_bodies_among_pipelined_requests_arrive_whole(gate: Gate, peer: Peer) -> None:
    """Those that are larger than what is parsed at once, too."""
    body = b"x" * (5 * CONNECTION_LIMITS.piece_bytes + 1)
    post = a_request(b"POST /body HTTP/1.1", b"Content-Length: %d" % len(body), body=body)
    writing = asyncio.create_task(peer.send((SHORTEST * 100 + post) * 10))
    await gate.began.wait()
    gate.is_open.set()
    for _ in range(10):
        for _ in range(100):
            assert (await peer.answer()).body == b"/"
        assert (await peer.answer()).body == b"/body"
    await writing


async def test_what_was_not_parsed_is_dropped_with_its_connection(gate: Gate, peer: Peer) -> None:
    writing = asyncio.create_task(peer.send(SHORTEST * REQUESTS))
    await gate.began.wait()
    peer.writer.transport.abort()
    await writing
    gate.is_open.set()
    async with asyncio.timeout(60):
        while parsed() > 0:  # noqa: ASYNC110 - the end of a connection is no event here
            await asyncio.sleep(0.01)


class Ended:
    """A transport whose end is not reported yet: what is written to it fails, as in uvloop."""

    def __init__(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def write(self, _: bytes) -> None:
        raise RuntimeError("unable to perform operation; the handler is closed")

    def close(self) -> None:
        self.closed = True


def test_attack_m3_a_client_that_leaves_before_its_pipelined_answers_is_no_fault() -> None:
    """The rest of an answer was written to a connection that had ended: a trace in the log for each."""
    transport = WhileOpen(cast("asyncio.Transport", Ended()))
    transport.write(b"the rest of an answer")
    transport.close()


async def test_attack_m3_an_answer_that_is_given_up_is_no_line_of_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A finding: the application ended before the end of its connection was reported: a line for each such answer."""

    async def give_up(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        headers = [(b"content-length", b"5")]
        scope[PLACE].holder.close_now()
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    with caplog.at_level(logging.INFO):
        async with serving(give_up) as place, connected(place) as peer:
            await peer.send(SHORTEST)
            with contextlib.suppress(ConnectionResetError):
                assert not await peer.reader.read()
    assert not [each.getMessage() for each in caplog.records if "ASGI" in each.getMessage()]


async def test_a_body_that_is_expected_is_asked_for_and_read() -> None:
    """A finding: the application could not read it, which was an internal error."""

    async def read_body(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        body = (await receive())["body"]
        headers = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
    async with serving(read_body) as place, connected(place) as peer:
        await peer.send(head)
        assert (await peer.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        await peer.send(b"hello")
        assert (await peer.answer()).body == b"hello"


async def test_attack_h1_one_pipelined_request_of_an_address_is_parsed_in_a_turn_of_the_loop(
    gate: Gate, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kibibyte has 56 of the shortest; they began together, on each of a hundred connections."""
    gate.is_open.set()
    turns = iter(itertools.count())
    now, parsed_by_turn = next(turns), Counter[int]()
    count_request = Place.count_request

    def counted(place: Place) -> None:
        parsed_by_turn[now] += 1
        count_request(place)

    async def pass_turns() -> None:
        nonlocal now
        while True:
            now = next(turns)
            await asyncio.sleep(0)

    monkeypatch.setattr(Place, "count_request", counted)
    passing = asyncio.create_task(pass_turns())
    await peer.send(SHORTEST * PIPELINED)
    for _ in range(PIPELINED):
        assert (await peer.answer()).body == b"/"
    passing.cancel()
    assert parsed_by_turn.total() == PIPELINED
    assert max(parsed_by_turn.values()) == 1


async def test_attack_h1_empty_lines_are_parsed_together(
    gate: Gate, peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parser skips them without a word: pieces of four bytes took a third of a second, and counted nowhere."""
    gate.is_open.set()
    sizes: list[int] = []
    parse = FrameworkConnection._parse

    def counted(connection: FrameworkConnection, data: bytes) -> bool:
        sizes.append(len(data))
        return parse(connection, data)

    monkeypatch.setattr(FrameworkConnection, "_parse", counted)
    empty = b"\r\n" * 100_000
    await peer.send(empty + SHORTEST)
    assert (await peer.answer()).body == b"/"
    assert sum(sizes) == len(empty) + len(SHORTEST)
    assert len(sizes) <= 2 * len(empty) // CONNECTION_LIMITS.piece_bytes
