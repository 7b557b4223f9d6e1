"""Requests that reach no API: each is answered in the form of the API's own refusals."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import pytest
from tests.rigs.applications import serving

from foretell.app.clock_and_ids import numbered_ids
from foretell.app.gateway import Gateway
from foretell.app.http.connection_limits import CONNECTION_LIMITS, ConnectionLimits
from foretell.app.http.connection_refusals import ConnectionRefusals
from foretell.app.http.fast_routes import served_under
from foretell.creation.refusals import worker_body
from foretell.data.refusals import data_body
from foretell.discovery.refusals import discovery_body
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.telemetry import METRICS, Receive, Scope, Send, Telemetry
from foretell.relayer.refusals import relayer_body
from foretell.trading.refusals import trading_body

pytestmark = pytest.mark.anyio

ANSWER_WITHIN_S = 60.0
DEADLINE_S = 0.05
HEAD_BYTES_MAX = CONNECTION_LIMITS.head_bytes_max
BODY_BY_PREFIX = {
    "/clob": trading_body,
    "/create-market": worker_body,
    "/relayer": relayer_body,
    "/data": data_body,
    "/discovery": discovery_body,
}


class Answer(NamedTuple):
    """A parsed answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Peer:
    """A client that sends any bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        with contextlib.suppress(ConnectionError):
            await self.writer.drain()

    async def answer(self) -> Answer:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            status, *lines = head.strip().split("\r\n")
            headers = dict(line.split(": ", 1) for line in lines)
            body = await self.reader.readexactly(int(headers["content-length"]))
        return Answer(int(status.split()[1]), headers, body)

    async def rest(self) -> bytes:
        """Return what the server sends until it closes."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            with contextlib.suppress(ConnectionError):
                return await self.reader.read()
        return b""


async def slow_app(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the method and the path, after the rest of the body and a moment."""
    assert scope["type"] == "http"
    while (await receive()).get("more_body", False):
        pass
    await asyncio.sleep(0.02)
    body = f"{scope['method']} {scope['path']}".encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def refusing_early(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse before the body has arrived, as one that is too large."""
    del scope, receive
    headers = [(b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


def reply_fast(request: FastRequest, reply: SendReply) -> None:
    reply(FastResponse(200, b'"' + request.path.encode() + b'"'))


FAST = {("POST", "/order"): FastRoute(lambda query: not query, reply_fast)}


@contextlib.asynccontextmanager
async def a_server(
    limits: ConnectionLimits = CONNECTION_LIMITS, app: Any = slow_app
) -> AsyncIterator[str]:
    fast = served_under("/clob", FAST, Telemetry(slow_app, "trading", numbered_ids()))
    gateway = Gateway(dict.fromkeys(BODY_BY_PREFIX, app), "http://api.example")
    refusals = ConnectionRefusals(numbered_ids(), BODY_BY_PREFIX)
    async with serving(gateway, fast, limits, refusals) as place:
        yield place


@contextlib.asynccontextmanager
async def connected(place: str) -> AsyncIterator[Peer]:
    host, port = place.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    yield Peer(reader, writer)
    writer.close()


@contextlib.asynccontextmanager
async def a_peer(
    limits: ConnectionLimits = CONNECTION_LIMITS, app: Any = slow_app
) -> AsyncIterator[Peer]:
    async with a_server(limits, app) as place, connected(place) as peer:
        yield peer


@pytest.fixture(scope="module")
async def place() -> AsyncIterator[str]:
    async with a_server() as place:
        yield place


@pytest.fixture
async def peer(place: str) -> AsyncIterator[Peer]:
    async with connected(place) as peer:
        yield peer


def a_request(line: bytes, *headers: bytes, body: bytes = b"") -> bytes:
    return b"\r\n".join([line, b"Host: x", *headers, b"", body])


GET = b"GET /create-market/ HTTP/1.1"
POST = b"POST /create-market/prepare HTTP/1.1"
ORDER = b"POST /clob/order HTTP/1.1"
UPGRADE = (b"Connection: Upgrade", b"Upgrade: websocket")
STREAM_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="

TABLE = {
    "an unknown method": (a_request(b"FOO /create-market/ HTTP/1.1"), 501, "unknown_method"),
    "a method in lower case": (a_request(b"get /create-market/ HTTP/1.1"), 501, "unknown_method"),
    "no HTTP": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, "malformed_request"),
    "no version": (b"GET /create-market/\r\n\r\n", 505, "unsupported_version"),
    "a later version": (a_request(b"GET / HTTP/2.0"), 505, "unsupported_version"),
    "a version that does not exist": (a_request(b"GET / HTTP/1.7"), 505, "unsupported_version"),
    "another protocol": (a_request(b"GET / FTP/1.1"), 400, "malformed_request"),
    "the preface of HTTP/2": (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        400,
        "malformed_request",
    ),
    "a path that is no path": (a_request(b"GET create-market HTTP/1.1"), 400, "malformed_request"),
    "a raw byte in the path": (a_request(b"GET /\xc3\xa9 HTTP/1.1"), 400, "malformed_request"),
    "a NUL in the path": (a_request(b"GET /\x00 HTTP/1.1"), 400, "malformed_request"),
    "a proxy's request": (a_request(b"CONNECT x:1 HTTP/1.1"), 400, "malformed_request"),
    "a length in letters": (a_request(POST, b"Content-Length: x"), 400, "malformed_request"),
    "a negative length": (a_request(POST, b"Content-Length: -1"), 400, "malformed_request"),
    "a signed length": (a_request(POST, b"Content-Length: +1"), 400, "malformed_request"),
    "a huge length": (a_request(POST, b"Content-Length: " + b"9" * 30), 400, "malformed_request"),
    "two lengths": (
        a_request(POST, b"Content-Length: 1", b"Content-Length: 2"),
        400,
        "malformed_request",
    ),
    "a length and chunks": (
        a_request(POST, b"Content-Length: 1", b"Transfer-Encoding: chunked"),
        400,
        "malformed_request",
    ),
    "another encoding": (a_request(POST, b"Transfer-Encoding: gzip"), 400, "malformed_request"),
    "an encoding besides chunks": (
        a_request(POST, b"Transfer-Encoding: gzip, chunked"),
        400,
        "malformed_request",
    ),
    "a chunk without a size": (
        a_request(POST, b"Transfer-Encoding: chunked", body=b"zz\r\n"),
        400,
        "malformed_request",
    ),
    "a name with a space": (a_request(GET, b"A b: c"), 400, "malformed_request"),
    "a line without a colon": (a_request(GET, b"nothing"), 400, "malformed_request"),
    "a folded line": (a_request(GET, b"A: b", b" c"), 400, "malformed_request"),
    "a NUL in a value": (a_request(GET, b"A: \x00"), 400, "malformed_request"),
    "lines without CR": (b"GET / HTTP/1.1\nHost: x\n\n", 400, "malformed_request"),
    "a long path": (
        a_request(b"GET /create-market/" + b"a" * HEAD_BYTES_MAX + b" HTTP/1.1"),
        414,
        "url_too_long",
    ),
    "a long query": (
        a_request(b"GET /create-market/?" + b"a" * 2 * HEAD_BYTES_MAX + b" HTTP/1.1"),
        414,
        "url_too_long",
    ),
    "a long header": (a_request(GET, b"A: " + b"b" * HEAD_BYTES_MAX), 431, "headers_too_large"),
    "many long headers": (
        a_request(GET, *[b"A%d: " % at + b"b" * 4096 for at in range(20)]),
        431,
        "headers_too_large",
    ),
    "a flood of headers": (
        a_request(GET, *[b"A%d: b" % at for at in range(CONNECTION_LIMITS.headers_max)]),
        431,
        "headers_too_large",
    ),
    "no host": (GET + b"\r\n\r\n", 400, "malformed_request"),
    "two hosts": (a_request(GET, b"Host: x"), 400, "malformed_request"),
    "two hosts of an older version": (
        a_request(b"GET / HTTP/1.0", b"Host: y"),
        400,
        "malformed_request",
    ),
    "a stream without a key": (
        a_request(GET, *UPGRADE, b"Sec-WebSocket-Version: 13"),
        400,
        "malformed_request",
    ),
    "a stream of another version": (
        a_request(GET, *UPGRADE, b"Sec-WebSocket-Version: 8", b"Sec-WebSocket-Key: x"),
        400,
        "malformed_request",
    ),
    "a stream with a short key": (
        a_request(GET, *UPGRADE, b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: x"),
        400,
        "malformed_request",
    ),
    "a stream with two keys": (
        a_request(GET, *UPGRADE, b"Sec-WebSocket-Version: 13", STREAM_KEY, STREAM_KEY),
        400,
        "malformed_request",
    ),
    "a stream of an odd protocol": (
        a_request(
            GET,
            *UPGRADE,
            b"Sec-WebSocket-Version: 13",
            STREAM_KEY,
            b"Sec-WebSocket-Protocol: ,;",
        ),
        400,
        "malformed_request",
    ),
    "a stream with a line that its protocol does not read": (
        a_request(GET, *UPGRADE, b"Sec-WebSocket-Version: 13", STREAM_KEY, b"A: " + b"b" * 8_192),
        431,
        "headers_too_large",
    ),
    "a stream with a target that its protocol does not read": (
        a_request(
            b"GET /create-market/" + b"a" * 8_192 + b" HTTP/1.1",
            *UPGRADE,
            b"Sec-WebSocket-Version: 13",
            STREAM_KEY,
        ),
        431,
        "headers_too_large",
    ),
    "a stream of an older version": (
        a_request(
            b"GET /create-market/ HTTP/1.0", *UPGRADE, b"Sec-WebSocket-Version: 13", STREAM_KEY
        ),
        400,
        "malformed_request",
    ),
    "a stream by POST": (
        a_request(POST, *UPGRADE, b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Key: x"),
        400,
        "malformed_request",
    ),
}


def check_form(answer: Answer, code: str) -> None:
    """Check that an answer has the form of the worker, and all headers that its answers have."""
    assert list(answer.json()) == ["error"]
    assert list(answer.json()["error"]) == ["code", "message", "details"]
    assert answer.json()["error"]["code"] == code
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["connection"] == "close"
    assert answer.headers["x-request-id"]
    assert answer.headers["date"]


@pytest.mark.deviation(17)
@pytest.mark.case("G-02")
@pytest.mark.parametrize(("sent", "status", "code"), TABLE.values(), ids=TABLE)
async def test_attack_l6_a_malformed_request_is_refused_in_json(
    peer: Peer, sent: bytes, status: int, code: str
) -> None:
    await peer.send(sent)
    answer = await peer.answer()
    assert (answer.status, answer.json()["error"]["code"]) == (status, code)
    check_form(answer, code)
    assert await peer.rest() == b""


@pytest.mark.parametrize(("sent", "status", "code"), TABLE.values(), ids=TABLE)
async def test_it_is_refused_alike_after_a_fast_request_and_in_pieces(
    peer: Peer, sent: bytes, status: int, code: str
) -> None:
    await peer.send(a_request(ORDER, b"Content-Length: 2", body=b"{}"))
    assert (await peer.answer()).json() == "/order"
    for piece in (sent[:1], sent[1:9], sent[9:]):
        await peer.send(piece)
        await asyncio.sleep(0.005)
    answer = await peer.answer()
    assert answer.status == status if status != 501 else answer.status in {400, 501}
    assert answer.headers["content-type"] == "application/json"
    assert code
    assert await peer.rest() == b""


@pytest.mark.parametrize(("sent", "status"), [(sent, status) for sent, status, _ in TABLE.values()])
async def test_it_is_refused_after_the_answers_to_requests_before_it(
    peer: Peer, sent: bytes, status: int
) -> None:
    """Or the client would take the refusal for the answer to a request that was carried out."""
    first = a_request(b"POST /create-market/first HTTP/1.1", b"Content-Length: 2", body=b"{}")
    second = a_request(b"GET /create-market/second HTTP/1.1")
    await peer.send(first + second + sent)
    assert (await peer.answer()).body == b"POST /first"
    assert (await peer.answer()).body == b"GET /second"
    answer = await peer.answer()
    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    assert await peer.rest() == b""


@pytest.mark.parametrize(
    "sent",
    [
        ORDER + b"\r\nContent-Length: 2\r\n\r\n{}",
        a_request(ORDER, b"Host: y", b"Content-Length: 2", body=b"{}"),
    ],
    ids=["none", "two"],
)
async def test_attack_l6_an_order_without_one_host_is_refused(peer: Peer, sent: bytes) -> None:
    await peer.send(sent)
    answer = await peer.answer()
    assert (answer.status, answer.json()["code"]) == (400, "malformed_request")
    assert await peer.rest() == b""


async def test_an_order_with_garbage_behind_it_gets_its_own_answer(peer: Peer) -> None:
    await peer.send(a_request(ORDER, b"Content-Length: 2", body=b"{}") + b"garbage \x00\r\n\r\n")
    order, garbage = await peer.answer(), await peer.answer()
    assert (order.status, garbage.status) == (200, 501), "as if it came alone"
    assert await peer.rest() == b""


@pytest.mark.parametrize("prefix", BODY_BY_PREFIX)
@pytest.mark.parametrize(
    "sent",
    [
        b"GET %s/activity?user=\xc3\x9f HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET %s/\xc3\x9f HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET %s?\x00 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"FETCH %s/x HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET %s/x HTTP/1.7\r\n\r\n",
        b"GET %s/x?y HTTP/1.1\r\nHost: x\r\nA: \x00\r\n\r\n",
        b"GET %s?y HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
    ],
)
async def test_a_refusal_has_the_form_of_the_api_of_its_path(
    peer: Peer, prefix: str, sent: bytes
) -> None:
    await peer.send(sent % prefix.encode())
    body = (await peer.answer()).json()
    shapes: dict[str, Callable[[Any], bool]] = {
        "/clob": lambda body: {"error", "code", "message"} <= body.keys(),
        "/create-market": lambda body: body["error"].keys() == {"code", "message", "details"},
        "/relayer": lambda body: body["error"].startswith(body["code"]),
        "/data": lambda body: list(body) == ["error"] and ": " in body["error"],
        "/discovery": lambda body: body.keys() == {"type", "error"},
    }
    assert shapes[prefix](body), body


@pytest.mark.parametrize(
    "sent", [b"GET /data\xc3\x9f HTTP/1.1\r\nHost: x\r\n\r\n", b"\x00 /data/x"]
)
async def test_a_path_that_cannot_be_read_has_the_form_of_the_worker(
    peer: Peer, sent: bytes
) -> None:
    await peer.send(sent)
    check_form(await peer.answer(), "malformed_request")


async def test_a_refusal_has_the_form_of_its_own_path_and_not_of_the_one_before(peer: Peer) -> None:
    first = a_request(b"GET /data/first HTTP/1.1")
    await peer.send(first + b"GET /create-market/x?y=\xc3\x9f HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (await peer.answer()).status == 200
    check_form(await peer.answer(), "malformed_request")
    assert await peer.rest() == b""


@pytest.mark.parametrize(
    ("begun", "prefix"),
    [
        (b"GET", ""),
        (b"GET /create-market/ HTTP/1.1\r\nHost: x\r\nA: b\r\n", ""),
        (b"POST /create-market/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", ""),
        (b"POST /clob/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", "/clob"),
        (ORDER + b"\r\nHost: x\r\nContent-Length: 9\r\n\r\n1", "/clob"),
    ],
)
async def test_a_request_that_does_not_arrive_is_refused_in_json(begun: bytes, prefix: str) -> None:
    async with a_peer(ConnectionLimits(request_deadline_s=DEADLINE_S)) as peer:
        await peer.send(begun)
        answer = await peer.answer()
        assert answer.status == 408
        code = answer.json()["code"] if prefix else answer.json()["error"]["code"]
        assert code == "request_too_slow"
        assert await peer.rest() == b""


async def test_a_connection_that_sends_nothing_is_refused_in_json() -> None:
    async with a_peer(ConnectionLimits(silence_deadline_s=DEADLINE_S)) as peer:
        answer = await peer.answer()
        assert (answer.status, answer.json()["error"]["code"]) == (408, "request_too_slow")
        assert await peer.rest() == b""


async def test_a_request_that_was_answered_early_is_not_answered_again() -> None:
    async with a_peer(ConnectionLimits(request_deadline_s=DEADLINE_S), refusing_early) as peer:
        await peer.send(a_request(POST, b"Content-Length: 9"))
        assert (await peer.answer()).status == 413
        assert await peer.rest() == b""


async def test_refusals_are_counted(peer: Peer) -> None:
    labels = ("none", "other", "other", 505)
    before = METRICS.count_by_labels.get(labels, 0)
    await peer.send(a_request(b"GET / HTTP/2.0"))
    await peer.answer()
    assert METRICS.count_by_labels[labels] == before + 1


@pytest.mark.parametrize("method", [b"PUT", b"PATCH", b"TRACE", b"PROPFIND", b"QUERY"])
async def test_a_known_method_reaches_the_api(peer: Peer, method: bytes) -> None:
    await peer.send(a_request(method + b" /create-market/x HTTP/1.1"))
    assert (await peer.answer()).body == method + b" /x"


async def test_a_request_without_a_path_is_of_no_api(peer: Peer) -> None:
    await peer.send(a_request(b"OPTIONS * HTTP/1.1"))
    answer = await peer.answer()
    assert (answer.status, answer.json()["error"]["code"]) == (404, "unknown_route")


async def test_a_refused_client_that_sends_on_reads_its_answer() -> None:
    """A connection that is closed with unread data is reset, and its answer may be lost."""
    async with a_peer(ConnectionLimits(linger_s=ANSWER_WITHIN_S)) as peer:
        await peer.send(b"GET /create-market/ HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n")
        for _ in range(20):
            await peer.send(b"a" * 65536)
            await asyncio.sleep(0.001)
        assert (await peer.answer()).status == 400
        assert await peer.rest() == b""


async def test_a_refused_client_that_never_closes_is_cut_off() -> None:
    async with a_peer(ConnectionLimits(linger_s=DEADLINE_S)) as peer:
        await peer.send(b"nothing\r\n")
        assert (await peer.answer()).status == 400
        assert await peer.rest() == b""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            while not peer.writer.is_closing():
                peer.writer.write(b"a" * 1024)
                await asyncio.sleep(0.01)


async def test_a_request_of_http_1_0_is_answered(peer: Peer) -> None:
    await peer.send(b"GET /create-market/x HTTP/1.0\r\n\r\n")
    assert (await peer.answer()).body == b"GET /x"
    assert await peer.rest() == b""
