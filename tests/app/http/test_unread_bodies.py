"""Bodies that arrive before their application reads them: their memory, and the time that their chunks take."""

import asyncio
import contextlib
import gc
from collections import Counter
from collections.abc import AsyncIterator

import pytest
from tests.app.http.test_malformed_requests import (
    GET,
    POST,
    Peer,
    a_request,
    a_server,
    connected,
)
from tests.app.http.test_slow_bodies import WITHIN_S, budget_used_up, held
from tests.rigs.applications import serving
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces
from foretell.app.http.early_data import EarlyData
from foretell.app.http.framework_connection import FrameworkConnection
from foretell.app.http.request_deadline import RequestDeadline
from foretell.app.http.unread_body import UnreadBody
from foretell.edge.client_addresses import ClientAddresses
from foretell.edge.codec import BODY_BUDGET, BODY_BYTES_BY_CLIENT_MAX, PLACE
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

CLIENT = "127.0.0.1"
FORWARDED = "10.1.1.1"
CHUNKED = b"Transfer-Encoding: chunked"
LIMITS = CONNECTION_LIMITS
FREE = LIMITS.unread_free_bytes
TINY = b"1\r\nx\r\n"
PIECE_CHUNKS = LIMITS.piece_bytes // len(TINY) + 1
BATCH = LIMITS.turn_chunks_max + PIECE_CHUNKS
RECEIVED_BYTES_MAX = 256 * 1024
"""The most that the event loop reads from a socket at once."""
LARGE = 2**20


async def answer_size(size: int, send: Send) -> None:
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Reader:
    """An application that reads nothing until the test says so, and then answers with the size of the body."""

    def __init__(self) -> None:
        self.begun = 0
        self.may_read = asyncio.Event()
        self.held_when_read: list[int] = []
        self.answers_after_s = 0.0
        self.early: list[EarlyData] = []
        """Of all connections, if the test wants its largest size."""
        self.early_bytes_max = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        self.begun += 1
        await self.may_read.wait()
        size, has_more = 0, True
        while has_more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            self.held_when_read.append(BODY_BUDGET.bytes_held)
            size += len(message["body"])
            has_more = message["more_body"]
            self.early_bytes_max = max(self.early_bytes_max, sum(map(len, self.early)))
        await asyncio.sleep(self.answers_after_s)
        await answer_size(size, send)


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
async def host(reader: Reader) -> AsyncIterator[str]:
    """A server that waits as long as a test for refused clients to read their answers."""
    async with a_server(LIMITS._replace(linger_s=WITHIN_S), reader) as host:
        yield host


@pytest.fixture
async def faults() -> AsyncIterator[list[object]]:
    """Return what the event loop reports of callbacks that failed."""
    loop, faults = asyncio.get_running_loop(), list[object]()
    before = loop.get_exception_handler()
    loop.set_exception_handler(lambda _, context: faults.append(context))
    yield faults
    loop.set_exception_handler(before)


def chunks(size: int, of: int = 4096) -> bytes:
    """Return a body of this size in chunks, with its end."""
    return (b"%x\r\n%s\r\n" % (of, bytes(of))) * (size // of) + b"0\r\n\r\n"


def all_early() -> list[EarlyData]:
    """Return what is kept unparsed by each connection in this process."""
    return [each for each in gc.get_objects() if type(each) is EarlyData]


def open_connections() -> list[FrameworkConnection]:
    """Return the connections of this process that have a place."""
    every = [each for each in gc.get_objects() if type(each) is FrameworkConnection]
    return [each for each in every if each.place is not None and each.place.is_taken]


def early_bytes() -> int:
    """Return what is kept unparsed, in this process."""
    return sum(map(len, all_early()))


def body_bytes() -> list[int]:
    """Return what is parsed and not read of each request, in this process."""
    return [len(each.body) for each in gc.get_objects() if type(each) is RequestResponseCycle]


async def settled() -> None:
    """Return when the server, which has the same event loop, has read what it will."""
    before = -1
    async with asyncio.timeout(WITHIN_S):
        while before != (now := early_bytes() + sum(body_bytes())):
            before = now
            for _ in range(100):
                await asyncio.sleep(0)
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def sending(host: str, *requests: bytes) -> AsyncIterator[list[Peer]]:
    """Send each request on a connection of its own."""
    async with contextlib.AsyncExitStack() as stack:
        peers = [await stack.enter_async_context(connected(host)) for _ in requests]
        for peer, request in zip(peers, requests, strict=True):
            peer.writer.write(request)
        yield peers


class Turns:
    """Counts the chunks that are read in each turn of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chunks: Counter[int] = Counter()
        self._now = 0
        original = UnreadBody.count_chunk

        def counted(body: UnreadBody) -> None:
            self.chunks[self._now] += 1
            original(body)

        monkeypatch.setattr(UnreadBody, "count_chunk", counted)

    async def run(self) -> None:
        while True:
            self._now += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("connections", [1, 8])
async def test_attack_h1_tiny_chunks_of_an_address_are_read_a_few_in_a_turn_of_the_loop(
    host: str, reader: Reader, monkeypatch: pytest.MonkeyPatch, connections: int
) -> None:
    """All that came at once were read in one turn, by each connection: a quarter of a mebibyte has 43,000."""
    turns = Turns(monkeypatch)
    reader.may_read.set()
    request = a_request(POST, CHUNKED, body=TINY * LIMITS.chunks_free + b"0\r\n\r\n")
    counting = asyncio.create_task(turns.run())
    async with sending(host, *[request.replace(TINY + b"0", b"0")] * connections) as peers:
        answers = [await peer.answer() for peer in peers]
    counting.cancel()
    assert {int(answer.body) for answer in answers} == {LIMITS.chunks_free - 1}
    assert turns.chunks.total() == connections * LIMITS.chunks_free
    assert max(turns.chunks.values()) <= 2 * BATCH
    assert BODY_BUDGET.bytes_held == 0


async def test_attack_h1_a_body_of_very_many_small_chunks_is_refused(
    host: str, reader: Reader
) -> None:
    reader.may_read.set()
    request = a_request(POST, CHUNKED, body=TINY * (2 * LIMITS.chunks_free))
    async with sending(host, request) as (peer,):
        answer = await peer.answer()
        assert await peer.rest() == b""
    assert (answer.status, answer.json()["error"]["code"]) == (400, "too_many_chunks")


async def test_attack_h1_headers_behind_the_last_chunk_are_bounded_as_a_head(host: str) -> None:
    """They counted nowhere, and the time to read an endless one grew with its square."""
    endless = b"5\r\nhello\r\n0\r\nX: " + b"a" * (2 * LIMITS.head_bytes_max)
    async with sending(host, a_request(POST, CHUNKED, body=endless)) as (peer,):
        answer = await peer.answer()
        assert await peer.rest() == b""
    assert (answer.status, answer.json()["error"]["code"]) == (431, "headers_too_large")


async def test_a_body_may_have_headers_behind_its_last_chunk(host: str, reader: Reader) -> None:
    reader.may_read.set()
    body = chunks(200 * 1024, 1000).removesuffix(b"\r\n") + b"X: a\r\n\r\n"
    async with sending(host, a_request(POST, CHUNKED, body=body)) as (peer,):
        assert int((await peer.answer()).body) == 200 * 1024 // 1000 * 1000


@pytest.mark.parametrize("of", [LIMITS.chunk_bytes_min, 1000, 16 * 1024])
async def test_a_large_body_in_chunks_of_ordinary_clients_is_read_whole(
    host: str, reader: Reader, of: int
) -> None:
    reader.may_read.set()
    body = chunks(LARGE, of)
    async with sending(host, a_request(POST, CHUNKED, body=body)) as (peer,):
        answer = await peer.answer()
    assert int(answer.body) == LARGE // of * of


@pytest.mark.parametrize(
    "request_of",
    [
        lambda size: a_request(POST, CHUNKED, body=chunks(size)),
        lambda size: a_request(POST, b"Content-Length: %d" % size, body=bytes(size)),
    ],
    ids=["chunked", "with a length"],
)
async def test_attack_h5_bodies_that_no_application_reads_are_bounded_for_an_address(
    host: str, reader: Reader, request_of: object
) -> None:
    """They counted when they were read: a thousand connections of an address had hundreds of mebibytes."""
    connections = 24
    assert callable(request_of)
    requests = [request_of(LARGE)] * connections
    left = 2 * LARGE
    with budget_used_up(CLIENT, size=BODY_BYTES_BY_CLIENT_MAX - left):
        used = BODY_BUDGET.bytes_held
        async with sending(host, *requests) as peers:
            await settled()
            counted = BODY_BUDGET.bytes_held - used
            kept = early_bytes() + sum(body_bytes())
            assert kept <= counted + connections * FREE
            assert counted <= left
            assert max(body_bytes()) <= LIMITS.unread_bytes_max + LIMITS.piece_bytes
            reader.may_read.set()
            answers = [await peer.answer() for peer in peers]
        codes = Counter(
            answer.json()["error"]["code"] if answer.status == 503 else "read" for answer in answers
        )
        assert codes["bodies_busy"] + codes["read"] == connections
        assert codes["bodies_busy"] >= connections - left // LIMITS.unread_bytes_max
        assert codes["read"] >= left // (LIMITS.unread_bytes_max + 2 * RECEIVED_BYTES_MAX)
        await held(used)
    assert kept >= LARGE


async def test_attack_h5_nothing_is_read_from_the_network_while_what_arrived_waits(
    host: str, reader: Reader
) -> None:
    """Each request that asked for its body let as much arrive in addition to what waited."""
    reader.answers_after_s = 0.001
    post = a_request(POST, b"Content-Length: 10000", body=bytes(10_000))
    async with sending(host, post * 200) as (peer,):
        await settled()
        reader.early = all_early()
        assert early_bytes() <= RECEIVED_BYTES_MAX
        reader.may_read.set()
        for _ in range(200):
            assert int((await peer.answer()).body) == 10_000
    assert 0 < reader.early_bytes_max <= RECEIVED_BYTES_MAX
    assert BODY_BUDGET.bytes_held == 0


async def close_and_answer(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer once the connection is being closed, as for a client that has just left."""
    await receive()
    scope[PLACE].holder.close_now()
    await answer_size(0, send)


async def test_bodies_behind_an_answer_to_a_client_that_has_just_left_are_given_back() -> None:
    """A finding: that of the next request counted for ever, as if its application were to read it."""
    post = a_request(POST, b"Content-Length: 9000", body=bytes(9_000))
    async with a_server(app=close_and_answer) as host, sending(host, post * 3) as (peer,):
        assert await peer.rest() == b""
        await held(0)


async def test_a_body_counts_until_it_is_received_and_not_twice(host: str, reader: Reader) -> None:
    size = LIMITS.unread_bytes_max
    async with sending(host, a_request(POST, b"Content-Length: %d" % size, body=bytes(size))) as (
        peer,
    ):
        await held(size - FREE)
        reader.may_read.set()
        assert int((await peer.answer()).body) == size
        assert reader.held_when_read == [0]
        assert sum(body_bytes()) == 0


async def answer_at_once(scope: Scope, receive: Receive, send: Send) -> None:
    del scope, receive
    await answer_size(0, send)


async def test_attack_h2_an_idle_connection_keeps_nothing_of_its_last_request() -> None:
    """It kept the request with its scope and headers, on each of thousands of connections."""
    get = a_request(GET, b"X-Header: " + bytes(b"a" * 1000))
    async with a_server(app=answer_at_once) as host, connected(host) as peer:
        for _ in range(3):
            await peer.send(get)
            assert (await peer.answer()).body == b"0"
            await settled()
            (connection,) = open_connections()
            assert vars(connection) == {}, "attributes without slots take kilobytes"
            names = ("cycle", "scope", "headers", "url", "timeout_keep_alive_task")
            assert [getattr(connection, name) for name in names] == [None, None, [], b"", None]
            assert connection.app is connection._served, "its body takes as much as a place"


async def test_the_first_bytes_of_a_body_are_read_whatever_others_hold(
    host: str, reader: Reader
) -> None:
    reader.may_read.set()
    post = a_request(POST, b"Content-Length: %d" % FREE, body=bytes(FREE))
    with budget_used_up():
        async with sending(host, post) as (peer,):
            assert int((await peer.answer()).body) == FREE


async def test_attack_h5_bodies_of_pipelined_requests_count_whole(
    host: str, reader: Reader
) -> None:
    """Or each of some dozens on a connection would have its first bytes free."""
    post = a_request(POST, b"Content-Length: 1000", body=bytes(1000))
    async with sending(host, post * 11) as (peer,):
        await held(10 * 1000)
        reader.may_read.set()
        for _ in range(11):
            assert int((await peer.answer()).body) == 1000
        assert BODY_BUDGET.bytes_held == 0


async def test_a_body_counts_no_longer_than_its_connection(host: str, reader: Reader) -> None:
    post = a_request(POST, b"Content-Length: %d" % LARGE)
    async with sending(host, post + bytes(2 * FREE)) as (peer,):
        await held(FREE)
        peer.writer.transport.abort()
        await held(0)
        assert body_bytes() == [0]
    reader.may_read.set()


async def test_a_body_that_is_not_read_on_is_dropped_when_its_application_asks(
    host: str, reader: Reader
) -> None:
    """Until then the end of the connection is not noticed, and the body counts."""
    post = a_request(POST, b"Content-Length: %d" % LARGE)
    async with sending(host, post + bytes(LARGE // 2)) as (peer,):
        await settled()
        assert early_bytes() > 0
        peer.writer.transport.abort()
        await settled()
        assert BODY_BUDGET.bytes_held > LIMITS.unread_bytes_max
        reader.may_read.set()
        await held(0)
        assert sum(body_bytes()) == early_bytes() == 0


async def test_a_slow_request_whose_client_has_left_unnoticed_is_no_fault(
    reader: Reader, faults: list[object]
) -> None:
    """Its refusal could not end a connection that had ended, which was an internal error."""
    post = a_request(POST, b"Content-Length: %d" % LARGE, body=bytes(LARGE // 2))
    limits = ConnectionLimits(request_deadline_s=0.5)
    async with a_server(limits, reader) as host, sending(host, post) as (peer,):
        await settled()
        peer.writer.transport.abort()
        reader.may_read.set()
        await held(0)
    assert not faults


async def clients_waited_for(count: int) -> None:
    """Wait until the deadlines of so many clients run, of the connections that are open."""
    async with asyncio.timeout(WITHIN_S):
        while True:
            deadlines = [each._deadline for each in open_connections()]
            assert all(type(each) is RequestDeadline for each in deadlines)
            if sum(each.is_running for each in deadlines) == count:
                return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("size", [LIMITS.unread_bytes_max + 1, LARGE // 2])
async def test_a_body_that_waits_for_its_application_is_not_slow(
    host: str, reader: Reader, size: int
) -> None:
    """A finding: one that had arrived whole was refused as if its client had not sent it in time."""
    post = a_request(POST, b"Content-Length: %d" % LARGE)
    async with sending(host, post + bytes(size)) as (peer,):
        await settled()
        await clients_waited_for(0)
        reader.may_read.set()
        await clients_waited_for(1)
        await peer.send(bytes(LARGE - size))
        assert int((await peer.answer()).body) == LARGE
        await clients_waited_for(0)


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param(a_request(POST, b"Content-Length: 5"), id="a head"),
        pytest.param(a_request(GET) * 2 + GET[:5], id="two requests and a part"),
    ],
)
async def test_a_request_behind_one_that_is_answered_is_not_slow(
    host: str, reader: Reader, behind: bytes
) -> None:
    """A finding: what its client sent was not read meanwhile, and it was refused for its lack."""
    async with sending(host, a_request(GET) + behind) as (peer,):
        await settled()
        await clients_waited_for(0)
        reader.may_read.set()
        assert (await peer.answer()).body == b"0"
        await clients_waited_for(1)


async def test_a_client_that_waits_to_be_asked_for_its_body_is_not_slow(
    host: str, reader: Reader
) -> None:
    """A finding: one whose request waited for a rate limit was refused, and never asked."""
    post = a_request(POST, b"Content-Length: 5", b"Expect: 100-continue")
    async with sending(host, post) as (peer,):
        await settled()
        await clients_waited_for(0)
        reader.may_read.set()
        await clients_waited_for(1)
        assert (await peer.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
        await peer.send(b"hello")
        assert int((await peer.answer()).body) == 5


async def test_headers_behind_a_body_are_not_those_of_the_request() -> None:
    """A finding: an address that a client named there was taken for one that a proxy had written."""
    seen: list[tuple[bytes, bytes]] = []

    async def note(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive())["more_body"]:
            pass
        seen.extend(scope["headers"])
        await answer_size(0, send)

    body = b"5\r\nhello\r\n0\r\nX-Forwarded-For: 10.9.9.9\r\n\r\n"
    async with (
        a_server(app=note) as host,
        sending(host, a_request(POST, CHUNKED, body=body)) as (peer,),
    ):
        assert (await peer.answer()).body == b"0"
    assert seen
    assert b"x-forwarded-for" not in dict(seen)


async def test_attack_h2_a_client_whose_body_is_not_read_is_waited_for_once_it_is_answered() -> (
    None
):
    """Else a request that is never whole would hold its place."""
    may_answer = asyncio.Event()

    async def unread(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await may_answer.wait()
        await answer_size(0, send)

    post = a_request(POST, b"Content-Length: %d" % LARGE)
    async with a_server(app=unread) as host:
        for size in (LIMITS.unread_bytes_max + 1, LARGE // 2):
            may_answer.clear()
            async with sending(host, post + bytes(size)) as (peer,):
                await settled()
                await clients_waited_for(0)
                may_answer.set()
                assert (await peer.answer()).body == b"0"
                await clients_waited_for(1)


async def test_a_deadline_stands_still_with_the_time_that_is_left() -> None:
    """Even when so little is left that the event loop has no timer for it; the next request has the whole time."""
    loop, expired = asyncio.get_running_loop(), asyncio.Event()
    deadline = RequestDeadline(loop, 0.1)
    deadline.run(expired.set)
    for _ in range(20):
        await asyncio.sleep(0.01)
        deadline.pause()
        assert not deadline.is_running
        deadline.run(expired.set)
    began_s = loop.time()
    async with asyncio.timeout(WITHIN_S):
        await expired.wait()
    assert loop.time() - began_s < 0.1 or loop.time() - began_s > 1.0, "nothing was left"
    deadline.end()
    expired.clear()
    deadline.run(expired.set)
    await asyncio.sleep(0)
    assert not expired.is_set()
    deadline.end()
    assert not deadline.is_running


async def test_a_body_is_dropped_with_an_answer_that_did_not_wait_for_it() -> None:
    post = a_request(POST, b"Content-Length: %d" % LARGE, body=bytes(LARGE))
    async with serving(answer_at_once) as host, sending(host, post) as (peer,):
        for _ in range(3):
            assert (await peer.answer()).body == b"0"
            await settled()
            assert BODY_BUDGET.bytes_held == sum(body_bytes()) == early_bytes() == 0
            await peer.send(post)


async def test_attack_h5_a_large_body_that_a_get_announces_is_refused(
    host: str, reader: Reader
) -> None:
    length = b"Content-Length: %d" % (LIMITS.unasked_body_bytes_max + 1)
    async with sending(host, a_request(GET, length)) as (peer,):
        answer = await peer.answer()
        assert await peer.rest() == b""
    assert (answer.status, answer.json()["error"]["code"]) == (413, "payload_too_large")
    assert reader.begun == 0


async def test_attack_h5_a_large_body_of_a_get_in_chunks_is_refused(
    host: str, reader: Reader
) -> None:
    """The body of a GET waited in memory, and was never counted."""
    requests = [a_request(GET, CHUNKED, body=chunks(LARGE))] * 8
    async with sending(host, *requests) as peers:
        answers = [await peer.answer() for peer in peers]
        await settled()
        assert sum(body_bytes()) == early_bytes() == BODY_BUDGET.bytes_held == 0
    assert {answer.status for answer in answers} == {413}
    reader.may_read.set()


async def test_a_small_body_of_a_get_is_no_fault(host: str, reader: Reader) -> None:
    reader.may_read.set()
    get = a_request(GET, b"Content-Length: 2", body=b"{}")
    async with sending(host, get * 2) as (peer,):
        assert [(await peer.answer()).body for _ in range(2)] == [b"2", b"2"]


async def test_an_unread_body_counts_for_the_client_behind_a_proxy(reader: Reader) -> None:
    places = ConnectionPlaces(addresses=lambda: ClientAddresses([CLIENT]))
    size = LIMITS.unread_bytes_max
    length, body = b"Content-Length: %d" % size, bytes(size)
    others = a_request(POST, length, b"X-Forwarded-For: 10.1.1.2", body=body)
    own = a_request(POST, length, b"X-Forwarded-For: " + FORWARDED.encode(), body=body)
    reader.may_read.set()
    with budget_used_up(CLIENT, FORWARDED):
        async with serving(reader, places=places) as host, sending(host, own, others) as peers:
            answers = [await peer.answer() for peer in peers]
    assert [answer.status for answer in answers] == [503, 200]


async def test_a_body_after_a_part_of_the_answer_that_has_too_many_chunks_closes() -> None:
    """The client would take a refusal for the rest of the answer."""

    async def in_parts(scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"part", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    limits = ConnectionLimits(chunks_free=10)
    async with serving(in_parts, limits=limits) as host, connected(host) as peer:
        await peer.send(a_request(POST, CHUNKED))
        await peer.reader.readuntil(b"part")
        await peer.send(TINY * 50)
        assert await peer.rest() == b"\r\n"
