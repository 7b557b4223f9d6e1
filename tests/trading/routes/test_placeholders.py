from typing import Any

import pytest
from tests.rigs.trading import Trader, TradingRig
from tests.rigs.values import a_word

pytestmark = pytest.mark.anyio

PAGE = {"limit": 100, "count": 0, "next_cursor": "LTE=", "data": []}
CAMEL_PAGE = {"data": [], "nextCursor": "LTE=", "limit": 100, "count": 0, "totalCount": 0}


@pytest.mark.deviation(15)
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/rewards/markets/current", PAGE),
        ("/rewards/markets/multi", PAGE),
        (f"/rewards/markets/{a_word('market')}", PAGE),
        ("/rebates/current", []),
        ("/rfq/config", {"enabled": False}),
    ],
)
async def test_a_programme_that_does_not_exist_is_empty(
    rig: TradingRig, path: str, answer: Any
) -> None:
    response = await rig.client.get(path)
    assert (response.status_code, response.json()) == (200, answer)


@pytest.mark.deviation(15)
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/rewards/user", PAGE),
        ("/rewards/user/markets", PAGE),
        ("/rewards/user/total", []),
        ("/rewards/user/percentages", {}),
        ("/rfq/data/requests", CAMEL_PAGE),
        ("/rfq/data/quoter/quotes", CAMEL_PAGE),
        ("/data/pre-migration-orders", PAGE),
        ("/order-scoring", {"scoring": False}),
    ],
)
async def test_an_accounts_part_of_it_is_empty(alice: Trader, path: str, answer: Any) -> None:
    assert await alice.get(path) == answer


async def test_no_order_scores(alice: Trader) -> None:
    response = await alice.send("POST", "/orders-scoring", ["a", "b"])
    assert response.json() == {"a": False, "b": False}


@pytest.mark.deviation(15)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/rfq/request"),
        ("DELETE", "/rfq/request"),
        ("POST", "/rfq/quote"),
        ("DELETE", "/rfq/quote"),
        ("POST", "/rfq/request/accept"),
        ("POST", "/rfq/quote/approve"),
        ("GET", "/rfq/data/best-quote"),
    ],
)
async def test_nothing_is_written_to_a_programme_that_does_not_exist(
    alice: Trader, method: str, path: str
) -> None:
    """No write is answered as if it had succeeded."""
    response = await alice.send(method, path, {})
    assert (response.status_code, response.json()["code"]) == (403, "not_served")
