"""Requests that no rate limit bounds are paced by their client, also where their connection is not."""

import asyncio
from collections.abc import Mapping
from typing import Any, Final

import pytest
from litestar import Litestar, post
from tests.app.http.test_connection_places import GET, connect, status_of
from tests.app.http.test_request_pace import (
    BURST,
    EARLY,
    PER_S,
    PacedServer,
    close,
    showing_a_key,
)

from foretell.app.http.request_pace import COST_S_MAX, LOOP_BURST_S, LOOP_SHARE
from foretell.data.refusals import data_body
from foretell.domain.values.rate_windows import RateLimit
from foretell.edge.codec import AT_ONCE_BYTES, AnyRequest, read_body
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import RateLimits
from foretell.edge.telemetry import Receive, Scope, Send
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication

PROXIES: Final = ("127.0.0.1",)
NO_ROWS: Final[Mapping[str, tuple[RateLimit, ...]]] = {}
WIDE: Final = {"data": (RateLimit(requests=10**6, window_ms=10_000),)}
PARSED_S: Final = 0.1
SLOW: Final = GET.replace(b"/", b"/slow", 1)


class LimitedServer(PacedServer):
    """A server of an application behind its limits, which counts the time of slow requests and of bodies."""

    def __init__(
        self, proxies: tuple[str, ...] = (), rows: Mapping[str, tuple[RateLimit, ...]] = NO_ROWS
    ) -> None:
        super().__init__(proxies)
        self.read_at_s: list[float] = []
        """When each body had been read."""
        route = post("/", status_code=200)(self._parse)
        self._parsing: Any = Litestar([route], openapi_config=None, request_max_body_size=None)
        limits = RateLimits(rows, trusted_proxies=proxies)
        limiter = RateLimiter("data", limits, lambda: round(self.loop.time() * 1000))
        limited = ApiLimits(limiter, data_body)
        self.app = ThrottledApplication(self._answer, limited, lambda: self.busy_s)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == "/slow":
            self.busy_s += 1.0
        await (self._parsing if scope["method"] == "POST" else showing_a_key)(scope, receive, send)

    async def _parse(self, request: AnyRequest) -> None:
        await read_body(request)
        self.read_at_s.append(self.loop.time())
        self.busy_s += PARSED_S


def forwarded(client: str) -> bytes:
    return GET.replace(b"\r\n\r\n", f"\r\nX-Forwarded-For: {client}\r\n\r\n".encode())


def test_attack_h1_clients_behind_a_proxy_are_paced_one_by_one() -> None:
    """A finding: behind a proxy nothing bounded the requests to the APIs without limits."""
    server = LimitedServer(PROXIES)

    async def flood() -> None:
        streams = [await connect(server.host) for _ in range(5)]
        each = (BURST + EARLY) // len(streams)
        flooding = asyncio.gather(
            *(server.asked(stream, each, forwarded("10.0.0.1")) for stream in streams)
        )
        await asyncio.sleep(1.0)
        other = await connect(server.host)
        assert await server.asked(other, BURST, forwarded("10.0.0.2")) < 0.1
        assert not flooding.done()
        assert (EARLY - 1) / PER_S <= max(await flooding) <= EARLY / PER_S + 0.1
        close(*streams, other)

    server.run(flood())


@pytest.mark.parametrize("rows", [NO_ROWS, WIDE], ids=["without limits", "within limits"])
def test_attack_h1_a_key_frees_from_the_pace_where_limits_bound_it(
    rows: Mapping[str, tuple[RateLimit, ...]],
) -> None:
    """A finding: keys cost nothing, and one freed its connections from every bound."""
    server = LimitedServer(rows=rows)
    signed = GET.replace(b"/", b"/?key", 1)

    async def ask() -> None:
        stream = await connect(server.host)
        took_s = await server.asked(stream, BURST + EARLY, signed)
        if rows:
            assert took_s < 0.1
        else:
            assert (
                took_s >= (EARLY - 2) / PER_S
            )  # the first one had a turn before it showed the key
        close(stream)

    server.run(ask())


@pytest.mark.parametrize("proxies", [(), PROXIES], ids=["direct", "proxied"])
def test_a_request_that_takes_long_counts_whole(proxies: tuple[str, ...]) -> None:
    """A finding: each counted as two milliseconds, however long it held everything up."""
    server = LimitedServer(proxies, WIDE)

    async def ask() -> None:
        stream = await connect(server.host)
        assert await server.asked(stream, 1, SLOW) < 0.1
        owed_s = (1.0 - COST_S_MAX - LOOP_BURST_S) / LOOP_SHARE
        waited_s = await server.asked(stream, 1)
        assert waited_s == pytest.approx(0.0 if proxies else owed_s, abs=0.02)
        close(stream)

    server.run(ask())


@pytest.mark.parametrize("size", [AT_ONCE_BYTES + 1, AT_ONCE_BYTES], ids=["large", "small"])
def test_attack_h1_bodies_that_end_at_the_same_moment_are_parsed_in_turn(size: int) -> None:
    """A finding: a thousand that were kept back and ended together held up the event loop for seconds."""
    server, number = LimitedServer(), 10
    head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n".encode()

    async def send() -> None:
        streams = [await connect(server.host) for _ in range(number)]
        for _, writer in streams:
            writer.write(head)
        await asyncio.sleep(1.0)
        answers = [asyncio.create_task(status_of(each, bytes(size))) for each in streams]
        assert await asyncio.gather(*answers) == [200] * number
        close(*streams)

    server.run(send())
    if size > AT_ONCE_BYTES:
        for count, at_s in enumerate(server.read_at_s):
            assert at_s >= 1.0 + (count * PARSED_S - LOOP_BURST_S) / LOOP_SHARE - 0.02
    assert len(server.read_at_s) == number
