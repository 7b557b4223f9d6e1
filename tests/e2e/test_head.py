"""HEAD works where GET does: every route of every API is asked by both."""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx
import pytest
from litestar import Litestar
from tests.rigs.applications import BuildApp, an_app
from tests.rigs.installation import Running

from foretell.creation import routes as creation
from foretell.data import routes as data
from foretell.discovery import routes as discovery
from foretell.domain.contracts.deployment import parse_deployment
from foretell.domain.contracts.sandbox_accounts import AccountRole
from foretell.relayer import routes as relayer
from foretell.sandbox.ready import Ready
from foretell.sdk.http import HttpClient
from foretell.sdk.trading import TradingClient, Wallet
from foretell.trading.routes import app as trading

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("e2e")]

BUILD_BY_PREFIX: Mapping[str, BuildApp] = {
    "/clob": trading.build_app,
    "/create-market": creation.build_app,
    "/relayer": relayer.build_app,
    "/data": data.build_app,
    "/discovery": discovery.build_app,
}
VARYING = {"date", "x-request-id", "ratelimit-remaining", "ratelimit-reset", "x-throttled-ms"}
SUCCEEDING_MIN = {"/clob": 45, "/create-market": 5, "/relayer": 6, "/data": 18, "/discovery": 20}
"""How many routes of each API succeed with the parameters below, at least."""


def get_paths(app: Litestar) -> list[str]:
    """Return the paths of the GET routes, with the names of their parameters in braces."""
    return sorted(
        route.path_format
        for route in app.routes
        if hasattr(route, "methods") and "GET" in route.methods
    )


class Walker:
    """A client that signs each request, and names what exists in it."""

    def __init__(self, trader: TradingClient, ready: Ready, base_url: str) -> None:
        self._trader = trader
        self._base_url = base_url
        address, market = trader.wallet.address, ready.market
        self._parameters = {
            "token_id": market.token_yes,
            "asset_id": market.token_yes,
            "asset_type": "COLLATERAL",
            "side": "BUY",
            "market": market.condition_id,
            "condition_id": market.condition_id,
            "slug": market.slug,
            "q": "market",
            "user": address,
            "address": address,
            "creator": address,
            "interval": "1d",
            "type": "SAFE",
        }

    async def ask(self, http: httpx.AsyncClient, method: str, prefix: str, path: str) -> Any:
        for name in (*self._parameters, "id", "order_id", "blob_id"):
            path = path.replace(f"{{{name}}}", self._parameters.get(name, "1"))
        headers = self._trader.l2_headers(method, path)
        url = f"{self._base_url}{prefix}{path}"
        return await http.request(method, url, headers=headers, params=self._parameters)


@pytest.fixture
async def walker(shared: Running) -> AsyncIterator[Walker]:
    ready = await shared.ready()
    deployment = parse_deployment((shared.data / "deployment.json").read_bytes())
    wallet = Wallet(ready.account(AccountRole.TRADER).key)
    separators = deployment.separators()
    async with HttpClient(ready.clob) as http:
        trader = TradingClient(http, wallet, ready.chain_id, separators, lambda: int(time.time()))
        await trader.create_key()
        yield Walker(trader, ready, f"http://127.0.0.1:{shared.port}")


def kept(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in VARYING}


@pytest.mark.parametrize("prefix", BUILD_BY_PREFIX)
async def test_head_is_answered_as_get_without_the_body(walker: Walker, prefix: str) -> None:
    paths = get_paths(an_app(BUILD_BY_PREFIX[prefix], None))
    succeeding = 0
    async with httpx.AsyncClient(trust_env=False) as http:
        for path in paths:
            got = await walker.ask(http, "GET", prefix, path)
            head = await walker.ask(http, "HEAD", prefix, path)
            assert (path, head.status_code) == (path, got.status_code)
            assert (path, kept(head)) == (path, kept(got))
            assert head.content == b""
            assert int(head.headers["content-length"]) == len(got.content)
            assert got.status_code < 500, (path, got.text)
            succeeding += got.status_code == 200
    assert succeeding >= SUCCEEDING_MIN[prefix], f"{succeeding} of {len(paths)}"


@pytest.mark.parametrize("path", ["/", "/metrics", "/nowhere"])
async def test_the_gateway_answers_head_too(shared: Running, path: str) -> None:
    await shared.ready()
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{shared.port}{path}"
        got, head = await http.get(url), await http.head(url)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


async def test_a_signature_of_get_is_none_of_head(walker: Walker, shared: Running) -> None:
    headers = walker._trader.l2_headers("GET", "/data/orders")
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{shared.port}/clob/data/orders"
        assert (await http.get(url, headers=headers)).status_code == 200
        assert (await http.head(url, headers=headers)).status_code == 401


async def test_head_of_another_route_names_head(shared: Running) -> None:
    await shared.ready()
    async with httpx.AsyncClient(trust_env=False) as http:
        url = f"http://127.0.0.1:{shared.port}/clob"
        refused = await http.head(f"{url}/orders")
        allowed = await http.delete(f"{url}/time")
    assert (refused.status_code, "HEAD" in refused.headers["allow"]) == (405, False)
    assert "HEAD" in allowed.headers["allow"].split(", ")
