import asyncio
import contextlib
import gc
import gzip
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from foretell.chain import node_connections
from foretell.chain.node_connections import CONNECTIONS_MAX, HttpAnswer, NodeConnections
from foretell.domain.errors.chain import ChainUnavailable

pytestmark = pytest.mark.anyio

BYTES_MAX: Final = 1_000_000
TIMEOUT_S: Final = 5.0
LARGE: Final = bytes(range(256)) * 2_000


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """The loop of a process that serves is another one than that of most tests."""
    return "asyncio", {"use_uvloop": request.param}


class Server:
    """A server that answers each request with the next of its answers, given in parts, and keeps the requests."""

    def __init__(self, answers: Sequence[Sequence[bytes]], *, closes: bool = False) -> None:
        self.answers = list(answers)
        self.closes = closes
        self.requests: list[bytes] = []
        self.connections = 0
        self.tasks: list[Any] = []
        self.asked = asyncio.Event()
        self.ended = asyncio.Semaphore(0)
        self.released = asyncio.Event()
        self.pause_s = 0.01
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.requests.append(head + await reader.readexactly(size))
                self.asked.set()
                for part in self.answers.pop(0):
                    if part == WAIT:
                        await self.released.wait()
                    writer.write(part)
                    await writer.drain()
                    await asyncio.sleep(self.pause_s)
                if self.closes:
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        self.ended.release()


WAIT: Final = b""
"""A part before which the server waits until it is released."""


@contextlib.asynccontextmanager
async def serving(
    *answers: Sequence[bytes],
    closes: bool = False,
    timeout_s: float = TIMEOUT_S,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[tuple[Server, NodeConnections]]:
    server = Server(answers, closes=closes)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=tls)
    async with listening:
        port = listening.sockets[0].getsockname()[1]
        scheme = "http" if tls is None else "https"
        server.url = f"{scheme}://user:pa%20ss@127.0.0.1:{port}/v3/a%20b?x=1"
        client = NodeConnections(server.url, timeout_s=timeout_s)
        try:
            yield server, client
        finally:
            await client.close()
            server.released.set()
            await asyncio.gather(*server.tasks)


def plain(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


def chunked(*parts: bytes, headers: str = "") -> bytes:
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (*parts, b""))
    return b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n%s\r\n" % headers.encode() + body


def pieces(answer: bytes, size: int) -> list[bytes]:
    return [answer[at : at + size] for at in range(0, len(answer), size)]


async def post(client: NodeConnections, bytes_max: int = BYTES_MAX) -> HttpAnswer:
    return await client.post("eth_x", b"{}", bytes_max)


GZIPPED: Final = gzip.compress(LARGE)


@pytest.mark.parametrize(
    "parts",
    [
        [plain(LARGE)],
        pieces(plain(LARGE), 100_000),
        [*pieces(plain(LARGE)[:500], 7), plain(LARGE)[500:]],
        [chunked(LARGE[:5], LARGE[5:])],
        pieces(chunked(*pieces(LARGE, 90_000)), 70_001),
        [plain(GZIPPED, "content-encoding: gzip")],
        [plain(zlib.compress(LARGE), "Content-Encoding: Deflate")],
        pieces(chunked(*pieces(GZIPPED, 700), headers="content-encoding: gzip\r\n"), 501),
        [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n", plain(LARGE)],
        [b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + plain(LARGE)],
    ],
)
async def test_a_body_is_the_same_however_it_is_sent(parts: list[bytes]) -> None:
    async with serving(parts, parts) as (server, client):
        for _ in range(2):
            answer = await post(client)
            assert (answer.status, bytes(answer.body)) == (200, LARGE)
        assert server.connections == 1


async def test_a_body_is_freed_when_nobody_has_it_any_more() -> None:
    """Not only when garbage is collected: that is rare, and counts objects, not their size."""
    async with serving([plain(LARGE)], [plain(LARGE)]) as (_, client):
        await post(client)
        gc.collect()
        gc.disable()
        try:
            before = count_bodies()
            await post(client)
            assert count_bodies() == before
        finally:
            gc.enable()


def count_bodies() -> int:
    return sum(isinstance(each, node_connections._Answer) for each in gc.get_objects())


async def test_a_request_names_the_path_the_account_and_the_length() -> None:
    async with serving([plain(b"1")]) as (server, client):
        await post(client)
        port = server.url.split(":")[-1].split("/")[0]
        [request] = server.requests
    lines = request.decode().split("\r\n")
    assert lines[0] == "POST /v3/a%20b?x=1 HTTP/1.1"
    assert f"host: 127.0.0.1:{port}" in lines
    assert "content-length: 2" in lines
    assert "authorization: Basic dXNlcjpwYSBzcw==" in lines
    assert not [line for line in lines if line.startswith("accept-encoding")]
    assert lines[-1] == "{}"


async def test_over_tls_the_certificate_is_checked_and_compression_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed(tmp_path)
    own = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    own.load_cert_chain(certificate, key)
    answer = plain(GZIPPED, "content-encoding: gzip")
    async with serving([plain(LARGE)], [answer], tls=own) as (server, client):
        with pytest.raises(ChainUnavailable, match="SSLCertVerificationError"):
            await post(client)
        assert not server.requests
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(node_connections, "_tls", lambda: trusting)
        for _ in range(2):
            assert bytes((await post(client)).body) == LARGE
        assert b"accept-encoding: gzip, deflate\r\n" in server.requests[0]


def self_signed(folder: Path) -> tuple[Path, Path]:
    """Return a certificate of the loopback address, and its key."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=node"
    names = [
        "-addext",
        "subjectAltName=IP:127.0.0.1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run([*command.split(), *names], check=True, capture_output=True)
    return certificate, key


async def test_a_body_may_end_with_its_connection() -> None:
    answer = [b"HTTP/1.1 200 OK\r\n\r\n" + LARGE]
    async with serving(answer, answer, closes=True) as (server, client):
        for _ in range(2):
            assert bytes((await post(client)).body) == LARGE
        assert server.connections == 2


@pytest.mark.parametrize(
    "parts",
    [
        [plain(LARGE)[:-1]],
        [chunked(LARGE)[:-1]],
        [b""],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"<html>"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"],
        [b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
        [plain(b"not compressed", "content-encoding: gzip")],
    ],
)
async def test_an_answer_that_is_not_whole_is_none(parts: list[bytes]) -> None:
    async with serving(parts, closes=True) as (server, client):
        server.released.set()
        with pytest.raises(ChainUnavailable, match="eth_x"):
            await post(client)


@pytest.mark.parametrize(
    "parts",
    [
        [plain(LARGE)],
        [plain(LARGE)[:200], WAIT],
        [chunked(*pieces(LARGE, 1_000))],
        [plain(GZIPPED, "content-encoding: gzip")],
        [b"HTTP/1.1 200 OK\r\n\r\n" + LARGE],
    ],
)
async def test_an_answer_of_more_bytes_than_allowed_is_not_read_to_its_end(
    parts: list[bytes],
) -> None:
    async with serving(parts) as (server, client):
        with pytest.raises(ChainUnavailable, match=f"more than {len(LARGE) - 1} bytes"):
            await post(client, len(LARGE) - 1)
        server.released.set()
    async with serving(parts, closes=True) as (server, client):
        server.released.set()
        if parts[-1] != WAIT:
            assert len((await post(client, len(LARGE))).body) == len(LARGE)


async def test_a_node_that_is_silent_is_given_up_and_its_connection_closed() -> None:
    async with serving([WAIT], [plain(b"1")], timeout_s=0.2) as (server, client):
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await post(client)
        server.released.set()
        server.answers = [[plain(b"1")]]
        assert bytes((await post(client)).body) == b"1"
        assert server.connections == 2


async def test_a_node_that_goes_on_sending_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = pieces(plain(bytes(60)), 10)
    async with serving(slow, timeout_s=2) as (server, client):
        server.pause_s = 2.5 / len(slow)
        assert len((await post(client)).body) == 60
    monkeypatch.setattr(node_connections, "DEADLINES_PER_ANSWER_MAX", 1)
    async with serving(slow, timeout_s=1) as (server, client):
        server.pause_s = 2.5 / len(slow)
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await post(client)


async def test_a_connection_that_the_node_closed_or_that_was_idle_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [[plain(b"1")]] * 3
    async with serving(*answers, closes=True) as (server, client):
        for _ in range(2):
            await post(client)
            await server.ended.acquire()
            await asyncio.sleep(0.05)
        assert server.connections == 2
    async with serving(*answers) as (server, client):
        await post(client)
        monkeypatch.setattr(node_connections, "IDLE_S_MAX", -1.0)
        await post(client)
        assert server.connections == 2


async def test_bytes_that_no_request_asked_for_close_the_connection() -> None:
    both = plain(b"1"), plain(b"2")
    async with serving([b"".join(both)], both, [plain(b"3")]) as (server, client):
        with pytest.raises(ChainUnavailable, match="more than one answer"):
            await post(client)
        assert bytes((await post(client)).body) == b"1"
        await asyncio.sleep(0.1)
        assert bytes((await post(client)).body) == b"3"
        assert server.connections == 3


async def test_an_abandoned_request_leaves_no_connection_behind() -> None:
    async with serving([WAIT], [plain(b"1")]) as (server, client):
        task = asyncio.create_task(post(client))
        await server.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert bytes((await post(client)).body) == b"1"
        assert server.connections == 2


async def test_more_requests_than_connections_wait_for_one() -> None:
    count = 3 * CONNECTIONS_MAX
    async with serving(*[[plain(b"1")]] * count) as (server, client):
        await asyncio.gather(*[post(client) for _ in range(count)])
        assert server.connections == CONNECTIONS_MAX


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://127.0.0.1:1", "https://127.0.0.1:1"])
async def test_an_address_without_a_node_counts_as_no_answer(url: str) -> None:
    with pytest.raises(ChainUnavailable) as refusal:
        await post(NodeConnections(url, timeout_s=TIMEOUT_S))
    assert "127.0.0.1" not in str(refusal.value)
