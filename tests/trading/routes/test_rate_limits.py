"""The rate limits of the trading API, on the fast path and in the framework, over HTTP."""

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, NamedTuple

import httpx
import pytest
from tests.rigs.applications import serving
from tests.rigs.clock import Clock
from tests.rigs.orders.builders import PATH, a_builder_of
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_buy, an_asset

from foretell.app.clock_and_ids import monotonic_ms
from foretell.app.http.fast_routes import served_under
from foretell.domain.values.credentials import SKEW_PAST_S
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import (
    DEFAULTS,
    WAIT_S_MAX,
    RateLimits,
    WaitingBounds,
    windows_with,
)
from foretell.edge.telemetry import Telemetry
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication
from foretell.trading.refusals import trading_body
from foretell.trading.routes.fast_path import fast_routes

pytestmark = pytest.mark.anyio

BOOK = f"/book?token_id={an_asset(is_yes=True)}"
ORDER = json.dumps({"orderID": "0x" + 64 * "0"}).encode()
FAST_AND_SLOW = ["/order", "/order?x"]
"""A path that the fast path takes, and one that it passes to the framework."""
WINDOW_S = 10
WITHIN_S = 60.0
CLOCK_STEP_S = 0.01
LIMIT, REMAINING = "ratelimit-limit", "ratelimit-remaining"


class Limited(NamedTuple):
    """A served trading API, its limiter, and a client of it."""

    host: str
    limiter: RateLimiter
    http: httpx.AsyncClient


@contextlib.asynccontextmanager
async def limited(
    rig: TradingRig, limits: RateLimits, now_ms: Callable[[], int]
) -> AsyncIterator[Limited]:
    limiter = RateLimiter("trading", limits, now_ms)
    api = ApiLimits(limiter, trading_body)
    app = Telemetry(ThrottledApplication(rig.app, api), "limited", lambda: "an id")
    routes = served_under("", fast_routes(rig.context), app, api)
    async with (
        serving(app, routes) as host,
        httpx.AsyncClient(
            base_url=f"http://{host}",
            trust_env=False,
            timeout=60,
            limits=httpx.Limits(max_connections=200),
        ) as http,
    ):
        yield Limited(host, limiter, http)


@pytest.fixture
def clock() -> Clock:
    """The clock of the limiter, so that no window ends because the machine is slow."""
    return Clock()


@pytest.fixture
async def published(rig: TradingRig, clock: Clock) -> AsyncIterator[Limited]:
    async with limited(rig, RateLimits(DEFAULTS), clock.now_ms) as served:
        yield served


def changed(wait_ms: int = 15_000, requests: int = 5_000, **proxies: Any) -> Any:
    bounds = WaitingBounds(wait_ms=wait_ms, requests=requests)

    def limits(**rows: str) -> RateLimits:
        names = {f"trading {name.replace('_', ' /')}": text for name, text in rows.items()}
        return RateLimits(windows_with(names), bounds, **proxies)

    return limits


async def signed(
    trader: Trader, http: httpx.AsyncClient, method: str, path: str, body: bytes = b""
) -> httpx.Response:
    headers = trader.l2_headers(method, path.partition("?")[0], body)
    return await http.request(method, path, content=body, headers=headers)


async def chunked(trader: Trader, http: httpx.AsyncClient, body: bytes) -> httpx.Response:
    """Send an order so that the framework answers it."""

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    headers = trader.l2_headers("POST", "/order", body)
    return await http.post("/order", content=pieces(), headers=headers)


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        pytest.param("GET", "/", "50", marks=pytest.mark.spec(129)),
        pytest.param("GET", BOOK, "200", marks=pytest.mark.spec(130)),
        pytest.param("GET", "/book", "200", marks=pytest.mark.spec(130)),
        pytest.param("POST", "/books", "80", marks=pytest.mark.spec(131)),
        pytest.param("GET", "/price", "200", marks=pytest.mark.spec(132)),
        pytest.param("POST", "/prices", "80", marks=pytest.mark.spec(133)),
        pytest.param("GET", "/midpoint", "200", marks=pytest.mark.spec(134)),
        pytest.param("GET", "/prices-history", "100", marks=pytest.mark.spec(135)),
        pytest.param("POST", "/batch-prices-history", "80", marks=pytest.mark.spec(136)),
        pytest.param("GET", "/time", "5000", marks=pytest.mark.spec(128)),
    ],
)
async def test_a_public_route_counts_in_its_row(
    published: Limited, method: str, path: str, limit: str
) -> None:
    answers = [await published.http.request(method, path) for _ in range(2)]
    assert [answer.headers[LIMIT] for answer in answers] == [limit, limit]
    assert answers[1].headers[REMAINING] == str(int(limit) - 2)


@pytest.mark.parametrize("path", ["//book", "/book//", "///book/", "/%2Fbook", "/%62ook", "/book/"])
async def test_no_spelling_of_a_path_evades_its_row(published: Limited, path: str) -> None:
    """A finding: `//book` was answered as the book, and counted in the general row only."""
    query = f"?token_id={an_asset(is_yes=True)}"
    await published.http.get(f"/book{query}")
    target = {"target": f"{path}{query}".encode()}  # as it is: a URL would be normalized
    answer = await published.http.get("/", extensions=target)
    assert (answer.status_code, answer.headers[LIMIT], answer.headers[REMAINING]) == (
        200,
        "200",
        "198",
    )


@pytest.mark.parametrize("path", ["/./book", "/trades/../book", "/%2E/book"])
async def test_a_path_with_dots_is_no_route(published: Limited, path: str) -> None:
    """A finding: the client had resolved the dots, and the server never saw them."""
    target = {"target": f"{path}?token_id={an_asset(is_yes=True)}".encode()}
    answer = await published.http.get("/", extensions=target)
    assert (answer.status_code, answer.headers[LIMIT], answer.headers[REMAINING]) == (
        404,
        "5000",
        "4999",
    )


@pytest.mark.parametrize(
    ("route", "body", "limit", "count"),
    [
        pytest.param("GET /trades", b"", 150, 1, marks=pytest.mark.spec(137)),
        pytest.param("GET /data/trades", b"", 150, 1, marks=pytest.mark.spec(137)),
        pytest.param("POST /order", b"{}", 2400, 1, marks=pytest.mark.spec(138)),
        pytest.param("POST /orders", b"[{},{},{}]", 2400, 3, marks=pytest.mark.spec(138)),
        pytest.param("DELETE /order", ORDER, 2400, 1, marks=pytest.mark.spec(139)),
        pytest.param("DELETE /orders", b'["a","b"]', 2400, 2, marks=pytest.mark.spec(139)),
        pytest.param("DELETE /cancel-all", b"", 2400, 1, marks=pytest.mark.spec(139)),
        pytest.param("DELETE /cancel-market-orders", b"{}", 2400, 1, marks=pytest.mark.spec(139)),
    ],
)
async def test_a_signed_route_counts_for_its_account_in_its_row(
    published: Limited, alice: Trader, route: str, body: bytes, limit: int, count: int
) -> None:
    method, path = route.split(" ")
    answer = await signed(alice, published.http, method, path, body)
    assert (answer.headers[LIMIT], answer.headers[REMAINING]) == (str(limit), str(limit - count))
    uses = (await signed(alice, published.http, "GET", "/limits")).json()
    used = {
        use["row"]: use["limit"] - use["remaining"] for use in uses if use["windowSeconds"] == 10
    }
    assert used["trading"] == count
    assert count in [used[row] for row in used if row != "trading"]
    address = (await published.http.get("/limits")).json()
    assert address[-1]["limit"] - address[-1]["remaining"] == 2


async def test_an_order_in_the_framework_and_on_the_fast_path_count_together(
    published: Limited, alice: Trader
) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    fast = await signed(alice, published.http, "POST", "/order", body)
    slow = await chunked(alice, published.http, body)
    assert (fast.status_code, slow.status_code) == (200, 200)
    assert [fast.headers[REMAINING], slow.headers[REMAINING]] == ["2399", "2398"]


@pytest.mark.case("C-15")
@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_a_signature_that_does_not_verify_counts_for_the_address(
    published: Limited, alice: Trader, path: str
) -> None:
    headers = alice.l2_headers("POST", "/order", b"{}")
    answer = await published.http.post(path, content=b'{"a":1}', headers=headers)
    assert answer.status_code == 401
    assert answer.headers[REMAINING] == "2399"
    assert published.limiter.use(alice.address)[-1].remaining == 5_000
    assert published.limiter.use("127.0.0.1")[-1].remaining == 4_999


@pytest.mark.deviation(1)
@pytest.mark.case("C-15")
@pytest.mark.parametrize(
    ("row", "method", "path"),
    [
        ("GET_book", "GET", BOOK),
        ("GET_book", "GET", "/book?token_id=1&x=2"),
        ("GET_time", "GET", "/time"),
    ],
)
async def test_over_the_limit_an_address_waits_and_then_is_refused(
    rig: TradingRig, clock: Clock, row: str, method: str, path: str
) -> None:
    rows = {"GET_book": "2/1s"} if row == "GET_book" else {}
    limits = changed(wait_ms=1_500)(**rows)
    if not rows:
        limits = limits._replace(windows_by_row=windows_with({"trading": "2/1s"}))
    async with limited(rig, limits, clock.now_ms) as served:
        answers = await over_the_limit(
            served, clock, [served.http.request(method, path) for _ in range(6)]
        )
    refused = [answer for answer in answers if answer.status_code == 429]
    waited = [answer for answer in answers if "x-throttled-ms" in answer.headers]
    assert len(refused) == 2
    assert [answer.headers["x-throttled-ms"] for answer in waited] == ["1000", "1000"]
    for answer in refused:
        assert answer.json()["code"] == "too_many_requests"
        assert answer.headers["retry-after"] == str(answer.json()["retry_after_seconds"]) == "2"
        assert answer.headers[REMAINING] == "0"


@pytest.mark.parametrize("path", FAST_AND_SLOW)
@pytest.mark.parametrize("method", ["POST", "DELETE"])
async def test_over_the_limit_a_key_waits_and_then_is_refused(
    rig: TradingRig, clock: Clock, alice: Trader, method: str, path: str
) -> None:
    limits = changed(wait_ms=1_500)(POST_order="2/1s", DELETE_order="2/1s")
    async with limited(rig, limits, clock.now_ms) as served:
        answers = await over_the_limit(
            served, clock, [signed(alice, served.http, method, path, ORDER) for _ in range(6)]
        )
    statuses = sorted(answer.status_code for answer in answers)
    assert statuses.count(429) == 2
    assert sum("x-throttled-ms" in answer.headers for answer in answers) == 2


async def over_the_limit(
    served: Limited, clock: Clock, requests: list[Coroutine[Any, Any, httpx.Response]]
) -> list[httpx.Response]:
    """Return the answers to requests of one moment, of which two wait for a second and the others do not."""
    sending = [asyncio.create_task(request) for request in requests]
    async with asyncio.timeout(WITHIN_S):
        while sum(each.done() for each in sending) < len(sending) - 2:  # noqa: ASYNC110 - of any
            await asyncio.sleep(0.01)
        await until_waiting(served.limiter, 2)
    clock.move_s(1)
    return await asyncio.gather(*sending)


@pytest.mark.case("C-13")
@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_a_key_that_is_revoked_while_its_order_waits_is_refused(
    rig: TradingRig, clock: Clock, alice: Trader, path: str
) -> None:
    async with limited(rig, changed()(POST_order="1/1s"), clock.now_ms) as served:
        await signed(alice, served.http, "POST", path, b"{}")
        waiting = asyncio.create_task(signed(alice, served.http, "POST", path, b"{}"))
        await until_waiting(served.limiter)
        revoked = await signed(alice, served.http, "DELETE", "/auth/api-key")
        assert revoked.status_code == 200
        clock.move_s(1)
        answer = await waiting
    assert answer.status_code == 401
    assert answer.headers["x-throttled-ms"] == "1000"


async def until_waiting(limiter: RateLimiter, requests: int = 1) -> None:
    """Return when so many requests wait for their turn."""
    async with asyncio.timeout(WITHIN_S):
        while waiting_of(limiter) != requests:  # noqa: ASYNC110 - the limiter has no event for it
            await asyncio.sleep(0.01)


def waiting_of(limiter: RateLimiter) -> int:
    return limiter.others.requests + limiter.cancels.requests


@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_a_builder_s_time_of_signing_is_judged_before_the_owner_s_order_waits(
    rig: TradingRig, clock: Clock, alice: Trader, bob: Trader, path: str
) -> None:
    builder = await a_builder_of(bob)
    async with limited(rig, changed()(POST_order="1/1s"), clock.now_ms) as served:
        await signed(alice, served.http, "POST", path, b"{}")
        bringing = builder.bring(alice, a_buy("alice"), path=path, client=served.http)
        waiting = asyncio.create_task(bringing)
        await until_waiting(served.limiter)
        rig.clock.at_ms += 1_000 * (SKEW_PAST_S + 1)
        clock.move_s(1)
        answer = await waiting
    assert (answer.status_code, answer.json().get("status")) == (200, "live"), answer.text
    assert int(answer.headers["x-throttled-ms"]) > 0


@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_a_builder_s_key_that_is_deleted_while_the_order_waits_attributes_nothing(
    rig: TradingRig, clock: Clock, alice: Trader, bob: Trader, path: str
) -> None:
    builder = await a_builder_of(bob)
    async with limited(rig, changed()(POST_order="1/1s"), clock.now_ms) as served:
        await signed(alice, served.http, "POST", path, b"{}")
        bringing = builder.bring(alice, a_buy("alice"), path=path, client=served.http)
        waiting = asyncio.create_task(bringing)
        await until_waiting(served.limiter)
        assert (await builder.send("DELETE", PATH)).status_code == 200
        clock.move_s(1)
        answer = await waiting
    assert (answer.status_code, answer.json()["code"]) == (401, "builder_headers_refused")


@pytest.mark.parametrize("path", FAST_AND_SLOW)
async def test_an_order_whose_client_has_gone_is_not_placed(
    rig: TradingRig, clock: Clock, alice: Trader, path: str
) -> None:
    body = json.dumps(alice.body(a_buy("alice"))).encode()
    async with limited(rig, changed()(POST_order="1/1s"), clock.now_ms) as served:
        await signed(alice, served.http, "POST", path, b"{}")
        async with httpx.AsyncClient(
            base_url=served.http.base_url, trust_env=False, timeout=WITHIN_S
        ) as hasty:
            placing = asyncio.create_task(signed(alice, hasty, "POST", path, body))
            await until_waiting(served.limiter)
            placing.cancel()
            await asyncio.gather(placing, return_exceptions=True)
        clock.move_s(1)
        await until_waiting(served.limiter, 0)
        page = (await signed(alice, served.http, "GET", "/data/orders")).json()
    assert page["data"] == []


@pytest.mark.parametrize("path", [BOOK, "/time"])
async def test_behind_a_trusted_proxy_each_forwarded_address_is_a_client(
    rig: TradingRig, clock: Clock, path: str
) -> None:
    limits = changed(trusted_proxies=("127.0.0.0/8",))(GET_book="200/10s")
    async with limited(rig, limits, clock.now_ms) as served:
        for address in ("203.0.113.7", "203.0.113.8"):
            answer = await served.http.get(path, headers={"X-Forwarded-For": f"1.2.3.4, {address}"})
            assert int(answer.headers[LIMIT]) - int(answer.headers[REMAINING]) == 1
        assert [served.limiter.use(name)[-1].remaining for name in ("203.0.113.7", "1.2.3.4")] == [
            4_999,
            5_000,
        ]


@pytest.mark.deviation(1)
@pytest.mark.spec(126, 129)
async def test_a_real_burst_of_twice_the_row_is_answered_in_full(rig: TradingRig) -> None:
    async with limited(rig, RateLimits(DEFAULTS), monotonic_ms) as served:
        started_s = time.monotonic()

        async def get() -> tuple[httpx.Response, float]:
            answer = await served.http.get("/")
            return answer, time.monotonic() - started_s

        answers = await asyncio.gather(*(get() for _ in range(100)))
    waited = [(int(answer.headers.get("x-throttled-ms", 0)), at_s) for answer, at_s in answers]
    assert [answer.status_code for answer, _ in answers] == [200] * 100
    assert sum(ms == 0 for ms, _ in waited) == 50
    # A busy machine delays answers, but admits none of the others in the window of the first.
    late_s = [at_s for ms, at_s in waited if ms > 0]
    assert min(late_s) >= WINDOW_S - CLOCK_STEP_S
    assert max(ms for ms, _ in waited) < WAIT_S_MAX * 1000


async def test_an_opened_stream_counts_for_its_address(published: Limited) -> None:
    handshake = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }
    async with published.http.stream("GET", "/ws/market", headers=handshake) as answer:
        assert answer.status_code == 101
    assert published.limiter.use("127.0.0.1")[-1].remaining == 4_999
