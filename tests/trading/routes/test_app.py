import re
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import NOW_S, a_buy, a_word, an_address, an_asset

from foretell.trading.routes.app import ROUTES, TITLE

pytestmark = pytest.mark.anyio

L1 = [("POST", "/auth/api-key"), ("GET", "/auth/derive-api-key")]
L2 = [
    ("GET", "/auth/api-keys"),
    ("DELETE", "/auth/api-key"),
    ("GET", "/auth/ban-status/closed-only"),
    ("POST", "/order"),
    ("POST", "/orders"),
    ("POST", "/order/validate"),
    ("DELETE", "/order"),
    ("DELETE", "/orders"),
    ("DELETE", "/cancel-all"),
    ("DELETE", "/cancel-market-orders"),
    ("GET", "/data/orders"),
    ("GET", "/data/order/0x12"),
    ("GET", "/data/trades"),
    ("GET", "/trades"),
    ("GET", "/balance-allowance"),
    ("GET", "/balance-allowance/update"),
    ("POST", "/heartbeats"),
    ("POST", "/v1/heartbeats"),
    ("GET", "/notifications"),
    ("DELETE", "/notifications"),
    ("GET", "/order-scoring"),
    ("POST", "/orders-scoring"),
    ("GET", "/data/pre-migration-orders"),
    ("GET", "/rewards/user"),
    ("GET", "/rewards/user/total"),
    ("GET", "/rewards/user/percentages"),
    ("GET", "/rewards/user/markets"),
    ("GET", "/rfq/data/requests"),
    ("GET", "/rfq/data/quotes"),
    ("GET", "/rfq/data/requester/quotes"),
    ("GET", "/rfq/data/quoter/quotes"),
]
TOKEN_QUERY = f"?token_id={an_asset(is_yes=True)}"
OPEN = [
    ("GET", "/"),
    ("GET", "/ok"),
    ("GET", "/time"),
    ("GET", "/version"),
    ("GET", f"/auth/account?address={an_address('alice')}"),
    ("GET", f"/book{TOKEN_QUERY}"),
    ("POST", "/books"),
    ("GET", f"/price{TOKEN_QUERY}&side=BUY"),
    ("POST", "/prices"),
    ("GET", f"/midpoint{TOKEN_QUERY}"),
    ("POST", "/midpoints"),
    ("GET", f"/spread{TOKEN_QUERY}"),
    ("POST", "/spreads"),
    ("POST", "/last-trades-prices"),
    ("GET", f"/tick-size{TOKEN_QUERY}"),
    ("GET", f"/neg-risk{TOKEN_QUERY}"),
    ("GET", f"/fee-rate{TOKEN_QUERY}"),
    ("GET", f"/prices-history?interval=1h&market={an_asset(is_yes=True)}"),
    ("POST", "/batch-prices-history"),
    ("GET", "/markets"),
    ("GET", f"/markets/{a_word('market')}"),
    ("GET", "/simplified-markets"),
    ("GET", "/sampling-markets"),
    ("GET", "/sampling-simplified-markets"),
    ("GET", f"/clob-markets/{a_word('market')}"),
    ("GET", f"/markets-by-token/{an_asset(is_yes=True)}"),
    ("GET", f"/live-activity/events/{a_word('market')}"),
    ("GET", f"/markets/live-activity/{a_word('market')}"),
    ("GET", "/rewards/markets/current"),
    ("GET", "/rewards/markets/multi"),
    ("GET", f"/rewards/markets/{a_word('market')}"),
    ("GET", "/rebates/current"),
    ("GET", "/rfq/config"),
    ("GET", f"/fees/builder-fees/{a_word('builder')}"),
]
UNTESTED = [
    ("GET", "/fee-rate/{token_id:str}"),
    ("GET", "/last-trade-price"),
    ("GET", "/neg-risk/{token_id:str}"),
    ("GET", "/schema/asyncapi.json"),
    ("GET", "/tick-size/{token_id:str}"),
]
"""Public too: other paths of the same, a document, and one that has no answer before the first trade."""
BODIES: dict[str, Any] = {
    "/batch-prices-history": {"markets": [an_asset(is_yes=True)], "interval": "1h"},
}
NO_HEADERS: dict[str, str] = {}
BAD_HEADERS = {
    "SERVICE_ADDRESS": an_address("alice"),
    "SERVICE_SIGNATURE": "x",
    "SERVICE_TIMESTAMP": "1",
    "SERVICE_API_KEY": "x",
    "SERVICE_PASSPHRASE": "x",
}


@pytest.mark.spec(103)
@pytest.mark.parametrize("path", ["/", "/ok"])
async def test_the_api_answers_at_its_root(rig: TradingRig, path: str) -> None:
    response = await rig.client.get(path)
    assert (response.status_code, response.text) == (200, '"OK"')
    assert response.headers["content-type"].startswith("application/json")


async def test_the_clock_and_the_version_are_returned(rig: TradingRig) -> None:
    assert (await rig.client.get("/time")).text == str(NOW_S)
    assert (await rig.client.get("/version")).json() == {"version": 1}


@pytest.mark.spec(100, 117, 118)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), OPEN)
async def test_market_data_is_open_to_all(
    rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    await rig.rest(a_buy("bob", price_ticks=40, is_yes=False))
    body = BODIES.get(path, [])
    response = await rig.client.request(method, path, json=body, headers=headers)
    assert response.status_code == 200, response.text


@pytest.mark.spec(117)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), L2)
async def test_a_private_route_needs_credentials(
    rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    response = await rig.client.request(method, path, headers=headers)
    assert (response.status_code, response.json()["error"]) == (401, "Unauthorized/Invalid api key")


@pytest.mark.spec(117)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), L1)
async def test_keys_need_a_wallets_signature(
    rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    response = await rig.client.request(method, path, headers=headers)
    assert (response.status_code, response.json()["error"]) == (401, "Invalid L1 Request headers")


@pytest.mark.spec(114)
async def test_a_key_is_of_its_own_address_alone(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    headers = alice.l2_headers("GET", "/data/orders") | {"SERVICE_ADDRESS": bob.address}
    response = await rig.client.get("/data/orders", headers=headers)
    assert (response.status_code, response.json()["code"]) == (401, "unknown_key")


@pytest.mark.spec(115)
@pytest.mark.parametrize(
    ("ahead_s", "status"), [(-301, 401), (-300, 200), (60, 200), (61, 401), (10**10, 401)]
)
async def test_a_signature_is_good_for_some_minutes(
    rig: TradingRig, alice: Trader, ahead_s: int, status: int
) -> None:
    rig.clock.move(ahead_s * 1000)
    headers = alice.l2_headers("GET", "/data/orders")
    rig.clock.move(-ahead_s * 1000)
    response = await rig.client.get("/data/orders", headers=headers)
    assert response.status_code == status


def test_every_route_is_in_one_of_these_tables() -> None:
    asked = [(method, path.partition("?")[0]) for method, path in L1 + L2 + OPEN]
    missing = [
        (method, path)
        for handler in ROUTES
        for method in getattr(handler, "http_methods", ())
        for path in handler.paths
        if not any(one == method and fits(path, other) for one, other in asked)
    ]
    assert sorted(missing) == UNTESTED


def fits(pattern: str, path: str) -> bool:
    return re.fullmatch(re.sub(r"\{[^}]*\}", "[^/]+", pattern), path) is not None


GETS = [
    path
    for handler in ROUTES
    if "GET" in getattr(handler, "http_methods", ())
    for path in handler.paths
]
NEEDED: dict[str, dict[str, str]] = {
    "/auth/account": {"address": an_address("alice")},
    "/balance-allowance": {"asset_type": "COLLATERAL"},
    "/balance-allowance/update": {"asset_type": "COLLATERAL"},
    "/prices-history": {"interval": "1h", "market": an_asset(is_yes=True)},
}
"""Parameters that a route needs before it checks for unknown ones."""


@pytest.mark.parametrize("path", sorted(GETS))
async def test_no_route_accepts_an_unknown_parameter_of_a_strict_client(
    alice: Trader, path: str
) -> None:
    query = NEEDED.get(path, {}) | {"strict": "true", "luck": "1"}
    response = await alice.send("GET", re.sub(r"\{[^}]*\}", "1", path), query=query)
    assert (response.status_code, response.json()["code"]) == (400, "unknown_parameter")


@pytest.mark.parametrize("query", [{"luck": "1"}, {"strict": "true"}, {"strict": "false", "x": ""}])
async def test_a_route_without_parameters_ignores_those_of_other_clients(
    rig: TradingRig, query: dict[str, str]
) -> None:
    assert (await rig.client.get("/time", params=query)).text == str(NOW_S)


async def test_an_unknown_path_is_refused_like_everything_else(rig: TradingRig) -> None:
    response = await rig.client.get("/nowhere")
    assert response.status_code == 404
    assert set(response.json()) == {"error", "code", "message"}
    assert response.json()["code"] == "unknown_route"


async def test_a_path_may_end_in_a_slash(rig: TradingRig) -> None:
    assert (await rig.client.get("/time/")).status_code == 200


@pytest.mark.spec(114)
async def test_a_path_with_a_trailing_slash_is_verified_as_it_was_sent(alice: Trader) -> None:
    client = alice.rig.client
    as_sent = alice.l2_headers("GET", "/auth/api-keys/")
    without_slash = alice.l2_headers("GET", "/auth/api-keys")

    accepted = await client.get("/auth/api-keys/", headers=as_sent)
    refused = await client.get("/auth/api-keys/", headers=without_slash)

    assert (accepted.status_code, accepted.json()) == (200, [alice.key_id])
    assert (refused.status_code, refused.json()["code"]) == (401, "l2_signature_mismatch")


async def test_the_api_describes_itself(rig: TradingRig) -> None:
    document = (await rig.client.get("/schema/openapi.json")).json()
    assert document["info"]["title"] == TITLE
    assert {"/order", "/book", "/data/trades", "/auth/api-key"} <= set(document["paths"])
    assert set(document["paths"]["/order"]) >= {"post", "delete"}
    tick = document["components"]["schemas"]
    assert any("minimum_tick_size" in schema.get("properties", {}) for schema in tick.values())


@pytest.mark.spec(3)
async def test_hashes_addresses_and_signatures_are_hex(alice: Trader) -> None:
    order_id = (await alice.placed(a_buy("alice")))["orderID"]
    order = await alice.get(f"/data/order/{order_id}")
    assert re.fullmatch(r"0x[0-9a-f]{64}", order["id"])
    assert re.fullmatch(r"0x[0-9a-f]{64}", order["market"])
    assert re.fullmatch(r"0x[0-9a-fA-F]{40}", order["maker_address"])
    assert re.fullmatch(r"\d+", order["asset_id"])
