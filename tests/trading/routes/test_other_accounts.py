"""Every private route, asked by one account about another's orders, trades and keys."""

from typing import Any, NamedTuple

import pytest
from tests.rigs.applications import openapi_document
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import TOKEN, a_buy, a_sell, a_word, an_asset, some_funds

from foretell.trading.routes.app import build_app

pytestmark = pytest.mark.anyio


class Route(NamedTuple):
    """A private route, and the names of its parameters."""

    method: str
    path: str
    parameters: tuple[str, ...]


def private_routes() -> list[Route]:
    """Return the routes that take an API key, from the API's own document."""
    paths: dict[str, Any] = openapi_document(build_app)["paths"]
    return [
        Route(method.upper(), path, tuple(each["name"] for each in route.get("parameters", ())))
        for path, routes in paths.items()
        for method, route in routes.items()
        if any("L2_API_KEY" in needed for needed in route.get("security", ()))
    ]


ROUTES = private_routes()
ORDER = a_buy("alice", price_ticks=37, size_units=13 * TOKEN)
OTHER = a_buy("alice", price_ticks=31, size_units=17 * TOKEN, salt="2")


class Account(NamedTuple):
    """What alice has: values that may be named in requests, and values that no answer may have."""

    named: dict[str, str]
    private: tuple[str, ...]
    bodies: tuple[object, ...]


async def account_of(rig: TradingRig, alice: Trader) -> Account:
    """Give alice resting orders, a trade with carol and two keys."""
    await rig.submit(some_funds("carol"))
    carol = await rig.trader("carol")
    order_id = (await alice.placed(ORDER))["orderID"]
    other_id = (await alice.placed(OTHER))["orderID"]
    await carol.placed(a_sell("carol", price_ticks=45, salt="3"))
    trade_id = (await alice.placed(a_buy("alice", price_ticks=45, salt="4")))["tradeIDs"][0]
    second = await rig.trader("alice", nonce=1)
    await rig.settle_tables()
    named = {
        "id": order_id,
        "order_id": order_id,
        "apiKey": alice.key_id,
        "market": str(a_word("market")),
        "asset_id": an_asset(is_yes=True),
        "token_id": an_asset(is_yes=True),
        "asset_type": "COLLATERAL",
        "signature_type": "0",
        "maker_address": alice.address,
        "maker": alice.address,
        "taker": alice.address,
    }
    bodies = (
        None,
        {"orderID": order_id},
        [order_id, other_id],
        {"market": named["market"], "asset_id": named["asset_id"]},
        {"apiKey": alice.key_id, "heartbeat_id": alice.key_id},
        alice.body(ORDER),
        [alice.body(ORDER)],
    )
    private = (second.key_id, alice.secret, alice.passphrase, second.passphrase, trade_id, '"0.31"')
    return Account(named, private, bodies)


@pytest.mark.case("C-14")
@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_no_private_route_shows_or_changes_what_another_account_has(
    rig: TradingRig, alice: Trader, bob: Trader, route: Route
) -> None:
    account = await account_of(rig, alice)
    orders = list(rig.host.engine.state.live_orders)
    keys = await alice.get("/auth/api-keys")
    path = route.path.format(**account.named)
    by_name = {name: account.named[name] for name in route.parameters if name in account.named}
    queries = [{}, by_name, *({name: value} for name, value in by_name.items())]
    for query in queries:
        for body in account.bodies if route.method != "GET" else (None,):
            answer = await bob.send(route.method, path, body, query=query)
            assert answer.status_code < 500
            shown = [value for value in account.private if value in answer.text]
            assert shown == [], answer.text
            rig.clock.move(1)
    assert list(rig.host.engine.state.live_orders) == orders
    assert await alice.get("/auth/api-keys") == keys


def test_the_private_routes_are_those_of_the_document() -> None:
    assert {"/order", "/orders", "/cancel-all", "/data/order/{order_id}", "/auth/api-keys"} <= {
        route.path for route in ROUTES
    }
