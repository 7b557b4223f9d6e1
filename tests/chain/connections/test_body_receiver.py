"""Answers that are received beside the parser of HTTP."""

import asyncio
import gzip
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.chain.connections.byte_server import (
    END,
    HUGE,
    HUGE_BYTES_MAX,
    RESET,
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
from typing_extensions import override

from foretell.chain.connections import body_receiver, node_connections
from foretell.chain.connections.node_connections import NodeConnections
from foretell.domain.errors.chain import ChainUnavailable

pytestmark = pytest.mark.anyio

HEAD_BYTES = len(plain(body(1, HUGE))) - len(body(1, HUGE))
SILENT_S = 3.0
"""The deadline of a node that is silent; another request must be answered within it."""
SENDING_S = 5.0
"""The deadline of a node that goes on sending: longer than a busy machine stops a process."""


@pytest.fixture
def half() -> asyncio.Event:
    """Set when half of a body was received beside the parser."""
    return asyncio.Event()


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch, half: asyncio.Event) -> list[int]:
    """The sizes of the pieces that were received beside the parser."""
    sizes: list[int] = []

    class Counted(body_receiver._BodyReceiver):
        @override
        def buffer_updated(self, nbytes: int) -> None:
            super().buffer_updated(nbytes)
            sizes.append(nbytes)
            if sum(sizes) > len(HUGE) // 2:
                half.set()

    monkeypatch.setattr(body_receiver, "_BodyReceiver", Counted)
    return sizes


@pytest.mark.parametrize(
    "sizes",
    [[], [HEAD_BYTES], [HEAD_BYTES + 1], [10, HEAD_BYTES], [100_000] * 30, [HEAD_BYTES, 2_000_000]],
)
async def test_a_large_answer_is_the_same_however_it_is_sent(
    sizes: Sequence[int], received: list[int]
) -> None:
    answers = [parts(answer(number, HUGE), sizes) for number in (1, 2, 3)]
    async with serving(*answers, bytes_max=HUGE_BYTES_MAX) as (server, rpc):
        for _ in answers:
            assert await rpc.send("eth_x") == HUGE
        assert server.connections == 1
    assert sum(received) > len(HUGE)


@pytest.mark.parametrize(
    "sent",
    [
        chunked(*pieces(body(1, HUGE), 900_000)),
        plain(gzip.compress(body(1, HUGE), 0), "content-encoding: gzip"),
    ],
    ids=["chunked", "gzip"],
)
async def test_a_body_with_a_structure_goes_through_the_parser(
    sent: bytes, received: list[int]
) -> None:
    async with serving([sent], bytes_max=HUGE_BYTES_MAX) as (_, rpc):
        assert await rpc.send("eth_x") == HUGE
    assert received == []


async def test_a_large_answer_over_tls_goes_through_the_parser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, received: list[int]
) -> None:
    certificate, key = self_signed(tmp_path)
    trusting = ssl.create_default_context(cafile=str(certificate))
    monkeypatch.setattr(node_connections, "_tls", lambda: trusting)
    own = certified(certificate, key)
    async with serving([answer(1, HUGE)], bytes_max=HUGE_BYTES_MAX, tls=own) as (_, rpc):
        assert await rpc.send("eth_x") == HUGE
    assert received == []


def parts(sent: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Return what is sent in parts of these sizes, and the rest."""
    found = []
    for size in sizes:
        found.append(sent[:size])
        sent = sent[size:]
    return [part for part in (*found, sent) if part]


async def test_pieces_that_the_parser_was_too_full_for_are_not_lost(
    monkeypatch: pytest.MonkeyPatch, received: list[int]
) -> None:
    """A loop that is busy after the head of an answer finds more of the body than the parser takes."""
    body_of = NodeConnections._body

    async def late(*arguments: Any) -> bytearray:
        await asyncio.sleep(0.2)
        return await body_of(*arguments)

    monkeypatch.setattr(NodeConnections, "_body", late)
    answers = [[answer(number, HUGE)] for number in (1, 2)]
    async with serving(*answers, bytes_max=HUGE_BYTES_MAX) as (server, rpc):
        for _ in answers:
            assert await rpc.send("eth_x") == HUGE
        assert server.connections == 1
    assert received


@pytest.mark.parametrize("end", [RESET, END])
async def test_a_large_answer_that_is_not_whole_is_none(end: bytes, received: list[int]) -> None:
    cut = answer(1, HUGE)[:-300_000]
    async with serving([cut, end], [answer(2)], bytes_max=HUGE_BYTES_MAX) as (server, rpc):
        with pytest.raises(ChainUnavailable, match="ClientPayloadError"):
            await rpc.send("eth_x")
        assert await rpc.send("eth_x") == "0x1"
        assert (len(server.requests), server.connections) == (2, 2)
    assert received


async def test_a_node_that_is_silent_within_a_large_answer_is_given_up(received: list[int]) -> None:
    cut = answer(1, HUGE)[:-300_000]
    async with serving([cut, WAIT], [answer(2)], bytes_max=HUGE_BYTES_MAX, timeout_s=SILENT_S) as (
        server,
        rpc,
    ):
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await rpc.send("eth_x")
        assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 2
    assert received


async def test_a_node_that_goes_on_sending_a_large_answer_has_its_time(
    monkeypatch: pytest.MonkeyPatch, received: list[int]
) -> None:
    slow = [*parts(answer(1, HUGE), [100, 1_000_000, *[1_000] * 8])]
    answers = [slow, [answer(2)]]
    async with serving(*answers, bytes_max=HUGE_BYTES_MAX, timeout_s=SENDING_S) as (server, rpc):
        server.pause_s = 1.4 * SENDING_S / len(slow)
        assert await rpc.send("eth_x") == HUGE
        assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 1
    assert received
    monkeypatch.setattr(node_connections, "DEADLINES_PER_ANSWER_MAX", 1)
    async with serving(slow, bytes_max=HUGE_BYTES_MAX, timeout_s=1) as (server, rpc):
        server.pause_s = 3 / len(slow)
        with pytest.raises(ChainUnavailable, match="TimeoutError"):
            await rpc.send("eth_x")


@pytest.mark.parametrize("behind", [b"x", answer(1, "0x9")])
async def test_a_connection_with_bytes_behind_a_large_answer_is_not_used_again(
    behind: bytes, received: list[int]
) -> None:
    async with serving([answer(1, HUGE) + behind], [answer(2)], bytes_max=HUGE_BYTES_MAX) as (
        server,
        rpc,
    ):
        assert await rpc.send("eth_x") == HUGE
        assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 2
    assert received


@pytest.mark.usefixtures("received")
async def test_an_abandoned_large_answer_leaves_no_connection_behind(half: asyncio.Event) -> None:
    cut = answer(1, HUGE)[:-300_000]
    async with serving([cut, WAIT], [answer(2)], bytes_max=HUGE_BYTES_MAX) as (server, rpc):
        asked = asyncio.create_task(rpc.send("eth_x"))
        await half.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert await rpc.send("eth_x") == "0x1"
        assert server.connections == 2
