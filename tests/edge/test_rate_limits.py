"""The table of limits against the routes of every API, through the applications themselves."""

from collections.abc import Mapping
from typing import Any, Final

import httpx
import pytest
from litestar import Litestar
from litestar.routes import HTTPRoute
from tests.rigs.applications import an_app

from foretell.creation import routes as creation
from foretell.creation.refusals import worker_body
from foretell.data import routes as data
from foretell.data.refusals import data_body
from foretell.discovery import routes as discovery
from foretell.discovery.refusals import discovery_body
from foretell.domain.errors.http import TooManyRequests
from foretell.edge.rate_limiter import RateLimiter
from foretell.edge.rate_limits import (
    BATCHES,
    CANCELS,
    DEFAULTS,
    SIGNED,
    TABLE,
    RateLimits,
    windows_with,
)
from foretell.edge.refusals import BodyOf
from foretell.edge.throttled_application import ApiLimits, ThrottledApplication, orders_in
from foretell.relayer import routes as relayer
from foretell.relayer.refusals import relayer_body
from foretell.trading.refusals import trading_body
from foretell.trading.routes import app as trading

pytestmark = pytest.mark.anyio

BUILD_BY_API: Final[Mapping[str, Any]] = {
    "trading": trading.build_app,
    "discovery": discovery.build_app,
    "creation": creation.build_app,
    "relayer": relayer.build_app,
    "data": data.build_app,
}
BODY_BY_API: Final[Mapping[str, BodyOf]] = {
    "trading": trading_body,
    "discovery": discovery_body,
    "creation": worker_body,
    "relayer": relayer_body,
    "data": data_body,
}
APPS: Final = {api: an_app(build, object()) for api, build in BUILD_BY_API.items()}


VERIFIES_KEYS: Final = frozenset(
    {
        "authenticate",
        "authenticate_brought",
        "authenticate_reader",
        "authenticate_reading_key",
        "owner_of",
        "caller_of",
        "_operate",
    }
)
"""The functions by which handlers verify the key of a request."""
SIGNED_IF_NEEDED: Final = frozenset(
    {"trading GET /limits", "trading GET /events", "relayer GET /transactions"}
)
"""Routes that anyone may call, and that verify a key if one is needed."""


def handlers_of(app: Litestar) -> Mapping[str, Any]:
    """Return the handlers of an API by their method and path, but of its documents."""
    return {
        f"{method} {route.path_format}": handler.fn
        for route in app.routes
        if isinstance(route, HTTPRoute) and not route.path.startswith(("/schema", "/docs"))
        for handler in route.route_handlers
        for method in sorted(handler.http_methods)
        if method != "OPTIONS"
    }


HANDLERS: Final = {
    f"{api} {route}": handler
    for api, app in APPS.items()
    for route, handler in handlers_of(app).items()
}


def throttled(api: str, limits: RateLimits) -> httpx.AsyncClient:
    """Return a client of an API whose context is missing: a handler that is carried out fails."""
    limiter = RateLimiter(api, limits, lambda: 0)
    app = ThrottledApplication(APPS[api], ApiLimits(limiter, BODY_BY_API[api]))
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False, client=("203.0.113.1", 9))
    return httpx.AsyncClient(transport=transport, base_url="http://api.example")


def test_the_rows_have_names_of_their_own() -> None:
    assert len({row.key for row in TABLE}) == len(TABLE) == len(DEFAULTS)


def test_every_route_of_the_table_exists() -> None:
    listed = {f"{row.api} {route}" for row in TABLE for route in row.routes or ()}
    assert (listed | BATCHES | CANCELS | SIGNED) - HANDLERS.keys() == set()


@pytest.mark.parametrize("route", sorted(HANDLERS))
def test_a_route_that_verifies_a_key_counts_for_it_and_every_other_for_the_address(
    route: str,
) -> None:
    verifies = not VERIFIES_KEYS.isdisjoint(HANDLERS[route].__code__.co_names)
    assert (route in SIGNED) is (verifies and route not in SIGNED_IF_NEEDED)


@pytest.mark.parametrize("api", BUILD_BY_API)
async def test_a_refused_request_has_the_apis_body_and_true_headers(api: str) -> None:
    limits = RateLimits(windows_with({api: "1/10s"}))
    bounds = limits.bounds._replace(requests=0)
    async with throttled(api, limits._replace(bounds=bounds)) as client:
        path = "/" if api == "trading" else "/limits"
        first = await client.get(path)
        answer = await client.get(path)
    assert first.status_code == 200
    assert first.headers["ratelimit-remaining"] == "0"
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "10"
    assert answer.headers["ratelimit-limit"] == "1"
    assert answer.headers["ratelimit-remaining"] == "0"
    assert answer.json() == BODY_BY_API[api](TooManyRequests(10))[1]


@pytest.mark.parametrize(
    ("api", "path", "limit"),
    [
        ("trading", "/", "50"),
        ("trading", "/ok", "50"),
        ("trading", "/ok/", "50"),
        ("trading", "/version", "5000"),
        ("trading", "/nothing-here", "5000"),
        ("discovery", "/status", "4000"),
        ("discovery", "/sports", "4000"),
    ],
)
async def test_answers_have_the_headers_of_their_row(api: str, path: str, limit: str) -> None:
    async with throttled(api, RateLimits(DEFAULTS)) as client:
        answers = [await client.get(path) for _ in range(2)]
    assert [answer.headers["ratelimit-limit"] for answer in answers] == [limit] * 2
    assert answers[1].headers["ratelimit-remaining"] == str(int(limit) - 2)
    assert answers[1].headers["ratelimit-reset"] == "10"
    assert "x-throttled-ms" not in answers[1].headers


async def test_the_use_of_a_caller_lists_every_window() -> None:
    async with throttled("discovery", RateLimits(DEFAULTS)) as client:
        await client.get("/status")
        uses = (await client.get("/limits")).json()
    assert len(uses) == 6
    assert uses[3] == {
        "row": "discovery GET /tags",
        "routes": ["GET /tags"],
        "limit": 200,
        "windowSeconds": 10,
        "remaining": 200,
        "resetSeconds": 0,
    }
    assert uses[-1] == {
        "row": "discovery",
        "routes": None,
        "limit": 4000,
        "windowSeconds": 10,
        "remaining": 3998,
        "resetSeconds": 10,
    }


@pytest.mark.spec(151)
async def test_changed_limits_change_no_path_and_no_version() -> None:
    limiter = RateLimiter("data", RateLimits(DEFAULTS), lambda: 0)
    api = ApiLimits(limiter, data_body)
    app = ThrottledApplication(APPS["data"], api)
    documents = []
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://api.example") as client:
        for changes in ({}, {"data": "7/10s"}):
            api.change(RateLimits(windows_with(changes)))
            documents.append((await client.get("/schema/openapi.json")).json())
        assert (await client.get("/")).headers["ratelimit-limit"] == "7"
    assert documents[0] == documents[1]
    paths = {path for path in documents[0]["paths"] if "leaderboard" in path or "builder" in path}
    assert paths >= {"/v1/leaderboard", "/v1/builders/leaderboard", "/v1/builders/volume"}
    own = {"/builders/leaderboard", "/builders/volume"}
    assert all(path.startswith("/v1/") for path in paths - own)


@pytest.mark.parametrize(
    ("body", "orders"),
    [(b"[{},{},{}]", 3), (b'["a"]', 1), (b"[]", 1), (b"{}", 1), (b"[" * 9999, 1), (b"\xff", 1)],
)
def test_the_orders_of_a_batch_are_counted(body: bytes, orders: int) -> None:
    assert orders_in(body) == orders


def test_limits_are_changed_by_the_names_of_their_rows() -> None:
    changed = windows_with({"trading GET /book": "7/1min", "data": "off"})
    assert [limit.text for limit in changed["trading GET /book"]] == ["7/1min"]
    assert changed["data"] == ()
    assert changed["trading"] == DEFAULTS["trading"]
    assert set(windows_with("off").values()) == {()}


@pytest.mark.parametrize(
    "changes", [{"trading GET /books-all": "1/1s"}, {"data": "many"}, "on", "1/1s"]
)
def test_unknown_rows_and_malformed_limits_are_refused(changes: Any) -> None:
    with pytest.raises(ValueError, match=r"must|row"):
        windows_with(changes)
