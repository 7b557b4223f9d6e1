import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig, a_rig
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
    ("GET", "/profile"),
    ("POST", "/profile"),
    ("DELETE", "/notifications"),
    ("GET", "/order-scoring"),
    ("POST", "/orders-scoring"),
    ("GET", "/data/pre-migration-orders"),
    ("POST", "/auth/readonly-api-key"),
    ("GET", "/auth/readonly-api-keys"),
    ("DELETE", "/auth/readonly-api-key"),
    ("POST", "/auth/builder-api-key"),
    ("GET", "/auth/builder-api-key"),
    ("DELETE", "/auth/builder-api-key"),
    ("GET", "/rewards/user"),
    ("GET", "/rewards/user/total"),
    ("GET", "/rewards/user/percentages"),
    ("GET", "/rewards/user/markets"),
    ("GET", "/rfq/data/requests"),
    ("GET", "/rfq/data/quotes"),
    ("GET", "/rfq/data/requester/quotes"),
    ("GET", "/rfq/data/quoter/quotes"),
    ("GET", "/rfq/data/best-quote"),
    ("POST", "/rfq/request"),
    ("DELETE", "/rfq/request"),
    ("POST", "/rfq/quote"),
    ("DELETE", "/rfq/quote"),
    ("POST", "/rfq/request/accept"),
    ("POST", "/rfq/quote/approve"),
    ("POST", "/data/orders"),
]
TOKEN_QUERY = f"?token_id={an_asset(is_yes=True)}"
OPEN = [
    ("GET", "/"),
    ("GET", "/ok"),
    ("GET", "/time"),
    ("GET", "/version"),
    ("GET", f"/builder/trades?builder_code={a_word('builder')}"),
    ("GET", f"/auth/validate-readonly-api-key?key=x&address={an_address('alice')}"),
    ("GET", f"/auth/account?address={an_address('alice')}"),
    ("GET", f"/book{TOKEN_QUERY}"),
    ("POST", "/books"),
    ("GET", f"/price{TOKEN_QUERY}&side=BUY"),
    ("POST", "/prices"),
    ("GET", f"/prices{TOKEN_QUERY}"),
    ("GET", f"/midpoints{TOKEN_QUERY}"),
    ("GET", f"/spreads{TOKEN_QUERY}"),
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
    ("GET", "/events"),
    ("GET", "/fee-rate/{token_id:str}"),
    ("GET", "/last-trade-price"),
    ("GET", "/neg-risk/{token_id:str}"),
    ("GET", "/schema/asyncapi.json"),
    ("GET", "/tick-size/{token_id:str}"),
    ("POST", "/data/volumes"),
]
"""Public too: other paths of the same, a document, one that has no answer before the first trade, and one
that needs a stream."""
YES, NO = an_asset(is_yes=True), an_asset(is_yes=False)
TOKENS = [{"token_id": YES, "side": "BUY"}]
BODIES: dict[str, Any] = {
    "/books": TOKENS,
    "/prices": TOKENS,
    "/midpoints": TOKENS,
    "/spreads": TOKENS,
    "/last-trades-prices": TOKENS,
    "/batch-prices-history": {"markets": [YES], "interval": "1h"},
}
ANSWERS: dict[str, Any] = {
    "/prices": {YES: {"BUY": "0.6"}},
    "/midpoints": {YES: "0.3"},
    "/spreads": {YES: "0.6"},
    "/last-trades-prices": [{"token_id": YES, "price": "0.5", "side": "BUY"}],
}
"""What batches return of a book with one ask at 0.6, after a trade at 0.5."""
NO_HEADERS: dict[str, str] = {}
BAD_HEADERS = {
    "SERVICE_ADDRESS": an_address("alice"),
    "SERVICE_SIGNATURE": "x",
    "SERVICE_TIMESTAMP": "1",
    "SERVICE_API_KEY": "x",
    "SERVICE_PASSPHRASE": "x",
}


@pytest.fixture(scope="module")
async def traded_rig(
    empty_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[TradingRig]:
    """The product after a trade at 0.5, with an ask at 0.6, for tests that change nothing."""
    folder = tmp_path_factory.mktemp("traded")
    database_file = Path(shutil.copy(empty_database, folder / "foretell.db"))
    async with a_rig(folder / "journal", database_file) as rig:
        await rig.open("market", "alice", "bob", "carol")
        await rig.rest(a_buy("bob", price_ticks=50, is_yes=False))
        await rig.rest(a_buy("alice", price_ticks=50))
        await rig.rest(a_buy("bob", price_ticks=40, is_yes=False, salt="2"))
        await rig.settle_tables()
        yield rig


@pytest.fixture(scope="module")
async def reader(traded_rig: TradingRig) -> Trader:
    """A trader of that product whose requests are all reads."""
    return await traded_rig.trader("alice")


@pytest.mark.spec(103)
@pytest.mark.parametrize("path", ["/", "/ok"])
async def test_the_api_answers_at_its_root(traded_rig: TradingRig, path: str) -> None:
    response = await traded_rig.client.get(path)
    assert (response.status_code, response.text) == (200, '"OK"')
    assert response.headers["content-type"].startswith("application/json")


async def test_the_clock_and_the_version_are_returned(rig: TradingRig) -> None:
    assert (await rig.client.get("/time")).text == str(NOW_S)
    assert (await rig.client.get("/version")).json() == {"version": 2}


@pytest.mark.spec(100, 117, 118)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), OPEN)
async def test_market_data_is_open_to_all(
    traded_rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    response = await traded_rig.client.request(method, path, json=BODIES.get(path), headers=headers)
    assert response.status_code == 200, response.text
    assert method == "GET" or YES in response.text
    assert response.json() == ANSWERS.get(path, response.json())


@pytest.mark.spec(117)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), L2)
async def test_a_private_route_needs_credentials(
    traded_rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    response = await traded_rig.client.request(method, path, headers=headers)
    assert (response.status_code, response.json()["error"]) == (401, "Unauthorized/Invalid api key")


@pytest.mark.spec(117)
@pytest.mark.parametrize("headers", [NO_HEADERS, BAD_HEADERS], ids=["none", "bad"])
@pytest.mark.parametrize(("method", "path"), L1)
async def test_keys_need_a_wallets_signature(
    traded_rig: TradingRig, method: str, path: str, headers: dict[str, str]
) -> None:
    response = await traded_rig.client.request(method, path, headers=headers)
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
    "/auth/validate-readonly-api-key": {"address": an_address("alice"), "key": "x"},
    "/balance-allowance": {"asset_type": "COLLATERAL"},
    "/balance-allowance/update": {"asset_type": "COLLATERAL"},
    "/builder/trades": {"builder_code": a_word("builder")},
    "/events": {"stream_id": "any"},
    "/prices-history": {"interval": "1h", "market": an_asset(is_yes=True)},
}
"""Parameters that a route needs before it checks for unknown ones."""


@pytest.mark.parametrize("path", sorted(GETS))
async def test_no_route_accepts_an_unknown_parameter_of_a_strict_client(
    reader: Trader, path: str
) -> None:
    query = NEEDED.get(path, {}) | {"strict": "true", "luck": "1"}
    response = await reader.send("GET", re.sub(r"\{[^}]*\}", "1", path), query=query)
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


@pytest.mark.deviation(12)
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


@pytest.mark.spec(5)
async def test_the_fourteen_named_routes_do_their_work(rig: TradingRig, bob: Trader) -> None:
    async def post(path: str, body: object) -> Any:
        return (await rig.client.post(path, json=body)).json()

    async def get(path: str, **query: str) -> Any:
        return (await rig.client.get(path, params=query)).json()

    assert await get("/") == "OK"
    alice = Trader(rig, "alice")
    created = (await rig.client.post("/auth/api-key", headers=alice.l1_headers())).json()
    alice.key_id, alice.secret = created["apiKey"], created["secret"]
    alice.passphrase = created["passphrase"]
    await alice.placed(a_buy("alice", price_ticks=40))
    await bob.placed(a_buy("bob", price_ticks=60, is_yes=False))
    rested = (await alice.placed(a_buy("alice", price_ticks=30, salt="2")))["orderID"]
    await bob.placed(a_buy("bob", price_ticks=40, is_yes=False, salt="2"))
    await rig.settle_tables()

    book = await get("/book", token_id=YES)
    assert ([each["price"] for each in book["bids"]], book["asset_id"]) == (["0.3"], YES)
    assert await post("/books", TOKENS) == [book]
    assert await get("/price", token_id=YES, side="BUY") == {"price": "0.6"}
    assert await post("/prices", TOKENS) == {YES: {"BUY": "0.6"}}
    assert await get("/midpoint", token_id=YES) == {"mid": "0.45"}
    history = (await get("/prices-history", market=YES, interval="1h"))["history"]
    batch = await post("/batch-prices-history", {"markets": [YES], "interval": "1h"})
    assert batch == {"history": {YES: history}}
    (trade,) = (await alice.get("/trades"))["data"]
    assert (trade["asset_id"], trade["price"]) == (NO, "0.6")
    canceled = await alice.send("DELETE", "/order", {"orderID": rested})
    assert canceled.json()["canceled"] == [rested]
    assert (await get("/book", token_id=YES))["bids"] == []
    assert await alice.get("/auth/api-keys") == [alice.key_id]
    assert (await alice.send("DELETE", "/auth/api-key")).json() == {"revoked": True}
    assert (await alice.send("GET", "/auth/api-keys")).status_code == 401


HEX_FIELDS = {
    "id": 64,
    "order_id": 64,
    "orderID": 64,
    "taker_order_id": 64,
    "orderHash": 64,
    "canceled": 64,
    "market": 64,
    "condition_id": 64,
    "c": 64,
    "question_id": 64,
    "address": 40,
    "creator": 40,
    "exchange": 40,
    "verifyingContract": 40,
    "maker": 40,
    "maker_address": 40,
    "signer": 40,
}
"""Fields of answers that are a hash or an address, and the number of their digits.

The hash of a book is that of other clients, which is not of the chain and has no 0x.
"""
PUBLIC_ANSWERS = [
    f"/book?token_id={YES}",
    "/markets",
    f"/markets/{a_word('market')}",
    "/simplified-markets",
    f"/clob-markets/{a_word('market')}",
    f"/markets-by-token/{YES}",
    f"/auth/account?address={an_address('alice')}",
]


def leaves(value: Any, name: str = "") -> list[tuple[str, Any]]:
    """Return every leaf of a JSON value with the name of its field."""
    if isinstance(value, dict):
        return [leaf for key, each in value.items() for leaf in leaves(each, key)]
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each, name)]
    return [(name, value)]


@pytest.mark.spec(3)
async def test_every_hash_and_address_of_every_answer_is_hex_of_its_length(
    rig: TradingRig, alice: Trader, bob: Trader
) -> None:
    placed = [
        await alice.placed(a_buy("alice", price_ticks=40)),
        await bob.placed(a_buy("bob", price_ticks=60, is_yes=False)),
        await alice.placed(a_buy("alice", price_ticks=30, salt="2")),
    ]
    await rig.settle_tables()
    private = ["/data/orders", f"/data/order/{placed[2]['orderID']}", "/data/trades", "/trades"]
    answers = [
        *placed,
        *[await alice.get(path) for path in private],
        *[(await rig.client.get(path)).json() for path in PUBLIC_ANSWERS],
        (await alice.send("DELETE", "/cancel-all")).json(),
    ]
    found = [(name, each) for name, each in leaves(answers) if isinstance(each, str)]
    hexes = [(name, each) for name, each in found if each.startswith("0x")]
    assert {name: len(each) - 2 for name, each in hexes} == HEX_FIELDS
    assert all(re.fullmatch("0x[0-9a-fA-F]+", each) for _, each in hexes)
    bare = {name for name, each in found if re.fullmatch("[0-9a-f]{40,}", each)}
    assert bare == {"hash"} | {name for name, each in found if each in (YES, NO)}
