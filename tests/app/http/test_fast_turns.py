"""Requests of strangers on fast routes begin in turns, as all others of theirs do."""

from collections import Counter
from collections.abc import Mapping
from typing import Final

import pytest
from tests.app.http.test_connection_places import application, connect
from tests.app.http.test_request_pace import OTHER, close, connected_from
from tests.rigs.applications import serving
from tests.rigs.clock import CountingLoop, run_virtually

from foretell.app.http.connection_places import ConnectionPlaces, PlaceLimits
from foretell.app.http.fast_routes import served_under
from foretell.app.http.request_pace import LoopClock
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply, anyone
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry

CONNECTIONS: Final = 20
KEY: Final = b"POLY_API_KEY: known\r\n"
LIMITS: Final = PlaceLimits(requests_burst=10, requests_per_s=10)


class FastServer:
    """A server with a fast route, and the requests that began in each turn of its loop, answered fast or not."""

    def __init__(self, limits: PlaceLimits = PlaceLimits()) -> None:  # noqa: B008 - it is immutable
        self.loop, self.host = CountingLoop(), ""
        self.fast, self.slow = Counter[int](), Counter[int]()
        self.places = ConnectionPlaces(limits, clock=LoopClock(self.loop.time, lambda: 0.0))

    def reply(self, request: FastRequest, reply: SendReply) -> None:
        del request
        self.fast[self.loop.turns] += 1
        reply(FastResponse(200, b"ok"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.slow[self.loop.turns] += 1
        await application(scope, receive, send)

    @staticmethod
    def names_key(headers: Mapping[str, str]) -> bool:
        return headers.get("poly_api_key") == "known"

    def ask(self, request: bytes, connections: int = CONNECTIONS) -> float:
        """Send a request on each of some connections of two addresses at once; return the seconds until all answers."""
        route = FastRoute(lambda _: True, self.reply, anyone)
        keyed = route._replace(may_send=self.names_key)
        telemetry = Telemetry(self, "fast", lambda: "id")
        routes = served_under("", {("GET", "/book"): route, ("POST", "/order"): keyed}, telemetry)
        took_s = 0.0

        async def asked() -> None:
            nonlocal took_s
            async with serving(self, routes, places=self.places) as self.host:
                half = connections // 2
                streams = [await connect(self.host) for _ in range(half)]
                streams += [await connected_from(self.host, OTHER) for _ in range(half)]
                began_s = self.loop.time()
                for _, writer in streams:
                    writer.write(request)
                for reader, _ in streams:
                    head = await reader.readuntil(b"\r\n\r\n")
                    assert head.startswith(b"HTTP/1.1 200")
                took_s = self.loop.time() - began_s
                close(*streams)

        run_virtually(asked(), self.loop)
        return took_s

    @property
    def begun(self) -> Counter[int]:
        return self.fast + self.slow


def a_request(line: bytes, headers: bytes = b"") -> bytes:
    return line + b" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n" + headers + b"\r\n"


@pytest.mark.parametrize("line", [b"GET /book", b"POST /order"])
def test_attack_h1_one_request_of_strangers_on_fast_routes_begins_in_a_turn_of_the_loop(
    line: bytes,
) -> None:
    """A finding: they had no turns, and a thousand that came together held up everything else."""
    server = FastServer()
    server.ask(a_request(line))
    assert (max(server.begun.values()), server.begun.total()) == (1, CONNECTIONS)
    assert server.fast.total() >= 1


def test_attack_h1_requests_of_strangers_on_fast_routes_have_the_pace_of_their_address() -> None:
    server = FastServer(LIMITS)
    assert server.ask(a_request(b"GET /book"), 40) >= 0.9
    assert server.begun.total() == 40


def test_orders_that_name_a_known_key_wait_for_no_turn() -> None:
    """Of a trader whose connection is new, beside strangers'."""
    server = FastServer()
    server.ask(a_request(b"POST /order", KEY))
    assert server.fast.total() == CONNECTIONS
    assert max(server.fast.values()) > 1
