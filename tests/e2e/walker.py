"""A client that asks every GET route of every API, and names what exists."""

import asyncio
from collections.abc import Mapping
from functools import partial

import httpx
from litestar import Litestar
from tests.rigs.applications import BuildApp, an_app

from foretell.creation import routes as creation
from foretell.data import routes as data
from foretell.discovery import routes as discovery
from foretell.relayer import routes as relayer
from foretell.sandbox.ready import Ready
from foretell.sdk.trading import TradingClient
from foretell.trading.routes import app as trading

TRIES_MORE = 20
RETRY_S = 1.0

BUILD_BY_PREFIX: Mapping[str, BuildApp] = {
    "/clob": trading.build_app,
    "/create-market": creation.build_app,
    "/relayer": relayer.build_app,
    "/data": data.build_app,
    "/discovery": discovery.build_app,
}


def get_paths(prefix: str) -> list[str]:
    """Return the paths of an API's GET routes, with the names of their parameters in braces."""
    app: Litestar = an_app(BUILD_BY_PREFIX[prefix], None)
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

    async def ask(
        self, http: httpx.AsyncClient, method: str, prefix: str, path: str
    ) -> httpx.Response:
        """Return the answer to a request, which is sent again while it is refused as one that cannot be done now.

        On a busy machine a read may take too long, and says so.
        """
        for name in (*self._parameters, "id", "order_id", "blob_id"):
            path = path.replace(f"{{{name}}}", self._parameters.get(name, "1"))
        headers = self._trader.l2_headers(method, path)
        url = f"{self._base_url}{prefix}{path}"
        ask = partial(http.request, method, url, headers=headers, params=self._parameters)
        answer = await ask()
        for _ in range(TRIES_MORE):
            if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                break
            await asyncio.sleep(RETRY_S)
            answer = await ask()
        return answer
