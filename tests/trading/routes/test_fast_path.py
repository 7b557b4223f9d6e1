"""The fast routes must give the same answers as the application that they bypass."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import httpx
import pytest
from tests.rigs.applications import serving
from tests.rigs.orders.builders import a_builder_of
from tests.rigs.trading import Trader, TradingRig, first_answer
from tests.rigs.values import (
    NOW_S,
    TOKEN,
    a_buy,
    a_sell,
    a_signed_order,
    an_address,
    an_asset,
    an_open_market,
    an_order_id,
    some_rules,
)
from typing_extensions import override

from foretell.app.http.connection_limits import ConnectionLimits
from foretell.app.http.fast_routes import FastRoutes, served_under
from foretell.domain.exchange.effects import MarketOpened
from foretell.domain.exchange.order import SignedOrder
from foretell.domain.exchange.snapshot import encode_state
from foretell.domain.values.hexadecimal import checksum_address
from foretell.edge.codec import encode_json
from foretell.edge.fast_route import BODY_BYTES_MAX as FAST_BYTES_MAX
from foretell.edge.fast_route import FastRequest, FastResponse, FastRoute, SendReply
from foretell.edge.telemetry import Receive, Scope, Send, Telemetry
from foretell.engine.protocol.requests import committed_effects
from foretell.store.public_reads.places import client_name
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

YES = an_asset(is_yes=True)
MEANT = ("content-type", "content-length", "retry-after")
ANSWER_WITHIN_S = 60.0


async def nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """An application that fails: no request of a fast route may reach it."""
    del receive, send
    raise AssertionError(scope["path"])


def fast_routes_of(rig: TradingRig) -> FastRoutes:
    telemetry = Telemetry(nothing, "fast", lambda: "an id")
    return served_under("/clob", fast_routes(rig.context), telemetry)


class OneWrite(httpx.AsyncBaseTransport):
    """Sends the head and the body of a request at once, as most clients do.

    httpx alone writes them one after the other. The framework gets a request of an unknown client whose body comes
    later than its head, and whether the server reads the two together depends on the event loop.
    """

    @override
    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request on a connection of its own, and return the answer."""
        headers = b"".join(b"%s: %s\r\n" % pair for pair in request.headers.raw)
        line = b"%s %s HTTP/1.1\r\n" % (request.method.encode(), request.url.raw_path)
        reader, writer = await asyncio.open_connection(request.url.host, request.url.port)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            writer.write(line + headers + b"\r\n" + await request.aread())
            status, *lines = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[:-2]
            answered = httpx.Headers(
                [(name, value) for name, _, value in (each.partition(b": ") for each in lines)]
            )
            body = await reader.readexactly(int(answered.get("content-length", "0")))
        writer.close()
        return httpx.Response(int(status.split()[1]), headers=answered, content=body)


@pytest.fixture
async def fast(rig: TradingRig) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the fast routes alone."""
    async with (
        serving(nothing, fast_routes_of(rig)) as host,
        httpx.AsyncClient(base_url=f"http://{host}/clob", transport=OneWrite()) as client,
    ):
        yield client


@pytest.fixture
async def whole(rig: TradingRig) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application with its fast routes."""
    served = served_under("", fast_routes(rig.context), Telemetry(rig.app, "x", lambda: "y"))
    async with (
        serving(rig.app, served) as host,
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False, timeout=60) as client,
    ):
        yield client


def compared(response: httpx.Response) -> tuple[int, Any, dict[str, str]]:
    headers = {name: response.headers[name] for name in MEANT if name in response.headers}
    return response.status_code, response.content, headers


async def both(
    rig: TradingRig, fast: httpx.AsyncClient, method: str, path: str, **fields: Any
) -> httpx.Response:
    """Send a request to both, and return the answer, which must be the same."""
    slow = await rig.client.request(method, path, **fields)
    answer = await fast.request(method, path, **fields)
    assert compared(answer) == compared(slow)
    return answer


@pytest.mark.parametrize(
    "query",
    [
        f"token_id={YES}",
        "token_id=12",
        f"token_id={12:078}",
    ],
)
async def test_books_are_the_same(rig: TradingRig, fast: httpx.AsyncClient, query: str) -> None:
    await rig.rest(a_buy("alice"))
    await both(rig, fast, "GET", f"/book?{query}")


async def test_orders_are_the_same(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader, bob: Trader
) -> None:
    await bob.placed(a_sell("bob"))
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    first = await rig.client.post("/order", content=body, headers=headers)
    again = await both(rig, fast, "POST", "/order", content=body, headers=headers)
    assert first_answer(again.json()) == first.json()
    assert again.json()["present"]["status"] == "MATCHED"


REFUSED: list[tuple[str, SignedOrder, dict[str, Any]]] = [
    ("malformed_order", a_buy("alice"), {"changed": {"side": "HOLD"}}),
    ("malformed_order", a_buy("alice"), {"changed": {"makerAmount": "-1"}}),
    ("malformed_order", a_buy("alice"), {"order_type": "GTX"}),
    ("malformed_order", a_buy("alice"), {"order_type": "FOK", "postOnly": True}),
    ("malformed_order", a_buy("alice"), {"changed": {"timestamp": "1"}}),
    ("unsupported_signature_type", a_buy("alice"), {"changed": {"signatureType": 4}}),
    ("owner_mismatch", a_buy("alice"), {"owner": "another"}),
    ("signer_not_caller", a_buy("bob"), {}),
    ("wrong_wallet", a_buy("alice", maker=an_address("bob")), {}),
    ("private_order", a_buy("alice", taker=an_address("bob")), {}),
    ("unknown_market", a_buy("alice", market="unknown"), {}),
    ("malformed_signature", a_buy("alice"), {"changed": {"signature": "0x" + "00" * 65}}),
    ("signer_mismatch", a_buy("alice"), {"changed": {"makerAmount": "2500001"}}),
    ("price_off_tick", a_signed_order("alice", maker_amount=2_525_000, taker_amount=5_000_000), {}),
    ("size_below_minimum", a_buy("alice", 50, TOKEN), {}),
    ("invalid_fee_rate", a_buy("alice", fee_rate_bps=1), {}),
    ("invalid_expiration", a_buy("alice", expiration_s=NOW_S - 1), {"order_type": "GTD"}),
    ("invalid_order_nonce", a_buy("alice", nonce=1), {}),
    ("insufficient_balance", a_buy("alice", 50, 10**9 * TOKEN), {}),
    ("post_only_would_cross", a_buy("alice", 60), {"postOnly": True}),
    ("fill_or_kill_unfilled", a_buy("alice", 60, 500 * TOKEN), {"order_type": "FOK"}),
    ("fill_and_kill_unmatched", a_buy("alice", 10), {"order_type": "FAK"}),
]


@pytest.mark.parametrize(
    ("code", "order", "fields"), REFUSED, ids=[f"{at} {row[0]}" for at, row in enumerate(REFUSED)]
)
async def test_every_refusal_of_an_order_is_the_same(
    rig: TradingRig,
    fast: httpx.AsyncClient,
    alice: Trader,
    code: str,
    order: SignedOrder,
    fields: dict[str, Any],
) -> None:
    await rig.rest(a_sell("bob", 55))
    before = encode_state(rig.host.engine.state)
    body = json.dumps(alice.body(order, **fields)).encode()
    headers = alice.l2_headers("POST", "/order", body)
    for _ in range(2):  # the nonce of the maker is known after the first time
        response = await both(rig, fast, "POST", "/order", content=body, headers=headers)
        assert response.json()["code"] == code
    assert encode_state(rig.host.engine.state) == before


@pytest.mark.parametrize("profile", [0, 1, 2])
@pytest.mark.parametrize("spell", [str, checksum_address, lambda text: "0X" + text[2:].upper()])
async def test_an_order_of_any_profile_and_spelling_is_the_same(
    rig: TradingRig,
    fast: httpx.AsyncClient,
    alice: Trader,
    profile: int,
    spell: Callable[[Any], str],
) -> None:
    order = a_buy("alice", profile=profile)
    changed = {"maker": spell(order.maker), "signer": spell(order.signer)}
    body = json.dumps(alice.body(order, changed=changed)).encode()
    headers = alice.l2_headers("POST", "/order", body)
    name = next(name for name in headers if name.upper().endswith("ADDRESS"))
    headers[name] = spell(headers[name].lower())
    placed = await fast.post("/order", content=body, headers=headers)
    assert placed.json()["orderID"] == an_order_id(order)
    again = await both(rig, fast, "POST", "/order", content=body, headers=headers)
    assert first_answer(again.json()) == placed.json()


async def test_cancels_are_the_same(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader
) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    body = json.dumps({"orderID": order_id}).encode()
    headers = alice.l2_headers("DELETE", "/order", body)
    await rig.client.request("DELETE", "/order", content=body, headers=headers)
    await both(rig, fast, "DELETE", "/order", content=body, headers=headers)


@pytest.mark.parametrize("method", ["POST", "DELETE"])
@pytest.mark.parametrize(
    "body", [b"", b"{}", b"null", b"x", b"\xff", b'{"orderID":5}', b'{"order":{}}']
)
async def test_refused_bodies_are_the_same(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader, method: str, body: bytes
) -> None:
    headers = alice.l2_headers(method, "/order", body)
    response = await both(rig, fast, method, "/order", content=body, headers=headers)
    assert response.status_code == 400


@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_callers_without_credentials_are_refused_the_same(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader, method: str
) -> None:
    assert (await both(rig, fast, method, "/order", content=b"{}")).status_code == 401
    headers = alice.l2_headers(method, "/order", b"another body")
    response = await both(rig, fast, method, "/order", content=b"{}", headers=headers)
    assert response.json()["code"] == "l2_signature_mismatch"


async def test_the_rest_of_a_fast_request_knows_its_client() -> None:
    """So its reads share the places of the client's other requests, and its transactions have deadlines."""

    async def answer(reply: SendReply) -> None:
        reply(FastResponse(200, encode_json(client_name.get())))

    routes = {("GET", "/book"): FastRoute(lambda _: True, lambda _, reply: answer(reply))}
    served = served_under("", routes, Telemetry(nothing, "fast", lambda: "an id"))
    async with (
        serving(nothing, served) as host,
        httpx.AsyncClient(base_url=f"http://{host}", trust_env=False, timeout=60) as client,
    ):
        assert (await client.get("/book")).json() == host.partition(":")[0]
    assert client_name.get() == ""


async def test_a_refusal_to_retry_later_is_the_same(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader
) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    await rig.close_engine()
    response = await both(rig, fast, "POST", "/order", content=body, headers=headers)
    assert (response.status_code, response.headers["retry-after"]) == (425, "1")
    assert response.json()["retry_after_seconds"] == 1


async def test_an_internal_error_is_the_same_and_reveals_nothing(
    rig: TradingRig, fast: httpx.AsyncClient, alice: Trader
) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    headers = alice.l2_headers("POST", "/order", body)
    rig.chain.failure = ZeroDivisionError("a secret place")
    response = await both(rig, fast, "POST", "/order", content=body, headers=headers)
    assert (response.status_code, response.json()["error"]) == (500, "Internal server error")
    assert "secret" not in response.text


async def test_an_internal_error_in_a_book_is_the_same(
    rig: TradingRig, fast: httpx.AsyncClient
) -> None:
    broken = MarketOpened(an_open_market("broken", rules=some_rules(ticks_per_one=0)))
    rig.context.books.on_committed(committed_effects(1, [broken]))
    token_id = an_asset(is_yes=True, market="broken")
    response = await both(rig, fast, "GET", f"/book?token_id={token_id}")
    assert (response.status_code, response.json()["error"]) == (500, "Internal server error")


@pytest.mark.parametrize(
    "query",
    [
        f"x=1&token_id={YES}&token_id=12",
        f"token_id=12&token_id={YES}",
        "token_id=",
        "",
        "token_id=0x12",
        "token_id=%D9%A3",
        f"token_id={YES}&strict=true&other=1",
        "token_id=%00",
    ],
)
async def test_unusual_queries_reach_the_application(
    rig: TradingRig, whole: httpx.AsyncClient, query: str
) -> None:
    await both(rig, whole, "GET", f"/book?{query}")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/order"),
        ("PUT", "/order"),
        ("POST", "/order/"),
        ("POST", "/order?x=1"),
        ("POST", "/book"),
        ("GET", "/booky"),
    ],
)
async def test_other_methods_and_paths_reach_the_application(
    rig: TradingRig, whole: httpx.AsyncClient, method: str, path: str
) -> None:
    response = await both(rig, whole, method, path)
    assert response.status_code in {401, 404, 405}
    assert set(response.json()) >= {"error", "code", "message"}


@pytest.mark.parametrize("size", [FAST_BYTES_MAX + 1, 100_000])
async def test_a_large_body_reaches_the_application(
    rig: TradingRig, whole: httpx.AsyncClient, size: int
) -> None:
    response = await both(rig, whole, "POST", "/order", content=b" " * size)
    assert response.status_code in {400, 401}


async def test_a_body_in_pieces_reaches_the_application(
    whole: httpx.AsyncClient, alice: Trader
) -> None:
    raw = json.dumps(alice.body(a_buy("alice"))).encode()

    async def pieces() -> AsyncIterator[bytes]:
        yield raw[:100]
        yield raw[100:]

    headers = alice.l2_headers("POST", "/order", raw)
    response = await whole.post("/order", content=pieces(), headers=headers)
    assert (response.status_code, response.json()["status"]) == (200, "live")
    assert "transfer-encoding" in response.request.headers


async def test_a_fast_route_repeats_the_callers_request_id_if_it_is_safe(
    fast: httpx.AsyncClient,
) -> None:
    path = f"/book?token_id={YES}"
    repeated = [
        (await fast.get(path, headers={"X-Request-ID": given})).headers["x-request-id"]
        for given in ("mine-1", "not mine", "a" * 65)
    ]
    assert repeated == ["mine-1", "an id", "an id"]
    assert (await fast.get(path)).headers["x-request-id"] == "an id"


class Slow:
    """A fast route that waits for the test before it answers with the body."""

    def __init__(self) -> None:
        self.goes = asyncio.Event()
        self.begun = asyncio.Event()

    async def answer(self, request: FastRequest, reply: SendReply) -> None:
        self.begun.set()
        await self.goes.wait()
        reply(FastResponse(200, request.body))


class Wire(NamedTuple):
    """A connection to a server with one slow fast route and an application that returns its path."""

    slow: Slow
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def body(self) -> bytes:
        """Return the body of the next answer."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            return await self.reader.readexactly(
                int(head.partition(b"content-length: ")[2].split()[0])
            )


async def return_path(scope: Scope, receive: Receive, send: Send) -> None:
    del receive
    body = scope["path"].encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    slow = Slow()
    route = FastRoute(lambda query: not query, slow.answer)
    fast_routes = served_under(
        "", {("POST", "/slow"): route}, Telemetry(return_path, "wire", lambda: "id")
    )
    async with serving(return_path, fast_routes) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        yield Wire(slow, reader, writer)
        slow.goes.set()
        writer.close()


SLOW = b"POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n"


async def test_answers_come_in_the_order_of_the_requests(wire: Wire) -> None:
    wire.writer.write(SLOW + b"ab")
    await wire.slow.begun.wait()
    wire.writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n" + SLOW + b"cd")
    wire.slow.goes.set()
    assert [await wire.body() for _ in range(3)] == [b"ab", b"/x", b"/slow"]


async def test_after_an_answer_of_the_application_a_request_is_answered_fast(wire: Wire) -> None:
    wire.slow.goes.set()
    for _ in range(3):
        wire.writer.write(b"GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await wire.body() == b"/x"
        wire.writer.write(SLOW + b"ab")
        assert await wire.body() == b"ab"


async def test_a_request_may_arrive_in_pieces(wire: Wire) -> None:
    wire.slow.goes.set()
    for piece in (SLOW, b"a", b"b"):
        wire.writer.write(piece)
        await asyncio.sleep(0.01)
    assert await wire.body() == b"ab"


async def test_a_head_may_arrive_in_pieces(wire: Wire) -> None:
    for byte in SLOW + b"ab":
        wire.writer.write(bytes([byte]))
        await asyncio.sleep(0.001)
    assert await wire.body() == b"/slow"


@pytest.mark.parametrize(
    "head",
    [
        b"POST /slow HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n",
        b"POST /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\n",
        b"POST /slow HTTP/1.0\r\n",
        b"POST /slow?a=1 HTTP/1.1\r\nHost: x\r\n",
    ],
)
async def test_an_unusual_request_reaches_the_application(wire: Wire, head: bytes) -> None:
    wire.writer.write(head + b"Content-Length: 2\r\n\r\nab")
    assert await wire.body() == b"/slow"


async def test_a_client_that_leaves_before_its_answer_harms_no_other(wire: Wire) -> None:
    wire.writer.write(SLOW + b"ab")
    await wire.slow.begun.wait()
    wire.writer.transport.abort()
    await asyncio.sleep(0)
    wire.slow.goes.set()
    reader, writer = await asyncio.open_connection(*wire.writer.get_extra_info("peername"))
    writer.write(SLOW + b"cd")
    assert await Wire(wire.slow, reader, writer).body() == b"cd"
    writer.close()


async def test_a_server_that_stops_still_sends_pending_answers() -> None:
    slow = Slow()
    fast_routes = served_under(
        "",
        {("POST", "/slow"): FastRoute(bool, slow.answer)},
        Telemetry(return_path, "wire", lambda: "id"),
    )
    async with serving(return_path, fast_routes) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        writer.write(SLOW.replace(b"/slow", b"/slow?q") + b"ab")
        await slow.begun.wait()
        asyncio.get_running_loop().call_later(0.2, slow.goes.set)
    answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"connection: close\r\n" in answer
    assert answer.endswith(b"\r\n\r\nab")
    writer.close()


async def test_a_connection_that_pauses_for_too_long_is_closed() -> None:
    slow = Slow()
    slow.goes.set()
    fast_routes = served_under(
        "",
        {("POST", "/slow"): FastRoute(lambda query: not query, slow.answer)},
        Telemetry(return_path, "wire", lambda: "id"),
    )
    async with serving(return_path, fast_routes, ConnectionLimits(keep_alive_s=5.0)) as host:
        name, port = host.split(":")
        reader, writer = await asyncio.open_connection(name, int(port))
        wire = Wire(slow, reader, writer)
        for _ in range(4):
            writer.write(SLOW + b"ab")
            assert await wire.body() == b"ab"
            await asyncio.sleep(1.5)
        async with asyncio.timeout(ANSWER_WITHIN_S):
            assert await reader.read() == b""
        writer.close()


async def test_an_order_with_a_builder_s_headers_is_attributed(
    fast: httpx.AsyncClient, alice: Trader, bob: Trader
) -> None:
    builder = await a_builder_of(bob)
    await bob.placed(a_sell("bob", 40, 5 * TOKEN))
    order = a_buy("alice", 40, 5 * TOKEN)
    refused = await builder.bring(alice, order, client=fast, changed={"PASSPHRASE": "0" * 64})
    assert (refused.status_code, refused.json()["code"]) == (401, "builder_headers_refused")
    answer = await builder.bring(alice, order, client=fast)
    assert answer.status_code == 200, answer.text
    page = (await builder.send("GET", "/builder/trades")).json()
    assert [each["takerOrderHash"] for each in page["data"]] == [answer.json()["orderID"]]
