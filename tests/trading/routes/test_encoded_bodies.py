"""Bodies that are compressed, cut into chunks or declared with another length than they have."""

import asyncio
import contextlib
import gzip
import json
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy

from foretell.app.http.fast_routes import served_under
from foretell.edge.codec import BODY_BYTES_MAX
from foretell.edge.telemetry import Telemetry
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
BOMB_BYTES = 32 * 1024 * 1024
CHUNKED = {"Transfer-Encoding": "chunked"}
ROUTES = [("POST", "/order"), ("POST", "/orders"), ("DELETE", "/cancel-market-orders")]


async def exchange(
    rig: TradingRig, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> tuple[int, Any]:
    """Send these bytes to the real server, and return the status and the body of the answer."""
    telemetry = Telemetry(rig.app, "encoded bodies", lambda: "an id")
    async with serving(rig.app, served_under("", fast_routes(rig.context), telemetry)) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode() + body)
        async with asyncio.timeout(WITHIN_S):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
            content = await reader.readexactly(length)
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return int(head.split()[1]), json.loads(content)


def chunked(body: bytes, size: int, extension: bytes = b"") -> bytes:
    """Return a body in chunks."""
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    return b"".join(b"%x%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in [*pieces, b""])


@pytest.mark.case("G-03")
@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_compressed_body_is_taken_as_it_is_and_never_unpacked(
    rig: TradingRig, alice: Trader, method: str, path: str, coding: str
) -> None:
    """What it becomes would be 32 MiB; as it is, it is no JSON."""
    blanks = b" " * BOMB_BYTES
    bomb = gzip.compress(blanks) if coding == "gzip" else zlib.compress(blanks)
    assert len(bomb) < BODY_BYTES_MAX
    headers = alice.l2_headers(method, path, bomb) | {"Content-Encoding": coding}
    status, answer = await exchange(
        rig, method, path, headers | {"Content-Length": str(len(bomb))}, bomb
    )
    assert status == 400
    assert "malformed" in answer["code"]


@pytest.mark.case("G-03")
@pytest.mark.parametrize("size", [1, 7, 4096])
async def test_a_body_in_chunks_is_the_body_that_was_signed(
    rig: TradingRig, alice: Trader, size: int
) -> None:
    raw = json.dumps(alice.body(a_buy("alice", price_ticks=40))).encode()
    headers = alice.l2_headers("POST", "/order", raw) | {"Transfer-Encoding": "chunked"}
    status, answer = await exchange(
        rig, "POST", "/order", headers, chunked(raw, size, b";junk=1" if size == 7 else b"")
    )
    assert (status, answer["status"]) == (200, "live")


@pytest.mark.case("G-03")
@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        (CHUNKED, chunked(bytes(BODY_BYTES_MAX + 1), 4096), "body_too_large"),
        (CHUNKED, b"zz\r\n{}\r\n0\r\n\r\n", "malformed_request"),
        (CHUNKED, b"fffffffffffffffff\r\n{}", "malformed_request"),
        (CHUNKED, b"2\r\n{}junk\r\n0\r\n\r\n", "malformed_request"),
        (CHUNKED | {"Content-Length": "2"}, b"2\r\n{}\r\n0\r\n\r\n", "malformed_request"),
        ({"Content-Length": "-2"}, b"{}", "malformed_request"),
        ({"Content-Length": "18446744073709551618"}, b"{}", "malformed_request"),
        ({"Content-Length": str(BODY_BYTES_MAX + 1)}, b"{", "body_too_large"),
    ],
)
async def test_a_body_that_is_too_large_or_has_no_clear_end_is_refused(
    rig: TradingRig, alice: Trader, headers: dict[str, str], body: bytes, code: str
) -> None:
    signed = alice.l2_headers("POST", "/order", b"{}")
    status, answer = await exchange(rig, "POST", "/order", signed | headers, body)
    found = answer["error"]["code"] if isinstance(answer["error"], dict) else answer["code"]
    assert (status, found) == (400, code)


@pytest.mark.case("G-03")
async def test_a_body_longer_than_declared_is_no_part_of_its_request(
    rig: TradingRig, alice: Trader
) -> None:
    raw = json.dumps(alice.body(a_buy("alice", price_ticks=40))).encode()
    headers = alice.l2_headers("POST", "/order", raw) | {"Content-Length": str(len(raw))}
    status, answer = await exchange(rig, "POST", "/order", headers, raw + b" and more")
    assert (status, answer["status"]) == (200, "live")
