"""Requests of `Rpc` over HTTP, to a server whose every byte a test chooses."""

import asyncio
import gc
import gzip
import ssl
import tracemalloc
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest
from tests.chain.connections.byte_server import (
    END,
    HUGE,
    HUGE_BYTES_MAX,
    LARGE,
    OWN,
    RESET,
    TIMEOUT_S,
    WAIT,
    answer,
    body,
    certified,
    chunked,
    pieces,
    plain,
    self_signed,
    serving,
)

from foretell.chain.connections import node_connections
from foretell.chain.connections.node_connections import CONNECTIONS_MAX, DEADLINES_PER_ANSWER_MAX
from foretell.chain.rpc import Rpc
from foretell.domain.errors.chain import AnswerTooLarge, ChainUnavailable

pytestmark = pytest.mark.anyio

Shape = Callable[[bytes], Sequence[bytes]]
"""The parts in which a server sends a body."""


def gzipped(body: bytes) -> list[bytes]:
    return [plain(gzip.compress(body), "content-encoding: gzip")]


def gzipped_in_chunks(body: bytes) -> list[bytes]:
    parts = pieces(gzip.compress(body), 700)
    return pieces(chunked(*parts, headers="content-encoding: gzip\r\n"), 501)


SILENT_S: Final = 3.0
"""The deadline of a node that is silent; another request must be answered within it."""
SENDING_S: Final = 5.0
"""The deadline of a node that goes on sending: longer than a busy machine stops a process."""
HINTS: Final = b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"


SHAPES: Final[dict[str, Shape]] = {
    "at once": lambda body: [plain(body)],
    "in pieces": lambda body: pieces(plain(body), 100_000),
    "in small pieces": lambda body: [*pieces(plain(body)[:500], 7), plain(body)[500:]],
    "in two chunks": lambda body: [chunked(body[:5], body[5:])],
    "in pieces of chunks": lambda body: pieces(chunked(*pieces(body, 90_000)), 70_001),
    "in small chunks": lambda body: [chunked(*pieces(body, 1_000))],
    "gzip": gzipped,
    "gzip in chunks": gzipped_in_chunks,
    "deflate": lambda body: [plain(zlib.compress(body), "Content-Encoding: Deflate")],
    "after hints": lambda body: [HINTS, plain(body)],
    "with hints": lambda body: [HINTS + plain(body)],
}


@pytest.mark.parametrize("name", SHAPES)
async def test_an_answer_is_the_same_however_it_is_sent(name: str) -> None:
    shape = SHAPES[name]
    async with serving(shape(body(1)), shape(body(2))) as (server, rpc):
        for _ in range(2):
            assert await rpc.send("eth_x") == LARGE
        assert server.connections == 1


@pytest.mark.parametrize("text", [LARGE, HUGE], ids=["large", "huge"])
async def test_an_answer_is_freed_when_nobody_has_it_any_more(text: str) -> None:
    """Not only when garbage is collected: that is rare, and counts objects, not their size."""
    answers = ([answer(number, text)] for number in range(1, 6))
    async with serving(*answers, bytes_max=HUGE_BYTES_MAX) as (server, rpc):
        await rpc.send("eth_x")
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            for _ in range(4):
                await rpc.send("eth_x")
            kept, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()
        assert kept < len(text) < most
        assert server.connections == 1


ACCOUNT: Final = "dXPDqXI6cGEgc3M="


async def test_a_request_names_the_path_the_account_and_the_length() -> None:
    answers = plain(body(1), "set-cookie: a=b"), answer(2)
    async with serving(*([each] for each in answers)) as (server, rpc):
        for _ in answers:
            await rpc.send("eth_x", 5)
        port = server.url.split(":")[-1].split("/")[0]
        first, second = server.requests
    head, _, sent = first.decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert lines[0] == "POST /v3/a%20b?x=1 HTTP/1.1"
    assert sorted(line.lower() for line in lines[1:]) == [
        "accept: application/json",
        f"authorization: basic {ACCOUNT.lower()}",
        f"content-length: {len(sent)}",
        "content-type: application/json",
        f"host: 127.0.0.1:{port}",
        "user-agent: foretell",
    ]
    assert f"Authorization: Basic {ACCOUNT}" in lines
    assert sent == '{"jsonrpc":"2.0","id":1,"method":"eth_x","params":[5]}'
    assert second == first.replace(b'"id":1', b'"id":2')


async def test_over_tls_the_certificate_is_checked_and_compression_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed(tmp_path)
    own = certified(certificate, key)
    async with serving(gzipped(body(2)), gzipped(body(3)), tls=own) as (server, rpc):
        with pytest.raises(ChainUnavailable, match="CertificateError"):
            await rpc.send("eth_x")
        assert not server.requests
        trusting = ssl.create_default_context(cafile=str(certificate))
        monkeypatch.setattr(node_connections, "_tls", lambda: trusting)
        async with Rpc(server.url) as other:
            with pytest.raises(ChainUnavailable, match="answer 2 to request 1"):
                await other.send("eth_x")
            server.answers = [gzipped(body(2)), gzipped(body(3))]
            for _ in range(2):
                assert await other.send("eth_x") == LARGE
        assert b"accept-encoding: gzip, deflate\r\n" in server.requests[0].lower()


async def test_an_answer_may_end_with_its_connection() -> None:
    answers = [[b"HTTP/1.1 200 OK\r\n\r\n" + body(number)] for number in (1, 2)]
    async with serving(*answers, closes=True) as (server, rpc):
        for _ in range(2):
            assert await rpc.send("eth_x") == LARGE
        assert server.connections == 2


@pytest.mark.parametrize(
    "parts",
    [
        [answer(1, LARGE)[:-1]],
        [chunked(body(1))[:-1]],
        [chunked(body(1))[:-5]],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"x\r\n"],
        [b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n", b"x\r\n"],
        [answer(1, LARGE)[:-1], RESET],
        [b""],
        [RESET],
        [b"HTTP/1.1 200 OK\r\n"],
        [b"<html>"],
        [b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"],
        [b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n"],
        [plain(body(1), "content-encoding: gzip")],
        [plain(gzip.compress(body(1))[:-90], "content-encoding: gzip")],
        [plain(b"", "location: /v4", status="307 Temporary Redirect"), answer(1)],
    ],
)
@pytest.mark.parametrize("closes", [False, True])
async def test_an_answer_that_is_not_whole_is_none_and_its_request_is_not_repeated(
    parts: list[bytes],
    closes: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    async with serving(parts, [answer(1)], closes=closes, timeout_s=1) as (server, rpc):
        server.released.set()
        async with asyncio.timeout(DEADLINES_PER_ANSWER_MAX / 2):
            with pytest.raises(ChainUnavailable, match="eth_x"):
                await rpc.send("eth_x")
        assert len(server.requests) == 1


@pytest.mark.parametrize("end", [RESET, END])
async def test_a_broadcast_on_a_used_connection_that_ends_is_sent_once(end: bytes) -> None:
    """A client of HTTP may repeat a request whose connection was used before; a broadcast might then happen twice."""
    async with serving([answer(1)], [end], [answer(3)]) as (server, rpc):
        await rpc.send("eth_x")
        with pytest.raises(ChainUnavailable, match="eth_sendRawTransaction"):
            await rpc.send("eth_sendRawTransaction", "0x00")
        assert (len(server.requests), server.connections) == (2, 1)
        assert await rpc.send("eth_x")
        assert (len(server.requests), server.connections) == (3, 2)


@pytest.mark.parametrize("name", SHAPES)
async def test_an_answer_of_more_bytes_than_allowed_is_refused(name: str) -> None:
    shape = SHAPES[name]
    size = len(body(1))
    async with serving(shape(body(1)), shape(body(2))) as (_, rpc):
        with pytest.raises(ChainUnavailable, match=f"more than {size - 1} bytes"):
            await rpc.send("eth_x", answer_bytes_max=size - 1)
        assert await rpc.send("eth_x", answer_bytes_max=size) == LARGE


@pytest.mark.parametrize(
    ("large", "is_of_node"),
    [
        (plain(body(1)), True),
        (plain(body(1), "content-type: application/json"), True),
        (plain(body(1), "content-type: text/html"), False),
        (plain(body(1), status="502 Bad Gateway"), False),
        (plain(body(1), status="429 Too Many Requests"), False),
    ],
)
async def test_an_answer_of_too_many_bytes_is_no_failure_of_the_node(
    large: bytes, *, is_of_node: bool
) -> None:
    async with serving([large], [answer(2)]) as (_, rpc):
        with pytest.raises(ChainUnavailable, match=f"more than {len(LARGE) // 2} bytes") as refusal:
            await rpc.send("eth_x", answer_bytes_max=len(LARGE) // 2)
        assert isinstance(refusal.value, AnswerTooLarge) is is_of_node
        assert await rpc.send("eth_x") == "0x1"


async def test_attack_m1_an_answer_beyond_the_bound_of_all_is_asked_for_once() -> None:
    large = [plain(body(1))]
    async with serving(large, large, bytes_max=len(LARGE) // 2) as (server, rpc):
        with pytest.raises(AnswerTooLarge):
            await rpc.call_as(str, "eth_x")
        with pytest.raises(AnswerTooLarge):
            await rpc.batch_as(str, [("eth_x", [])])
        assert len(server.requests) == 2


async def test_an_answer_beyond_the_bound_of_all_is_none_to_other_callers() -> None:
    large = [plain(body(1))]
    async with serving(*[large] * 5, bytes_max=len(LARGE) // 2) as (server, rpc):
        for asking in (rpc.call("eth_x"), rpc.batch([("eth_x", [])]), rpc.send("eth_x")):
            with pytest.raises(ChainUnavailable, match="more than") as refusal:
                await asking
            assert type(refusal.value) is ChainUnavailable
        assert len(server.requests) == 5


@pytest.mark.parametrize(
    "parts",
    [
        [answer(1, LARGE)[:200], WAIT],
        [chunked(*pieces(body(1), 1_000))[:-9], WAIT],
        [plain(gzip.compress(body(1)), "content-encoding: gzip")[:-9], WAIT],
        [plain(gzip.compress(bytes(2**26)), "content-encoding: gzip")[:-9], WAIT],
        [b"HTTP/1.1 200 OK\r\n\r\n" + body(1), WAIT],
    ],
)
async def test_an_answer_of_more_bytes_than_allowed_is_not_read_to_its_end(
    parts: list[bytes],
) -> None:
    allowed = len(LARGE) // 2
    async with serving(parts, [answer(2)], bytes_max=allowed) as (server, rpc):
        with pytest.raises(ChainUnavailable, match=f"more than {allowed} bytes"):
            await rpc.send("eth_x")
        assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 2


async def test_a_compressed_answer_is_measured_before_it_is_read() -> None:
    incompressible = plain(b"", "content-encoding: gzip").replace(b": 0", b": 999")
    async with serving([incompressible, WAIT], bytes_max=998) as (_, rpc):
        with pytest.raises(ChainUnavailable, match="more than 998 bytes"):
            await rpc.send("eth_x")


async def test_a_node_that_is_silent_is_given_up_and_its_connection_closed() -> None:
    async with serving([WAIT], [answer(2)], timeout_s=SILENT_S) as (server, rpc):
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await rpc.send("eth_x")
        assert await rpc.send("eth_x")
        assert server.connections == 2


async def test_a_node_that_goes_on_sending_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = pieces(answer(1), 10)
    async with serving(slow, timeout_s=SENDING_S) as (server, rpc):
        server.pause_s = 1.4 * SENDING_S / len(slow)
        assert await rpc.send("eth_x")
    monkeypatch.setattr(node_connections, "DEADLINES_PER_ANSWER_MAX", 1)
    async with serving(slow, timeout_s=1) as (server, rpc):
        server.pause_s = 2.5 / len(slow)
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await rpc.send("eth_x")


async def test_a_connection_that_the_node_closed_or_that_was_idle_is_replaced(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers = [[answer(number)] for number in (1, 2)]
    async with serving(*answers, closes=True) as (server, rpc):
        for _ in range(2):
            await rpc.send("eth_x")
            await server.ended.acquire()
            await asyncio.sleep(0.05)
        assert server.connections == 2
    monkeypatch.setattr(node_connections, "IDLE_S_MAX", 0.01)
    async with serving(*answers) as (server, rpc):
        await rpc.send("eth_x")
        await asyncio.sleep(0.05)
        await rpc.send("eth_x")
        assert server.connections == 2


async def test_an_answer_that_no_request_asked_for_is_never_that_of_a_later_one() -> None:
    async with serving([answer(1) + answer(1)], [answer(2)]) as (server, rpc):
        for _ in range(2):
            assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 2


@pytest.mark.parametrize("stray", [answer(1), answer(99), plain(b"<html>")])
async def test_a_connection_that_is_an_answer_behind_is_not_used_again(stray: bytes) -> None:
    async with serving([answer(1), stray], [answer(2)], [answer(3)]) as (server, rpc):
        await rpc.send("eth_x")
        await asyncio.sleep(0.1)
        with pytest.raises(ChainUnavailable):
            await rpc.send("eth_x")
        await server.ended.acquire()
        server.answers = [[answer(3)]]
        assert await rpc.send("eth_x")
        assert server.connections == 2


async def test_an_abandoned_request_leaves_no_connection_behind() -> None:
    async with serving([WAIT], [answer(2)]) as (server, rpc):
        task = asyncio.create_task(rpc.send("eth_x"))
        await server.asked.acquire()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await rpc.send("eth_x")
        assert server.connections == 2


async def test_more_requests_than_connections_wait_for_one() -> None:
    count = 3 * CONNECTIONS_MAX
    async with serving(*[[answer(OWN)]] * count) as (server, rpc):
        await asyncio.gather(*(rpc.send("eth_x") for _ in range(count)))
        assert server.connections == CONNECTIONS_MAX


async def test_a_request_waits_for_a_connection_until_its_deadline() -> None:
    slow = [pieces(answer(OWN, "0x" + 2_000 * "1"), 20)] * CONNECTIONS_MAX
    async with serving(*slow, timeout_s=SENDING_S) as (server, rpc):
        server.pause_s = 0.2
        first = [asyncio.create_task(rpc.send("eth_x")) for _ in slow]
        for _ in slow:
            await server.asked.acquire()
        with pytest.raises(ChainUnavailable, match="ConnectionTimeoutError"):
            await rpc.send("eth_x")
        server.pause_s = 0.0
        await asyncio.gather(*first)
        assert len(server.requests) == CONNECTIONS_MAX


@pytest.mark.parametrize("count", [1, CONNECTIONS_MAX + 2])
async def test_requests_that_are_under_way_when_the_connections_are_closed_are_answered(
    count: int,
) -> None:
    async with serving(*[[WAIT, answer(OWN)]] * count) as (server, rpc):
        asked = [asyncio.create_task(rpc.send("eth_x")) for _ in range(count)]
        await server.asked.acquire()
        await rpc.close()
        server.released.set()
        assert set(await asyncio.gather(*asked)) == {"0x1"}
        async with asyncio.timeout(TIMEOUT_S):
            for _ in range(server.connections):
                await server.ended.acquire()


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "http://127.0.0.1:1", "https://127.0.0.1:1"])
async def test_an_address_without_a_node_counts_as_no_answer(url: str) -> None:
    async with Rpc(url, timeout_s=TIMEOUT_S) as rpc:
        with pytest.raises(ChainUnavailable) as refusal:
            await rpc.send("eth_x")
    assert "127.0.0.1" not in str(refusal.value)
