"""Requests that ask for another protocol are served as if they did not, with their bodies, and so is what follows them."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

import pytest
from tests.app.http.test_malformed_requests import Peer, a_request, connected, refusing_early
from tests.rigs.applications import serving

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.connection_places import ConnectionPlaces
from foretell.edge.telemetry import Receive, Scope, Send

pytestmark = pytest.mark.anyio

SMUGGLED: Final = a_request(b"GET /smuggled HTTP/1.1")
GET: Final = b"GET /next HTTP/1.1"
UPGRADES: Final = {
    "h2c": (
        b"Connection: Upgrade, HTTP2-Settings",
        b"Upgrade: h2c",
        b"HTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA",
    ),
    "kept": (b"Connection: keep-alive, upgrade", b"Upgrade: foo"),
    "TLS": (b"Connection: upgrade", b"Upgrade: TLS/1.0"),
    "some": (b"Connection: Upgrade", b"Upgrade: websocket, h2c"),
    "twice": (b"Connection: upgrade", b"Connection: upgrade", b"Upgrade: a", b"Upgrade: b"),
}
BODIES: Final = {
    "length": (b"Content-Length: %d" % len(SMUGGLED), SMUGGLED),
    "chunked": (
        b"Transfer-Encoding: chunked",
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(SMUGGLED), SMUGGLED),
    ),
    "none": (b"X-None: 1", b""),
}


async def returning(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the path, the body and the names of the headers, as far as they are about the connection."""
    assert scope["type"] == "http"
    body, more = b"", True
    while more:
        message = await receive()
        body += message["body"]
        more = message["more_body"]
    await asyncio.sleep(0.5 if scope["path"] == "/slow" else 0.0)
    about = {b"connection", b"upgrade", b"http2-settings"}
    names = sorted({name for name, _ in scope["headers"]} & about)
    answer = b"|".join((scope["path"].encode(), body, *names))
    headers = [(b"content-length", str(len(answer)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    async with serving(returning) as place, connected(place) as peer:
        yield peer


@pytest.mark.parametrize("method", [b"POST", b"DELETE", b"GET"])
@pytest.mark.parametrize("upgrade", UPGRADES.values(), ids=UPGRADES)
@pytest.mark.parametrize(("framing", "body"), BODIES.values(), ids=BODIES)
async def test_guard_a_body_behind_an_upgrade_that_is_ignored_is_no_next_request(
    peer: Peer, method: bytes, upgrade: tuple[bytes, ...], framing: bytes, body: bytes
) -> None:
    """A finding: it was read as the next request, whose answer a proxy sent to another client."""
    asked = a_request(method + b" /asked HTTP/1.1", *upgrade, framing, body=body)
    await peer.send(asked + a_request(GET))
    kept = b"|connection" if b"keep-alive" in upgrade[0] else b""
    assert (await peer.answer()).body == b"/asked|" + (SMUGGLED if body else b"") + kept
    assert (await peer.answer()).body == b"/next|"


@pytest.mark.parametrize("size", [1, 7, 64])
async def test_it_may_arrive_in_pieces(peer: Peer, size: int) -> None:
    framing, body = BODIES["chunked"]
    asked = a_request(b"POST /asked HTTP/1.1", *UPGRADES["h2c"], framing, body=body)
    for at in range(0, len(asked), size):
        await peer.send(asked[at : at + size])
    assert (await peer.answer()).body == b"/asked|" + SMUGGLED
    await peer.send(a_request(GET))
    assert (await peer.answer()).body == b"/next|"


async def test_a_connection_that_closes_after_it_is_closed(peer: Peer) -> None:
    framing, body = BODIES["length"]
    headers = (b"Connection: close, upgrade", b"Upgrade: h2c", framing)
    await peer.send(a_request(b"POST /asked HTTP/1.1", *headers, body=body))
    assert (await peer.answer()).headers["connection"] == "close"
    assert await peer.rest() == b""


async def test_a_large_body_behind_it_arrives_whole(peer: Peer) -> None:
    size = 1_000_000
    asked = (b"Connection: upgrade", b"Upgrade: h2c", b"Content-Length: %d" % size)
    await peer.send(a_request(b"POST /asked HTTP/1.1", *asked, body=bytes(size)))
    assert (await peer.answer()).body == b"/asked|" + bytes(size)


async def test_a_refusal_behind_it_says_what_is_the_matter(peer: Peer) -> None:
    """A finding: each was "its path is malformed"."""
    asked = (*UPGRADES["h2c"], b"Content-Length: 5000")
    await peer.send(a_request(b"GET /asked HTTP/1.1", *asked))
    assert "the body" in (await peer.answer()).json()["error"]["message"]


async def test_its_head_does_not_count_for_the_next_request(peer: Peer) -> None:
    """A finding: a large head behind a large one was refused."""
    large = a_request(GET, *UPGRADES["kept"], b"X: " + b"x" * 63_000)
    await peer.send(large[:-1])
    await asyncio.sleep(0.05)
    following = a_request(GET, b"Y: " + b"y" * 16_000)
    for piece in (large[-1:] + following[:100], following[100:8_000], following[8_000:]):
        await peer.send(piece)
        await asyncio.sleep(0.01)
    assert [(await peer.answer()).status for _ in range(2)] == [200, 200]


CLOSING: Final = (
    a_request(b"POST /asked HTTP/1.1", b"Transfer-Encoding: chunked")
    + b"0\r\nConnection: close\r\n\r\n"
)


@pytest.mark.parametrize("is_answered", [False, True])
async def test_guard_what_comes_behind_a_trailer_that_closes_is_no_request(
    *, is_answered: bool
) -> None:
    """A finding: the next head was dropped, and its body was carried out as a request."""
    app = refusing_early if is_answered else returning
    head = CLOSING.index(b"0\r\nConnection")
    async with serving(app) as place, connected(place) as peer:
        await peer.send(CLOSING[:head])
        if is_answered:
            assert (await peer.answer()).status == 413
        following = a_request(b"POST /next HTTP/1.1", b"Content-Length: %d" % len(SMUGGLED))
        await peer.send(CLOSING[head:] + following)
        await asyncio.sleep(0.05)
        await peer.send(SMUGGLED)
        if not is_answered:
            assert (await peer.answer()).body == b"/asked|"
        assert await peer.rest() == b""


async def test_a_client_of_an_older_version_gets_no_word_to_continue(peer: Peer) -> None:
    asked = (b"Expect: 100-continue", b"Content-Length: 2")
    await peer.send(a_request(b"POST /asked HTTP/1.0", *asked))
    await asyncio.sleep(0.05)
    await peer.send(b"ok")
    assert (await peer.answer()).body == b"/asked|ok"


HANDSHAKE: Final = a_request(
    b"GET /stream HTTP/1.1",
    b"Connection: Upgrade",
    b"Upgrade: websocket",
    b"Sec-WebSocket-Version: 13",
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)


async def test_guard_a_handshake_behind_requests_that_are_not_answered_is_refused(
    peer: Peer,
) -> None:
    """A finding: it was accepted before their answers, some of which never came, and others were held without a bound."""
    await peer.send(a_request(b"GET /slow HTTP/1.1") * 3 + HANDSHAKE)
    for _ in range(3):
        assert (await peer.answer()).body == b"/slow|"
    refused = await peer.answer()
    assert (refused.status, refused.headers["content-type"]) == (400, "application/json")
    assert await peer.rest() == b""


@pytest.mark.parametrize("is_first", [True, False])
async def test_guard_empty_lines_keep_no_connection_open(*, is_first: bool) -> None:
    """A finding: with each one the time in which a request has to come began again."""
    places = ConnectionPlaces()
    limits = ConnectionLimits(silence_deadline_s=0.5, keep_alive_s=0.5)
    async with serving(returning, limits=limits, places=places) as place, connected(place) as peer:
        if not is_first:
            await peer.send(a_request(GET))
            await peer.answer()
        sent = 0
        while places.taken and sent < 1_000:
            await peer.send(b"\r\n")
            sent += 1
            await asyncio.sleep(0.05)
        assert sent < 1_000
        assert (await peer.rest()).startswith(b"HTTP/1.1 408") == is_first
