"""The memory for bodies that strangers cannot have, over HTTP."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.rigs.applications import serving
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.http.fast_routes import served_under
from foretell.edge.codec import (
    BODY_BUDGET,
    BODY_BYTES_BY_ALL_MAX,
    BODY_BYTES_BY_CLIENT_MAX,
    BODY_BYTES_RESERVED,
)
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import NO_LIMITS
from foretell.edge.telemetry import Telemetry
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication
from foretell.trading.refusals import trading_body
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

WITHIN_S = 60.0
FOR_STRANGERS = BODY_BYTES_BY_ALL_MAX - BODY_BYTES_RESERVED
Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
async def stream(rig: TradingRig) -> AsyncIterator[Stream]:
    """Open a connection to the trading API."""
    api = ApiLimits(RateLimiter("trading", NO_LIMITS, monotonic_ms), trading_body)
    app = Telemetry(ThrottledApplication(rig.app, api), "bodies", lambda: "an id")
    async with serving(app, served_under("", fast_routes(rig.context), app, api)) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        yield reader, writer
        writer.close()


@contextlib.contextmanager
def bodies_of_strangers() -> Iterator[None]:
    """Have addresses hold as much as they may, until strangers have all that they may."""
    addresses = [f"203.0.113.{n}" for n in range(FOR_STRANGERS // BODY_BYTES_BY_CLIENT_MAX)]
    for each in addresses:
        BODY_BUDGET.take(each, BODY_BYTES_BY_CLIENT_MAX)
    try:
        assert BODY_BUDGET.bytes_held == FOR_STRANGERS
        yield
    finally:
        for each in addresses:
            BODY_BUDGET.give_back(each, BODY_BYTES_BY_CLIENT_MAX)


async def held_more() -> None:
    """Return when bytes of a body are held beside those of strangers."""
    async with asyncio.timeout(WITHIN_S):
        while BODY_BUDGET.bytes_held <= FOR_STRANGERS:  # noqa: ASYNC110 - a budget notifies no one
            await asyncio.sleep(0.005)


def head_of(method: str, path: str, body: bytes, headers: dict[str, str]) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    length = f"Content-Length: {len(body)}\r\n"
    return f"{method} {path} HTTP/1.1\r\nHost: x\r\n{length}{lines}\r\n".encode()


async def answer(stream: Stream) -> tuple[int, bytes]:
    async with asyncio.timeout(WITHIN_S):
        head = await stream[0].readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].split()[0])
        return int(head.split()[1]), await stream[0].readexactly(length)


@pytest.mark.parametrize("is_cached", [False, True])
@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/order"), ("POST", "/orders"), ("DELETE", "/orders")]
)
async def test_attack_h5_bodies_of_strangers_leave_memory_for_those_of_a_known_key(
    rig: TradingRig,
    alice: Trader,
    stream: Stream,
    method: str,
    path: str,
    is_cached: bool,  # noqa: FBT001 - pytest passes it by position
) -> None:
    """Slow bodies of eight addresses once had an order refused that came in more than one piece."""
    order = alice.body(a_buy("alice"))
    sent = {"POST /order": order, "POST /orders": [order], "DELETE /orders": ["0x" + 64 * "0"]}
    body = json.dumps(sent[f"{method} {path}"]).encode()
    rig.context.key_ring.forget_all()
    if is_cached:
        assert (await alice.send("GET", "/data/orders")).status_code == 200
    with bodies_of_strangers():
        stream[1].write(head_of(method, path, body, alice.l2_headers(method, path, body)))
        stream[1].write(body[:10])
        await held_more()
        stream[1].write(body[10:])
        status, content = await answer(stream)
    assert status == 200, content
    assert BODY_BUDGET.bytes_held == 0


async def test_attack_h5_a_stranger_s_body_is_refused_while_strangers_have_all_that_they_may(
    alice: Trader, stream: Stream
) -> None:
    body = b"[]"
    with bodies_of_strangers():
        stream[1].write(head_of("POST", "/books", body, {}) + body[:1])
        status, content = await answer(stream)
    assert (status, json.loads(content)["code"]) == (503, "bodies_busy")
    assert str(FOR_STRANGERS) in json.loads(content)["error"]
    assert BODY_BUDGET.bytes_held == 0
    assert (await alice.send("GET", "/data/orders")).status_code == 200


async def test_a_stranger_s_body_is_read_again_once_others_are_complete(stream: Stream) -> None:
    body = b"[]"
    head = head_of("POST", "/books", body, {})
    with bodies_of_strangers():
        stream[1].write(head + body)
        assert (await answer(stream))[0] == 503
    stream[1].write(head + body)
    assert (await answer(stream))[0] == 200
